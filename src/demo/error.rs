//! Why the demo ended badly, in words for whoever typed the command.

use std::path::PathBuf;

use super::homeserver::HomeserverError;
use super::matrix::CallFault;

/// Why the demo ended badly.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The command cannot be carried out as it was typed.
    #[error("{0}")]
    Usage(String),
    /// Something must be installed or given first.
    #[error("{what} is missing; {remedy}")]
    Missing {
        /// What.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The homeserver of `--homeserver` does not know the appservice.
    #[error(
        "the homeserver does not know the demo's appservice yet. On Synapse add {registration} to \
         app_service_config_files in homeserver.yaml and restart it; on Conduit send its text with \
         register-appservice in the admin room. Then start the same command again"
    )]
    Unregistered {
        /// The registration file.
        registration: PathBuf,
    },
    /// A demo already runs in the folder.
    #[error("a demo already runs in {dir}; talk through it with --say, or give another --dir")]
    Running {
        /// The folder.
        dir: PathBuf,
    },
    /// The homeserver did not come up or refused something.
    #[error(transparent)]
    Homeserver(#[from] HomeserverError),
    /// The bridge did not come up, or ended.
    #[error("the bridge {what}; see {log}\n{tail}", log = log.display())]
    Bridge {
        /// What happened.
        what: String,
        /// Where its words are.
        log: PathBuf,
        /// The last of them.
        tail: String,
    },
    /// No answer came.
    #[error("{0}")]
    Silent(String),
    /// A signal ended it before it had done what it was asked.
    #[error("interrupted")]
    Interrupted,
}

/// What a failure means to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// No meaning of its own.
    Failed,
    /// The command line is wrong.
    Usage,
    /// Something that is needed is missing.
    Missing,
    /// The homeserver cannot be reached.
    HomeserverUnreachable,
    /// The homeserver does not take our token.
    TokenRefused,
}

impl DemoError {
    /// What it means to scripts.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::Usage(_) => Meaning::Usage,
            Self::Missing { .. } | Self::Homeserver(HomeserverError::Missing { .. }) => Meaning::Missing,
            Self::Unregistered { .. } => Meaning::TokenRefused,
            Self::Homeserver(HomeserverError::Call(CallFault::Unanswered { .. })) => {
                Meaning::HomeserverUnreachable
            }
            Self::Homeserver(_)
            | Self::Running { .. }
            | Self::Bridge { .. }
            | Self::Silent(_)
            | Self::Interrupted => Meaning::Failed,
        }
    }
}

impl From<CallFault> for DemoError {
    fn from(fault: CallFault) -> Self {
        Self::Homeserver(fault.into())
    }
}
