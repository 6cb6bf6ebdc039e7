//! A session's file: one JSON line for words that were heard, one for the reply to them.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::conversation::LineId;

/// A session's record; what it has written is on disk.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Row {
    line: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<String>,
}

impl Record {
    /// Reads a record back, without a last line that was torn by a crash; none where there is no file.
    ///
    /// # Errors
    /// `InvalidData` where another line is broken: such a record is never written by us.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let file = OpenOptions::new().append(true).open(path)?;
        if whole < bytes.len() {
            file.set_len(u64::try_from(whole).unwrap_or(u64::MAX))?;
        }
        let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let rows = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
        let rows = rows.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(Some(Self { file, rows }))
    }

    /// Makes an empty record that only its owner may read.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(Self { file, rows: Vec::new() })
    }

    /// Writes down words, before they are thought about.
    pub(super) fn heard(&mut self, line: LineId, words: &str) -> io::Result<()> {
        self.append(Row { line: line.to_string(), words: Some(words.to_owned()), reply: None })
    }

    /// Writes down the reply to a line, before it is told.
    pub(super) fn answered(&mut self, line: LineId, reply: &str) -> io::Result<()> {
        self.append(Row { line: line.to_string(), words: None, reply: Some(reply.to_owned()) })
    }

    /// The words of a line.
    pub(super) fn words(&self, line: LineId) -> Option<&str> {
        self.of(line).find_map(|row| row.words.as_deref())
    }

    /// The reply to a line.
    pub(super) fn reply(&self, line: LineId) -> Option<&str> {
        self.of(line).find_map(|row| row.reply.as_deref())
    }

    /// All words heard so far, oldest first, each with whether one of `lines` brought them.
    pub(super) fn all_words(&self, lines: &[LineId]) -> impl Iterator<Item = (bool, &str)> {
        let lines: Vec<String> = lines.iter().map(LineId::to_string).collect();
        self.rows.iter().filter_map(move |row| Some((lines.contains(&row.line), row.words.as_deref()?)))
    }

    fn of(&self, line: LineId) -> impl Iterator<Item = &Row> {
        let line = line.to_string();
        self.rows.iter().filter(move |row| row.line == line)
    }

    fn append(&mut self, row: Row) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(&row)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.rows.push(row);
        Ok(())
    }
}

/// Puts a record aside that is not to be trusted, if there is one.
pub(super) fn quarantine(path: &Path) -> io::Result<()> {
    match std::fs::rename(path, path.with_extension("jsonl.quarantined")) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Puts aside the records that lie beside this one, by rename.
pub(super) fn put_aside_others(path: &Path) -> io::Result<()> {
    for entry in path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten() {
        let other = entry?.path();
        if other != path && other.extension().is_some_and(|extension| extension == "jsonl") {
            std::fs::rename(&other, other.with_extension("jsonl.archived"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use uuid::Uuid;

    use super::*;

    fn line(number: u128) -> LineId {
        LineId(Uuid::from_u128(number))
    }

    #[test]
    fn what_was_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("eir/session.jsonl");
        assert!(Record::open(&path).unwrap().is_none());
        let mut record = Record::create(&path).unwrap();
        record.heard(line(1), "one\n\"two\" \u{2028}").unwrap();
        record.answered(line(1), "{}").unwrap();
        record.heard(line(2), "three").unwrap();

        let record = Record::open(&path).unwrap().unwrap();
        assert_eq!(record.words(line(1)), Some("one\n\"two\" \u{2028}"));
        assert_eq!(record.reply(line(1)), Some("{}"));
        assert_eq!((record.words(line(2)), record.reply(line(2))), (Some("three"), None));
        assert_eq!((record.words(line(3)), record.reply(line(3))), (None, None));
        let all: Vec<_> = record.all_words(&[line(2)]).collect();
        assert_eq!(all, [(false, "one\n\"two\" \u{2028}"), (true, "three")]);
    }

    #[test]
    fn only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("eir/session.jsonl");
        Record::create(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn a_torn_last_line_is_forgotten_wherever_it_was_torn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        let mut record = Record::create(&path).unwrap();
        record.heard(line(1), "whole").unwrap();
        let whole = std::fs::read(&path).unwrap().len();
        record.answered(line(1), "{\"say\":[]}").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in whole..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut record = Record::open(&path).unwrap().unwrap();
            assert_eq!((record.words(line(1)), record.reply(line(1))), (Some("whole"), None), "cut at {cut}");
            record.answered(line(1), "later").unwrap();
            let record = Record::open(&path).unwrap().unwrap();
            assert_eq!(record.reply(line(1)), Some("later"), "cut at {cut}");
        }
    }

    #[test]
    fn a_broken_line_inside_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        std::fs::write(&path, "{\"line\":\n{\"line\":\"x\"}\n").unwrap();
        assert_eq!(Record::open(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
