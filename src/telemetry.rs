//! Logs, to standard error. Nothing secret is put into a field, so nothing needs to be taken out.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For eyes.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Which lines are written and how.
#[derive(Clone, Debug, clap::Args)]
pub struct LogOptions {
    /// How log lines look
    #[arg(long, global = true, value_enum, default_value = "pretty", help_heading = "Logging")]
    pub log_format: LogFormat,
    /// What is logged: a level (error, warn, info, debug, trace), or levels by module such as
    /// "info,persona_bridge::homeserver=debug". DEBUG and below may show words of users
    #[arg(long, global = true, value_name = "LEVEL", default_value = "info", help_heading = "Logging")]
    pub log: String,
}

/// Why logging cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level is not one.
    #[error("--log {given}: {reason}; write error, warn, info, debug, trace, or module=level")]
    Level {
        /// What was given.
        given: String,
        /// Why it is not one.
        reason: String,
    },
    /// Logging was begun before.
    #[error("logging was begun twice")]
    Twice,
}

/// Begins logging to standard error.
///
/// # Errors
/// The level is not one, or logging was begun before.
pub fn begin(options: &LogOptions) -> Result<(), TelemetryError> {
    let filter = filter(&options.log)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::NONE);
    let begun = match options.log_format {
        LogFormat::Pretty => {
            subscriber.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
        }
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    begun.map_err(|_| TelemetryError::Twice)
}

fn filter(text: &str) -> Result<EnvFilter, TelemetryError> {
    let level = |error: &dyn std::fmt::Display| TelemetryError::Level {
        given: text.into(),
        reason: error.to_string(),
    };
    let known = ["off", "error", "warn", "info", "debug", "trace"];
    if !text.contains(['=', ',']) && !known.contains(&text.to_lowercase().as_str()) {
        return Err(level(&"not a level"));
    }
    EnvFilter::builder().parse(text).map_err(|error| level(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_checked() {
        for (text, good) in [
            ("info", true),
            ("WARN", true),
            ("off", true),
            ("info,persona_bridge=debug", true),
            ("persona_bridge::store=trace", true),
            ("loud", false),
            ("persona_bridge=loud", false),
            ("", false),
        ] {
            assert_eq!(filter(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_bad_level_says_what_to_write() {
        let error = filter("loud").expect_err("not a level").to_string();
        assert_eq!(error, "--log loud: not a level; write error, warn, info, debug, trace, or module=level");
    }
}
