//! What is collected while a file is gathered: everything that is wrong or unwise, with its place.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::{Problem, ProblemKind};
use super::example;
use super::source::Source;

/// The most bytes that are read of a text that the config names.
const TEXT_MAX: u64 = 1024 * 1024;

/// The context of gathering one config.
pub(super) struct Reading<'a> {
    /// Where keys stand.
    pub(super) source: &'a Source,
    /// The folder that relative paths are relative to.
    pub(super) base: &'a Path,
    /// The environment.
    pub(super) vars: &'a BTreeMap<String, String>,
    /// Whether no mind will be started with it.
    pub(super) is_beside: bool,
    /// What is wrong so far.
    pub(super) problems: Vec<Problem>,
    /// What is unwise so far.
    pub(super) warnings: Vec<Problem>,
}

impl Reading<'_> {
    /// Notes that a key is wrong.
    pub(super) fn fail(&mut self, key: &str, cause: impl Into<String>, remedy: impl Into<String>) {
        self.fail_as(ProblemKind::Config, key, cause, remedy);
    }

    /// Notes that a key is wrong in a way of its own.
    pub(super) fn fail_as(
        &mut self,
        kind: ProblemKind,
        key: &str,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let problem = self.problem(kind, key, cause.into(), remedy.into());
        self.problems.push(problem);
    }

    /// Notes that a key is wrong and how the example writes it.
    pub(super) fn fail_as_example(&mut self, key: &str, cause: impl Into<String>) {
        self.fail(key, cause, example::hint(key));
    }

    /// Notes that a key is unwise.
    pub(super) fn warn(&mut self, key: &str, cause: impl Into<String>, remedy: impl Into<String>) {
        let problem = self.problem(ProblemKind::Config, key, cause.into(), remedy.into());
        self.warnings.push(problem);
    }

    /// A value that must be there.
    pub(super) fn required<'v, T>(&mut self, key: &str, value: Option<&'v T>) -> Option<&'v T> {
        if value.is_none() {
            self.fail_as_example(key, "is missing");
        }
        value
    }

    /// A path, relative to the file.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    /// The text of a file that the config names, of at most 1 MiB.
    ///
    /// # Errors
    /// It cannot be read, is no regular file (such as a pipe, whose opening may wait for ever), is no text, or is longer.
    pub(super) fn text(path: &Path) -> std::io::Result<String> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::Error::other("it is no regular file"));
        }
        let mut text = String::new();
        std::fs::File::open(path)?.take(TEXT_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > TEXT_MAX {
            return Err(std::io::Error::other("it is longer than 1 MiB"));
        }
        Ok(text)
    }

    fn problem(&self, kind: ProblemKind, key: &str, cause: String, remedy: String) -> Problem {
        Problem { place: self.source.place(key), key: key.into(), cause, remedy, kind }
    }
}

/// Whether a name is the example's placeholder.
pub(super) fn is_placeholder(name: &str) -> bool {
    name == "example.org" || name.ends_with(".example.org")
}
