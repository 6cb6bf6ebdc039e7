//! The session's file, as the CLI writes it: one JSON object a line, the last one torn after a crash.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::schema;
use super::wire;
use crate::conversation::LineId;
use crate::persona::RequestUsage;

/// What we need of a session's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Transcript {
    entries: Vec<Entry>,
    /// Whether it was compacted, so that the uuids before are not known to the CLI any more.
    pub(super) compacted: bool,
    /// Whether the CLI has anything to resume from.
    pub(super) resumable: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    /// A line of ours.
    Line(Uuid),
    /// A typed reply.
    Reply { input: Value, usage: RequestUsage },
}

/// How a line stands in a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    /// It is not there.
    Unknown,
    /// It is there without a reply.
    Unanswered {
        /// Whether no other line came after it.
        last: bool,
    },
    /// It is there with its reply.
    Answered {
        /// The reply.
        reply: Value,
        /// What the reply's request used.
        usage: RequestUsage,
    },
}

impl Transcript {
    /// Reads a session's file line by line; lines that cannot be read are as if they were missing.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut all = Self::default();
        let mut file = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line)? > 0 {
            if let Ok(record) = serde_json::from_slice::<Record>(&line) {
                all.take(record);
            }
            line.clear();
        }
        Ok(all)
    }

    fn take(&mut self, record: Record) {
        match record.kind.as_str() {
            _ if record.is_sidechain => {}
            "system" if record.subtype == "compact_boundary" => self.compacted = true,
            "user" => {
                self.resumable = true;
                self.entries.extend(record.line().map(Entry::Line));
            }
            "assistant" => {
                self.resumable = true;
                self.entries.extend(record.replies());
            }
            _ => {}
        }
    }

    /// Tells whether the line is there.
    pub(super) fn holds(&self, line: LineId) -> bool {
        self.entries.contains(&Entry::Line(line.0))
    }

    /// Tells how the line stands; only a reply that fits the schema is one.
    ///
    /// The CLI may have run the line a second time; its replies are those up to the next other line.
    pub(super) fn standing(&self, line: LineId, wanted: &Value) -> Standing {
        let ours = Entry::Line(line.0);
        let Some(first) = self.entries.iter().position(|entry| *entry == ours) else {
            return Standing::Unknown;
        };
        let another = |entry: &Entry| matches!(entry, Entry::Line(_)) && *entry != ours;
        let after = &self.entries[first..];
        let end = after.iter().position(another).unwrap_or(after.len());
        let reply = after[..end].iter().rev().find_map(|entry| match entry {
            Entry::Reply { input, usage } if schema::fits(input, wanted) => Some((input, usage.clone())),
            Entry::Reply { .. } | Entry::Line(_) => None,
        });
        match reply {
            Some((input, usage)) => Standing::Answered { reply: input.clone(), usage },
            None => Standing::Unanswered { last: end == after.len() },
        }
    }
}

/// One line of the file; everything is optional, since the CLI owns the form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    uuid: String,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    message: Value,
}

impl Record {
    /// The uuid of a line that came from us: no note of the CLI's own, no result of a tool.
    fn line(&self) -> Option<Uuid> {
        let parts = self.message["content"].as_array().into_iter().flatten();
        let is_result = parts.into_iter().any(|part| part["type"] == "tool_result");
        if self.is_meta || is_result {
            return None;
        }
        self.uuid.parse().ok()
    }

    /// The typed replies in what the model said; what the CLI says in its stead is none.
    fn replies(self) -> Vec<Entry> {
        let Some(wire::Request { usage, .. }) = wire::request(&self.message) else { return Vec::new() };
        let parts = self.message["content"].as_array().into_iter().flatten();
        let calls = parts.filter(|part| part["type"] == "tool_use" && part["name"] == "StructuredOutput");
        let inputs = calls.map(|call| call["input"].clone()).filter(Value::is_object);
        inputs.map(|input| Entry::Reply { input, usage: usage.clone() }).collect()
    }
}

/// Finds a session's file below the config folder; the CLI names the folder in between.
pub(super) fn find(config: &Path, session: Uuid) -> Option<PathBuf> {
    let name = format!("{session}.jsonl");
    let projects = std::fs::read_dir(config.join("projects")).ok()?;
    let mut found: Vec<PathBuf> = projects
        .filter_map(|folder| Some(folder.ok()?.path().join(&name)))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Which file a session has, and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionFile {
    path: PathBuf,
    inode: (u64, u64),
    // An inode may be used again at once, so its birth counts as well where the file system tells it.
    born: Option<SystemTime>,
    length: u64,
}

impl SessionFile {
    /// Tells whether this is what `before` may have become by appending.
    pub(super) fn continues(&self, before: &Self) -> bool {
        (self.inode, self.born) == (before.inode, before.born) && self.length >= before.length
    }
}

/// Makes a session's file durable, if there is one: its contents, and its name in every folder up to the config folder
/// unless it is `known`, as an earlier call answered.
pub(super) fn sync(
    config: &Path,
    session: Uuid,
    known: Option<&SessionFile>,
) -> Option<io::Result<SessionFile>> {
    let path = known.map(|known| known.path.clone()).filter(|path| path.is_file());
    Some(sync_at(config, path.or_else(|| find(config, session))?, known))
}

fn sync_at(config: &Path, path: PathBuf, known: Option<&SessionFile>) -> io::Result<SessionFile> {
    let file = File::open(&path)?;
    file.sync_all()?;
    let metadata = file.metadata()?;
    let inode = (metadata.dev(), metadata.ino());
    let synced = SessionFile { path, inode, born: metadata.created().ok(), length: metadata.len() };
    if !known.is_some_and(|known| synced.continues(known)) {
        let folders = synced.path.ancestors().skip(1).take_while(|folder| folder.starts_with(config));
        folders.into_iter().try_for_each(|folder| File::open(folder)?.sync_all())?;
    }
    Ok(synced)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: u32) -> LineId {
        LineId(Uuid::from_u128(u128::from(number)))
    }

    fn user(number: u32) -> String {
        let message = json!({"role": "user", "content": "[mail]\nhello"});
        json!({"type": "user", "uuid": id(number).to_string(), "message": message, "promptSource": "sdk"})
            .to_string()
    }

    fn call(input: &Value) -> String {
        let usage = json!({"input_tokens": 10, "output_tokens": 20});
        let content = json!([{"type": "tool_use", "id": "t", "name": "StructuredOutput", "input": input}]);
        let message = json!({"model": "claude", "content": content, "usage": usage});
        json!({"type": "assistant", "uuid": id(99).to_string(), "message": message}).to_string()
    }

    fn said(model: &str, text: &str) -> String {
        let message = json!({"model": model, "content": [{"type": "text", "text": text}]});
        json!({"type": "assistant", "message": message}).to_string()
    }

    fn tool_result(number: u32) -> String {
        let content = json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]);
        json!({"type": "user", "uuid": id(number).to_string(), "message": {"content": content}}).to_string()
    }

    fn note(number: u32) -> String {
        let content = json!([{"type": "text", "text": "Continue from where you left off."}]);
        json!({"type": "user", "isMeta": true, "uuid": id(number).to_string(), "message": {"content": content}})
            .to_string()
    }

    fn read(lines: &[String]) -> Transcript {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        Transcript::read(file.path()).unwrap()
    }

    fn schema() -> Value {
        json!({"type": "object", "required": ["say"], "properties": {"say": {"type": "array"}}})
    }

    fn check(lines: &[String], expect: Standing) {
        assert_eq!(read(lines).standing(id(1), &schema()), expect, "{lines:#?}");
    }

    fn answered(word: &str) -> Standing {
        let model = "claude".to_owned();
        let usage = RequestUsage { model, input: 10, output: 20, ..RequestUsage::default() };
        Standing::Answered { reply: json!({"say": [word]}), usage }
    }

    fn reply(word: &str) -> String {
        call(&json!({"say": [word]}))
    }

    const WAITING: Standing = Standing::Unanswered { last: true };

    #[test]
    fn a_typed_reply_answers() {
        check(&[user(1), reply("a"), tool_result(2)], answered("a"));
        check(&[user(0), reply("z"), user(1), reply("a"), user(2), reply("b")], answered("a"));
    }

    #[test]
    fn the_last_reply_that_fits_counts() {
        check(&[user(1), call(&json!({"say": 3})), tool_result(2), reply("a"), reply("b")], answered("b"));
        check(&[user(1), reply("a"), call(&json!({"say": 3}))], answered("a"));
    }

    #[test]
    fn a_line_that_is_run_again_by_the_cli_is_answered_there() {
        check(&[user(1), note(5), reply("a")], answered("a"));
        check(&[user(1), said("<synthetic>", "No response requested."), user(1), reply("a")], answered("a"));
    }

    #[test]
    fn anything_else_leaves_it_unanswered() {
        check(&[user(1)], WAITING);
        check(&[user(1), said("claude", "plain words")], WAITING);
        check(&[user(1), said("<synthetic>", "No response requested.")], WAITING);
        check(&[user(1), said("<synthetic>", "API Error: 500")], WAITING);
        check(&[user(1), call(&json!({"say": 3}))], WAITING);
        check(&[user(1), call(&json!("say"))], WAITING);
        check(&[user(1), call(&json!({"say": ["a"]})).replace("StructuredOutput", "Bash")], WAITING);
        check(&[user(1), call(&json!({"say": ["a"]})).replace(r#""claude""#, r#""<synthetic>""#)], WAITING);
        check(&[user(1), user(2), reply("b")], Standing::Unanswered { last: false });
    }

    #[test]
    fn no_text_of_the_cli_in_a_file_is_taken_for_a_reply() {
        for text in crate::mind::claude::corpus::RECORDED {
            check(&[user(1), said("claude", text)], WAITING);
        }
    }

    #[test]
    fn a_torn_last_line_and_strange_lines_are_borne() {
        let torn = reply("b")[..40].to_owned();
        let strange =
            ["[]", "7", "{}", r#"{"type":7}"#, r#"{"type":"user","uuid":7}"#, "\u{0}", r#"{"type":"mode"}"#];
        let lines = [vec![user(1)], strange.map(str::to_owned).to_vec(), vec![reply("a"), torn]].concat();
        check(&lines, answered("a"));
        check(&[user(1)[..30].to_owned()], Standing::Unknown);
        check(&[], Standing::Unknown);
    }

    #[test]
    fn a_queued_line_is_not_in_the_session() {
        let queued = json!({"type": "queue-operation", "operation": "enqueue", "uuid": id(1).to_string()});
        let transcript = read(&[queued.to_string()]);
        assert!(!transcript.resumable && !transcript.holds(id(1)));
    }

    #[test]
    fn compaction_is_seen() {
        let boundary = json!({"type": "system", "subtype": "compact_boundary"}).to_string();
        assert!(read(&[user(1), boundary]).compacted);
        assert!(!read(&[user(1), reply("compact_boundary")]).compacted);
    }

    #[test]
    fn a_file_is_found_below_any_folder_of_the_clis() {
        let config = tempfile::tempdir().unwrap();
        assert_eq!(find(config.path(), id(1).0), None);
        let folder = config.path().join("projects/-some-folder");
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(find(config.path(), id(1).0), None);
        let path = folder.join(format!("{}.jsonl", id(1)));
        std::fs::write(&path, "x").unwrap();
        assert_eq!(find(config.path(), id(1).0), Some(path));
    }

    /// The file of session 1 in a fresh config folder, not made yet.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let config = tempfile::tempdir().unwrap();
        let folder = config.path().join("projects/-some-folder");
        std::fs::create_dir_all(&folder).unwrap();
        (config, folder.join(format!("{}.jsonl", id(1))))
    }

    #[test]
    fn a_file_that_cannot_be_synced_is_an_error() {
        let (config, path) = place();
        assert!(sync(config.path(), id(1).0, None).is_none());
        // No file of this file system can be synced.
        std::os::unix::fs::symlink("/proc/self/status", &path).unwrap();
        assert!(sync(config.path(), id(1).0, None).unwrap().is_err());
    }

    #[test]
    fn a_file_continues_only_by_growing() {
        let (config, path) = place();
        let synced = |known| sync(config.path(), id(1).0, known).unwrap().unwrap();
        std::fs::write(&path, "one\n").unwrap();
        let first = synced(None);
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(8).unwrap();
        let grown = synced(Some(&first));
        assert!(grown.continues(&first) && first.continues(&first) && !first.continues(&grown));
        let other = config.path().join("other.jsonl");
        std::fs::write(&other, "much longer than before\n").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!synced(Some(&grown)).continues(&grown));
    }

    #[test]
    fn a_file_that_was_moved_is_found_again() {
        let (config, path) = place();
        std::fs::write(&path, "one\n").unwrap();
        let first = sync(config.path(), id(1).0, None).unwrap().unwrap();
        let elsewhere = config.path().join("projects/-other-folder");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::rename(&path, elsewhere.join(path.file_name().unwrap())).unwrap();
        assert!(sync(config.path(), id(1).0, Some(&first)).unwrap().unwrap().continues(&first));
        std::fs::remove_dir_all(&elsewhere).unwrap();
        assert!(sync(config.path(), id(1).0, Some(&first)).is_none());
    }
}
