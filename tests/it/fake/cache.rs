//! The prompt cache as the API documents it: what was written up to a mark is read by who begins with the same.
//!
//! A prompt is tools, then system, then messages, below its model; a mark finds what was written up to 20 blocks before it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::prefix::{blocks, messages, plain};

/// How far a mark looks back, in blocks.
const LOOK_BACK: usize = 20;
/// Bytes of a token.
const BYTES: usize = 4;

/// What was written, each prefix by its digest, and until when it is kept.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    known: BTreeMap<Uuid, u64>,
    /// The time, in unix ms; it stands still unless a test moves it.
    pub(crate) now: u64,
    /// Tokens of a prompt that is too short to be kept.
    pub(crate) minimum: usize,
}

/// A prompt that grows at its end.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    prefixes: Vec<Prefix>,
    model: Uuid,
}

/// A prefix of a prompt.
#[derive(Clone, Debug)]
struct Prefix {
    digest: Uuid,
    tokens: usize,
    /// For how long it is to be kept, where a mark stands.
    mark: Option<&'static str>,
}

impl Cache {
    /// Counts a request, as the API does in `usage`, and keeps what it writes.
    pub(super) fn count(&mut self, body: &Value) -> Value {
        self.count_prompt(&prompt(body))
    }

    /// Like [`Cache::count`], of a prompt that was put together already.
    pub(crate) fn count_prompt(&mut self, prompt: &Prompt) -> Value {
        let prefixes = &prompt.prefixes;
        let marks: Vec<usize> = (0..prefixes.len()).filter(|at| prefixes[*at].mark.is_some()).collect();
        let found = marks.iter().rev().find_map(|mark| self.found_before(&prefixes[..=*mark]));
        let read = found.map_or(0, |at| prefixes[at].tokens);
        let last = marks.last().map(|at| &prefixes[*at]);
        let kept = last.map_or(0, |last| last.tokens);
        let written = if kept < self.minimum { 0 } else { kept.saturating_sub(read) };
        let whole = prefixes.last().map_or(0, |all| all.tokens);
        // What is read is kept as long again.
        for at in marks.iter().copied().chain(found).filter(|at| prefixes[*at].tokens >= self.minimum) {
            let until = self.now + kept_for(prefixes[at].mark.or(last.and_then(|last| last.mark)));
            let known = self.known.entry(prefixes[at].digest).or_default();
            *known = until.max(*known);
        }
        let of_an_hour = if last.and_then(|last| last.mark) == Some("1h") { written } else { 0 };
        json!({
            "input_tokens": whole - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written - of_an_hour,
                "ephemeral_1h_input_tokens": of_an_hour,
            },
            "output_tokens": 1,
        })
    }

    /// Forgets all, as after its time to live.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    fn found_before(&self, prefixes: &[Prefix]) -> Option<usize> {
        let least = prefixes.len().saturating_sub(LOOK_BACK + 1);
        let is_known =
            |prefix: &Prefix| self.known.get(&prefix.digest).is_some_and(|until| self.now < *until);
        (least..prefixes.len()).rev().find(|at| is_known(&prefixes[*at]))
    }
}

/// How long what a mark wrote is kept after it was last used, in ms.
fn kept_for(mark: Option<&str>) -> u64 {
    if mark == Some("1h") { 3_600_000 } else { 300_000 }
}

impl Prompt {
    /// An empty prompt to a model.
    pub(crate) fn new(model: &str) -> Self {
        Self { prefixes: Vec::new(), model: Uuid::new_v5(&Uuid::NAMESPACE_OID, model.as_bytes()) }
    }

    /// Adds a block, with a mark or without.
    pub(crate) fn push(&mut self, text: &str, mark: Option<&'static str>) {
        let (before, tokens) =
            self.prefixes.last().map_or((self.model, 0), |last| (last.digest, last.tokens));
        let digest = Uuid::new_v5(&before, text.as_bytes());
        self.prefixes.push(Prefix { digest, tokens: tokens + text.len().div_ceil(BYTES), mark });
    }

    /// The mark of the block that was added last goes.
    pub(crate) fn unmark_last(&mut self) {
        self.prefixes.last_mut().into_iter().for_each(|last| last.mark = None);
    }
}

/// The prompt of a request, block by block.
fn prompt(body: &Value) -> Prompt {
    let bare = plain(body);
    let list = |from: &Value, part: &str| from[part].as_array().cloned().unwrap_or_default();
    let billed =
        |block: &Value| block["text"].as_str().is_some_and(|text| text.starts_with("x-anthropic-billing"));
    let mut marked = [list(body, "tools"), list(body, "system")].concat();
    marked.retain(|block| !billed(block));
    let mut parts = [list(&bare, "tools"), list(&bare, "system")].concat();
    for (message, bare) in messages(body).iter().zip(messages(&bare)) {
        marked.extend(blocks(message));
        let thought = json!([bare["role"], body["thinking"], body["output_config"]]);
        parts.extend(blocks(bare).into_iter().map(|block| json!([thought, block])));
    }
    let mut prompt = Prompt::new(&body["model"].to_string());
    for (part, marked) in parts.iter().zip(&marked) {
        let mark = marked.get("cache_control").map(|mark| if mark["ttl"] == "1h" { "1h" } else { "5m" });
        prompt.push(&part.to_string(), mark);
    }
    prompt
}

mod tests {
    use super::*;

    fn block(text: &str, mark: bool) -> Value {
        match mark {
            true => {
                json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}})
            }
            false => json!({"type": "text", "text": text}),
        }
    }

    fn body(model: &str, system: &str, words: &[&str]) -> Value {
        let last = words.len() - 1;
        let message =
            |(at, text): (usize, &&str)| json!({"role": "user", "content": [block(text, at == last)]});
        let messages: Vec<Value> = words.iter().enumerate().map(message).collect();
        json!({"model": model, "tools": [], "system": [block(system, true)], "messages": messages})
    }

    fn counted(cache: &mut Cache, body: &Value) -> (u64, u64) {
        let usage = cache.count(body);
        let number = |key: &str| usage[key].as_u64().unwrap();
        assert_eq!(number("input_tokens"), 0, "a mark stands at the end");
        (number("cache_read_input_tokens"), number("cache_creation_input_tokens"))
    }

    #[test]
    fn what_was_written_is_read_by_who_begins_with_the_same() {
        let mut cache = Cache::default();
        let (read, first) = counted(&mut cache, &body("m", "she", &["one"]));
        assert_eq!(read, 0);
        let (read, written) = counted(&mut cache, &body("m", "she", &["one", "two"]));
        assert_eq!(read, first);
        assert!(written > 0);
        let (shared, _) = counted(&mut cache, &body("m", "she", &["another"]));
        assert!(shared > 0 && shared < first, "{shared}");
        assert_eq!(counted(&mut cache, &body("m", "he", &["one"])).0, 0);
        assert_eq!(counted(&mut cache, &body("n", "she", &["one"])).0, 0);
        cache.forget();
        assert_eq!(counted(&mut cache, &body("m", "she", &["one"])).0, 0);
    }

    #[test]
    fn what_is_used_is_kept_as_long_again_and_then_forgotten() {
        let mut cache = Cache::default();
        let (_, first) = counted(&mut cache, &body("m", "she", &["one"]));
        for minute in [59, 118] {
            cache.now = minute * 60_000;
            assert!(counted(&mut cache, &body("m", "she", &["one", "two"])).0 >= first, "{minute}");
        }
        cache.now = 178 * 60_000;
        assert_eq!(counted(&mut cache, &body("m", "she", &["one", "two"])).0, 0);
    }

    #[test]
    fn what_is_marked_for_five_minutes_is_kept_for_five() {
        let short = |words: &[&str]| {
            let text = body("m", "she", words).to_string().replace(r#""ttl":"1h""#, r#""ttl":"5m""#);
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let mut cache = Cache::default();
        let usage = cache.count(&short(&["one"]));
        let written = &usage["cache_creation"];
        assert!(written["ephemeral_5m_input_tokens"].as_u64() > Some(0), "{usage}");
        assert_eq!(written["ephemeral_1h_input_tokens"], 0);
        cache.now = 299_999;
        assert!(counted(&mut cache, &short(&["one", "two"])).0 > 0);
        cache.now += 300_000;
        assert_eq!(counted(&mut cache, &short(&["one", "two"])).0, 0);
    }

    #[test]
    fn each_of_three_marks_is_where_reading_may_begin() {
        let marked = |system: &str, first: &str, last: &str| {
            let message = |text| json!({"role": "user", "content": [block(text, true)]});
            let messages = json!([message(first), message(last)]);
            json!({"model": "m", "tools": [], "system": [block(system, true)], "messages": messages})
        };
        let mut cache = Cache::default();
        let (read, whole) = counted(&mut cache, &marked("she", "one", "two"));
        assert_eq!(read, 0);
        let mut read = |system, first, last| counted(&mut cache, &marked(system, first, last)).0;
        let [all, two, one] = [read("she", "one", "two"), read("she", "one", "2"), read("she", "1", "2")];
        assert!(all == whole && all > two && two > one && one > 0, "{all} {two} {one}");
        assert_eq!(read("he", "one", "two"), 0);
    }

    #[test]
    fn a_prompt_below_the_minimum_is_not_kept() {
        let whole = |minimum| {
            let mut cache = Cache { minimum, ..Cache::default() };
            let usage = [cache.count(&body("m", "she", &["one"])), cache.count(&body("m", "she", &["one"]))];
            usage.map(|usage| usage["input_tokens"].as_u64().unwrap())
        };
        assert_eq!(whole(0), [0, 0]);
        let [first, second] = whole(10_000);
        assert!(first > 0 && first == second);
    }

    #[test]
    fn a_mark_looks_back_20_blocks() {
        let words: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut cache = Cache::default();
        counted(&mut cache, &body("m", "she", &words[..10]));
        let (near, _) = counted(&mut cache, &body("m", "she", &words[..30]));
        let mut cache = Cache::default();
        counted(&mut cache, &body("m", "she", &words[..10]));
        let (far, _) = counted(&mut cache, &body("m", "she", &words[..31]));
        assert!(far < near, "{far} {near}");
    }
}
