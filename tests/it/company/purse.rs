//! What turns use, as the API would count it: each asks the whole session so far, and the prompt cache keeps that for five minutes.

use std::collections::BTreeMap;

use persona_bridge::conversation::prompt::SEAM;
use persona_bridge::operate::simulate::ASSUMED;
use persona_bridge::persona::{RequestUsage, Usage};
use serde_json::Value;
use tokio::time::Instant;

use crate::fake::cache::{Cache, Prompt};

/// Bytes of a token.
const BYTES: usize = 4;
/// For how long a key of the API has prompts kept.
const KEPT: Option<&str> = Some("5m");

/// The sessions of all Personas and the cache that holds their prompts.
pub(crate) struct Purse {
    model: &'static str,
    cache: Cache,
    /// Tools and system prompt, which all sessions begin with.
    fixed: Prompt,
    sessions: BTreeMap<String, Prompt>,
    begun: Option<Instant>,
}

impl Purse {
    /// Of sessions with a model that keeps no prompt of fewer tokens than the minimum.
    pub(crate) fn new(model: &'static str, minimum: usize) -> Self {
        let mut fixed = Prompt::new(model);
        fixed.push(&"s".repeat(tokens_of(ASSUMED.fixed)), KEPT);
        let mut cache = Cache::default();
        cache.minimum = minimum;
        Self { model, cache, fixed, sessions: BTreeMap::new(), begun: None }
    }

    /// What a turn uses that is asked now.
    pub(crate) fn turn(&mut self, who: &str, words: &str, reply: &Value) -> Usage {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        self.cache.now = u64::try_from((now - begun).as_millis()).unwrap_or(u64::MAX);
        if words.lines().any(|line| line == SEAM) {
            self.sessions.remove(who);
        }
        let session = self.sessions.entry(who.to_owned()).or_insert_with(|| begin(&self.fixed, who));
        session.push(words, KEPT);
        let counted = self.cache.count_prompt(session);
        let said = reply.to_string();
        session.unmark_last();
        session.push(&said, None);
        let count = |key: &str| counted[key].as_u64().unwrap_or_default();
        let request = RequestUsage {
            model: self.model.to_owned(),
            input: count("input_tokens"),
            cache_read: count("cache_read_input_tokens"),
            written_5m: count("cache_creation_input_tokens"),
            output: said.len().div_ceil(BYTES) as u64,
            ..RequestUsage::default()
        };
        Usage { requests: vec![request], ..Usage::default() }
    }
}

/// A session before its first mail: who she is stands behind what all have.
fn begin(fixed: &Prompt, who: &str) -> Prompt {
    let mut prompt = fixed.clone();
    let own = tokens_of(ASSUMED.rehydrated - ASSUMED.fixed);
    prompt.push(&who.repeat(own / who.len().max(1)), KEPT);
    prompt
}

fn tokens_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX) * BYTES
}
