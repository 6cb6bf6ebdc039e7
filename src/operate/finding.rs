//! One line of a check: what was looked at, how it is, and what to do.

use std::fmt;

use super::ExitCode;

/// What one look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub line: &'static str,
    /// How it is.
    pub mark: Mark,
    /// What was seen, or why it is not well.
    pub cause: String,
    /// What to do; empty where there is nothing to do.
    pub remedy: String,
}

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Well.
    Ok,
    /// Neither well nor unwell; good to know.
    Info,
    /// It works, but not as it should.
    Warn,
    /// It does not work; this is how the process ends.
    Fail(ExitCode),
}

impl Finding {
    /// All is well with it.
    pub fn ok(line: &'static str, cause: impl Into<String>) -> Self {
        Self { line, mark: Mark::Ok, cause: cause.into(), remedy: String::new() }
    }

    /// Something good to know.
    pub fn info(line: &'static str, cause: impl Into<String>) -> Self {
        Self { line, mark: Mark::Info, cause: cause.into(), remedy: String::new() }
    }

    /// Something unwise.
    pub fn warn(line: &'static str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { line, mark: Mark::Warn, cause: cause.into(), remedy: remedy.into() }
    }

    /// Something that does not work.
    pub fn fail(
        line: &'static str,
        code: ExitCode,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { line, mark: Mark::Fail(code), cause: cause.into(), remedy: remedy.into() }
    }

    /// How the process ends because of it.
    pub fn code(&self) -> ExitCode {
        match self.mark {
            Mark::Ok | Mark::Info | Mark::Warn => ExitCode::Ok,
            Mark::Fail(code) => code,
        }
    }
}

/// How the process ends: by the first failure.
pub fn code(findings: &[Finding]) -> ExitCode {
    findings.iter().map(Finding::code).find(|code| *code != ExitCode::Ok).unwrap_or(ExitCode::Ok)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.mark {
            Mark::Ok => "ok",
            Mark::Info => "info",
            Mark::Warn => "WARN",
            Mark::Fail(_) => "FAIL",
        };
        write!(f, "{mark:4} {}: {}", self.line, self.cause)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line() {
        let ok = Finding::ok("token", "accepted");
        let warn = Finding::warn("clock", "is late", "set it");
        let fail = Finding::fail("ping", ExitCode::BridgeUnreachable, "no way", "open it");
        assert_eq!(ok.to_string(), "ok   token: accepted");
        assert_eq!(warn.to_string(), "WARN clock: is late; set it");
        assert_eq!(fail.to_string(), "FAIL ping: no way; open it");
    }

    #[test]
    fn the_first_failure_decides() {
        let fail = |code| Finding::fail("x", code, "", "");
        let (ok, warn) = (Finding::ok("x", ""), Finding::warn("x", "", ""));
        assert_eq!(code(&[]), ExitCode::Ok);
        assert_eq!(code(&[ok.clone(), warn.clone()]), ExitCode::Ok);
        let findings = [ok, warn, fail(ExitCode::StoreFailed), fail(ExitCode::ConfigRead)];
        assert_eq!(code(&findings), ExitCode::StoreFailed);
    }
}
