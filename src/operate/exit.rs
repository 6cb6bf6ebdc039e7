//! Exit codes: one number a meaning, fixed for scripts and listed in docs/operating.md.

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// All is well.
    Ok = 0,
    /// Any failure without a number of its own.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The config or the registration cannot be read.
    ConfigRead = 10,
    /// The config or the registration is wrong, or something it names is missing.
    ConfigInvalid = 11,
    /// The bridge cannot reach the homeserver.
    HomeserverUnreachable = 12,
    /// The homeserver cannot reach the bridge.
    BridgeUnreachable = 13,
    /// The store cannot be read or written.
    StoreFailed = 14,
    /// The store is in use, is another user's, belongs to another bridge, or has another format.
    StoreRefused = 15,
    /// The homeserver refuses the appservice's token, or the bridge the homeserver's.
    TokenRefused = 16,
    /// The tokens belong to another user, server or namespace.
    WrongUser = 17,
    /// The homeserver is too old, or lacks what the bridge needs.
    Unsupported = 18,
    /// The mind's program is missing, too old, or does not answer as it should.
    MindFailed = 19,
}

impl ExitCode {
    /// All of them, in order.
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::ConfigRead,
        Self::ConfigInvalid,
        Self::HomeserverUnreachable,
        Self::BridgeUnreachable,
        Self::StoreFailed,
        Self::StoreRefused,
        Self::TokenRefused,
        Self::WrongUser,
        Self::Unsupported,
        Self::MindFailed,
    ];

    /// The number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What it means, as docs/operating.md has it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "All is well.",
            Self::Failed => "Any failure without a number of its own.",
            Self::Usage => "The command line is wrong.",
            Self::ConfigRead => "The config or the registration cannot be read.",
            Self::ConfigInvalid => {
                "The config or the registration is wrong, or something it names is missing."
            }
            Self::HomeserverUnreachable => "The bridge cannot reach the homeserver.",
            Self::BridgeUnreachable => "The homeserver cannot reach the bridge.",
            Self::StoreFailed => "The store cannot be read or written.",
            Self::StoreRefused => {
                "The store is in use, is another user's, belongs to another bridge or homeserver database, or has another format."
            }
            Self::TokenRefused => {
                "The homeserver refuses the appservice's token, or the bridge the homeserver's."
            }
            Self::WrongUser => "The tokens belong to another user, server or namespace.",
            Self::Unsupported => "The homeserver is too old, or lacks what the bridge needs.",
            Self::MindFailed => "The mind's program is missing, too old, or does not answer as it should.",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_are_all_listed() {
        let numbers: Vec<u8> = ExitCode::ALL.iter().map(|code| code.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn the_document_lists_every_code_with_its_meaning() {
        let document = include_str!("../../docs/operating.md");
        let rows: Vec<&str> = document
            .lines()
            .filter(|line| line.starts_with("| ") && line[2..].starts_with(char::is_numeric))
            .collect();
        let expected: Vec<String> =
            ExitCode::ALL.iter().map(|code| format!("| {} | {} |", code.number(), code.meaning())).collect();
        assert_eq!(rows, expected);
    }
}
