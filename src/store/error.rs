//! Why the store cannot be used.

use std::path::PathBuf;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("the store at {path} is in use by another persona-bridge; stop that one first")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Its folder is another user's: what is made by opening it would be ours, and closed to that user's bridge.
    #[error("the store at {path} is another user's; do this as that user")]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// It belongs to somebody else.
    #[error("the store at {path} belongs to {found}, not to {wanted}; set [store] path to another folder")]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// Another format version.
    #[error(
        "the store at {path} has format {found}, written by persona-bridge {writer}; this one reads format {wanted}"
    )]
    Version {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        wanted: u32,
        /// The version that wrote it.
        writer: String,
    },
    /// A record cannot be read back.
    #[error("the record {key} in {tree} cannot be read: {reason}")]
    Corrupt {
        /// The tree.
        tree: &'static str,
        /// The key, printable.
        key: String,
        /// Why.
        reason: String,
    },
    /// The disk says no.
    #[error("the store failed: {0}")]
    Io(String),
}

#[doc(hidden)]
impl From<sled::Error> for StoreError {
    fn from(error: sled::Error) -> Self {
        Self::Io(error.to_string())
    }
}

#[doc(hidden)]
impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}
