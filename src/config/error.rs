//! What is wrong with a config, where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {source}; {remedy}", path = path.display(), remedy = how_to_give(path, source))]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is read, and wrong.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

/// One thing that is wrong (or, as a warning, unwise).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands.
    pub place: Place,
    /// The key, dotted; empty for the file as a whole.
    pub key: String,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
    /// What kind of thing is wrong.
    pub kind: ProblemKind,
}

/// What kind of thing is wrong; each has its own exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProblemKind {
    /// The config itself.
    #[default]
    Config,
    /// The mind's program.
    Mind,
    /// A user outside the registration's namespace.
    Namespace,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the file.
    Line(PathBuf, usize),
    /// Nowhere in the file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.cause, self.remedy)
    }
}

/// What to do about a config that could not be read.
pub fn how_to_give(path: &Path, source: &std::io::Error) -> String {
    if source.kind() == std::io::ErrorKind::NotFound {
        format!("write one with `persona-bridge example-config {}`", path.display())
    } else {
        "name a file that can be read".to_owned()
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
