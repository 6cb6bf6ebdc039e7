//! From what a probe answered to what is wrong and what to do. Pure.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ruma::{OwnedEventId, OwnedServerName, OwnedUserId};

use super::super::{ExitCode, Finding};
use crate::homeserver::client::{CallError, CallErrorKind, Mode};
use crate::mind::claude::{Breach, PINNED_VERSION};
use crate::store::StoreError;

/// What a probe answered.
#[derive(Debug)]
pub enum ProbeAnswer {
    /// GET /versions at a URL.
    Versions(String, Result<Vec<String>, CallError>),
    /// How far the homeserver's clock is ahead of ours, in seconds.
    Clock(Option<i64>),
    /// whoami as the bot.
    Bot(OwnedUserId, OwnedServerName, Result<OwnedUserId, CallError>),
    /// whoami as a Persona.
    Persona(OwnedUserId, Result<OwnedUserId, CallError>),
    /// How ghosts may speak.
    Device(Result<Mode, CallError>),
    /// The ping there and back.
    Ping(Ping),
    /// The same transaction id twice in a scratch room.
    Twice(Result<(OwnedEventId, OwnedEventId), CallError>),
    /// The claude program's version.
    Program(Result<String, String>),
    /// Whether the claude program starts with our arguments and says hello.
    Handshake(Result<(), String>),
    /// Which points of what a mind relies on the claude program does not keep.
    Contract(Vec<Breach>),
    /// Whether the running bridge is ready, else why not.
    Ready(Result<(), Vec<String>>),
    /// Whom the operator's brake holds, or why that cannot be read.
    Brake(Result<Option<String>, String>),
    /// The store's folder.
    Store(PathBuf, StoreAnswer),
    /// Free bytes, and how many there must be.
    Disk(PathBuf, Result<u64, String>, u64),
    /// Whether rooms may be encrypted.
    Encryption,
}

/// What the ping met.
#[derive(Debug)]
pub struct Ping {
    /// Where the homeserver looks for the bridge.
    pub url: String,
    /// Where the bridge listens.
    pub listen: SocketAddr,
    /// Who had an ear there.
    pub ear: Ear,
    /// What the homeserver said.
    pub answer: Result<Duration, CallError>,
}

/// Who had an ear at the bridge's address during the ping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ear {
    /// The doctor; with the status it answered the ping with, if one came.
    Ours(Option<u16>),
    /// Another process: the running bridge, or a stranger.
    Theirs,
    /// Nobody: it cannot be bound.
    Unbound(String),
}

/// What became of opening the store.
#[derive(Debug)]
pub enum StoreAnswer {
    /// It is good.
    Opened,
    /// There is none yet, and one can be made.
    New,
    /// It cannot be written.
    Unwritable(String),
    /// It was refused; `true` where another process has the bridge's address.
    Refused(StoreError, bool),
}

/// The newest spec version that is needed: pings came with it.
const NEEDED: &str = "v1.7";

/// Says what an answer means.
pub fn diagnose(answer: ProbeAnswer) -> Finding {
    match answer {
        ProbeAnswer::Versions(url, answer) => versions(&url, answer),
        ProbeAnswer::Clock(ahead) => clock(ahead),
        ProbeAnswer::Bot(bot, server, answer) => super::identity::bot(&bot, &server, answer),
        ProbeAnswer::Persona(user, answer) => super::identity::persona(&user, answer),
        ProbeAnswer::Device(answer) => device(answer),
        ProbeAnswer::Ping(ping) => super::ping::ping(&ping),
        ProbeAnswer::Twice(answer) => twice(answer),
        ProbeAnswer::Program(answer) => program(answer),
        ProbeAnswer::Handshake(answer) => handshake(answer),
        ProbeAnswer::Contract(breaches) => contract(&breaches),
        ProbeAnswer::Ready(Ok(())) => Finding::ok("ready", "the running bridge is ready"),
        ProbeAnswer::Ready(Err(reasons)) => Finding::warn(
            "ready",
            format!("the running bridge is not ready: {}", reasons.join("; ")),
            "see docs/operating.md for what each means",
        ),
        ProbeAnswer::Brake(held) => brake(held),
        ProbeAnswer::Store(path, answer) => store(&path.display().to_string(), answer),
        ProbeAnswer::Disk(path, free, min_free) => disk(&path.display().to_string(), free, min_free),
        ProbeAnswer::Encryption => Finding::info(
            "encryption",
            "Personas cannot read encrypted rooms yet; there they say so once, and speak in plain rooms and chats",
        ),
    }
}

fn brake(held: Result<Option<String>, String>) -> Finding {
    let remedy = "let go with `persona-bridge brake release` when she may be asked again";
    match held {
        Ok(None) => Finding::ok("brake", "it holds nobody"),
        Ok(Some(held)) => Finding::warn("brake", format!("it holds {held}: nothing will be asked"), remedy),
        Err(error) => Finding::warn("brake", format!("it holds everyone, since {error}"), remedy),
    }
}

fn versions(url: &str, answer: Result<Vec<String>, CallError>) -> Finding {
    const LINE: &str = "homeserver";
    match answer {
        Ok(versions) if versions.iter().any(|version| version == NEEDED) => {
            Finding::ok(LINE, format!("answers at {url}"))
        }
        Ok(versions) => Finding::fail(
            LINE,
            ExitCode::Unsupported,
            format!("speaks Matrix only up to {}", versions.last().map_or("(nothing)", String::as_str)),
            format!("update it to one that speaks {NEEDED}"),
        ),
        Err(error) if error.status == 0 => Finding::fail(
            LINE,
            ExitCode::HomeserverUnreachable,
            format!("{url} cannot be reached ({})", error.message),
            "start the homeserver, or mend [homeserver] url",
        ),
        Err(error) => Finding::fail(
            LINE,
            ExitCode::HomeserverUnreachable,
            format!("{url} is answered, but by no Matrix homeserver ({})", said(&error)),
            "mend [homeserver] url: it is the address of the client API, without /_matrix",
        ),
    }
}

fn clock(ahead: Option<i64>) -> Finding {
    const LINE: &str = "clock";
    match ahead {
        None => Finding::info(LINE, "the homeserver does not tell the time"),
        Some(ahead) if ahead.abs() <= 60 => Finding::ok(LINE, "agrees with the homeserver's"),
        Some(ahead) => {
            let side = if ahead > 0 { "behind" } else { "ahead of" };
            let cause = format!("this machine is {} s {side} the homeserver", ahead.abs());
            Finding::warn(LINE, cause, "set both clocks by NTP; words would be marked late or early")
        }
    }
}

fn device(answer: Result<Mode, CallError>) -> Finding {
    const LINE: &str = "device";
    match answer {
        Ok(Mode::Masquerade) => Finding::ok(LINE, "Personas speak with a device of their own (masquerading)"),
        Ok(Mode::Token) => {
            Finding::ok(LINE, "Personas speak with a token of their own (no masquerading here)")
        }
        Err(error) => Finding::fail(
            LINE,
            ExitCode::Unsupported,
            format!("the homeserver gives a ghost no device ({})", said(&error)),
            "update the homeserver; see docs/operating.md for those that are known to work",
        ),
    }
}

fn twice(answer: Result<(OwnedEventId, OwnedEventId), CallError>) -> Finding {
    const LINE: &str = "idempotency";
    match answer {
        Ok((first, second)) if first == second => {
            Finding::ok(LINE, "the same transaction id twice gives one event")
        }
        Ok(_) => Finding::fail(
            LINE,
            ExitCode::Unsupported,
            "the same transaction id twice gives two events, so words could appear twice",
            "update the homeserver; see docs/operating.md for those that are known to work",
        ),
        Err(error) => Finding::warn(
            LINE,
            format!("could not be tried in the scratch room ({}: {})", error.call, said(&error)),
            "look at the homeserver's log; invite the bot again if it was taken out of that room",
        ),
    }
}

fn program(answer: Result<String, String>) -> Finding {
    const LINE: &str = "claude";
    match answer {
        Ok(version) if version == PINNED_VERSION => Finding::ok(LINE, format!("is {version}")),
        Ok(version) => Finding::warn(
            LINE,
            format!("is {version}; the bridge was measured on {PINNED_VERSION}"),
            format!("go on with care, or install {PINNED_VERSION}"),
        ),
        Err(reason) => Finding::fail(LINE, ExitCode::MindFailed, reason, pinned()),
    }
}

fn handshake(answer: Result<(), String>) -> Finding {
    const LINE: &str = "handshake";
    match answer {
        Ok(()) => Finding::ok(LINE, "claude takes our arguments and answers, without an API call"),
        Err(reason) => Finding::fail(
            LINE,
            ExitCode::MindFailed,
            format!("claude does not answer as {PINNED_VERSION} does: {reason}"),
            pinned(),
        ),
    }
}

fn contract(breaches: &[Breach]) -> Finding {
    const LINE: &str = "contract";
    let broken: Vec<String> = breaches.iter().map(Breach::to_string).collect();
    if broken.is_empty() {
        return Finding::ok(
            LINE,
            "claude thinks, records and resumes as the bridge relies on, on an API of our own",
        );
    }
    if let [Breach::Untried(_)] = breaches {
        return Finding::warn(LINE, broken.concat(), "mend that, and ask the doctor again");
    }
    let cause = format!("claude does not do as {PINNED_VERSION} does: {}", broken.join(", "));
    Finding::fail(LINE, ExitCode::MindFailed, cause, pinned())
}

/// What to do about a claude that will not do.
fn pinned() -> String {
    format!(
        "install @anthropic-ai/claude-code-linux-x64@{PINNED_VERSION} and name it in [mind.claude] program"
    )
}

fn store(path: &str, answer: StoreAnswer) -> Finding {
    const LINE: &str = "store";
    match answer {
        StoreAnswer::Opened => Finding::ok(LINE, format!("{path} is ours and can be written")),
        StoreAnswer::New => Finding::ok(LINE, format!("{path} will be made at the first start")),
        StoreAnswer::Unwritable(reason) => Finding::fail(
            LINE,
            ExitCode::StoreFailed,
            format!("{path} cannot be written ({reason})"),
            "give the bridge's user the right to, or mend [store] path",
        ),
        StoreAnswer::Refused(StoreError::Locked { .. }, true) => {
            Finding::ok(LINE, format!("{path} is in use, and so is the bridge's address: the bridge runs"))
        }
        StoreAnswer::Refused(StoreError::Locked { .. }, false) => Finding::fail(
            LINE,
            ExitCode::StoreRefused,
            format!("{path} is in use by a process that does not listen for the homeserver"),
            "find it (`fuser` on the folder) and stop it",
        ),
        StoreAnswer::Refused(error @ StoreError::Owner { .. }, _) => Finding::fail(
            LINE,
            ExitCode::StoreRefused,
            error.to_string(),
            "each bridge has a store of its own",
        ),
        StoreAnswer::Refused(error @ StoreError::Foreign { .. }, _) => Finding::fail(
            LINE,
            ExitCode::StoreRefused,
            error.to_string(),
            "ask the doctor as the user whom the bridge runs as",
        ),
        StoreAnswer::Refused(error @ StoreError::Version { .. }, _) => {
            Finding::fail(LINE, ExitCode::StoreRefused, error.to_string(), "run the version that fits it")
        }
        StoreAnswer::Refused(error @ (StoreError::Corrupt { .. } | StoreError::Io(_)), _) => Finding::fail(
            LINE,
            ExitCode::StoreFailed,
            error.to_string(),
            "look at the disk, then restore the last backup",
        ),
    }
}

fn disk(path: &str, free: Result<u64, String>, min_free: u64) -> Finding {
    const LINE: &str = "disk";
    let mib = |bytes: u64| bytes >> 20;
    match free {
        Ok(free) if free < min_free => Finding::fail(
            LINE,
            ExitCode::StoreFailed,
            format!("{} MiB are free under {path}, less than min_free ({} MiB)", mib(free), mib(min_free)),
            "make room; until then the bridge accepts nothing",
        ),
        Ok(free) if free < min_free.saturating_mul(2) => Finding::warn(
            LINE,
            format!(
                "{} MiB are free under {path}; below {} MiB nothing is accepted",
                mib(free),
                mib(min_free)
            ),
            "make room soon",
        ),
        Ok(free) => Finding::ok(LINE, format!("{} MiB are free under {path}", mib(free))),
        Err(reason) => Finding::warn(LINE, format!("{path}: {reason}"), "look at the disk"),
    }
}

/// The homeserver's own words in short.
pub(super) fn said(error: &CallError) -> String {
    let status = if error.status == 0 { String::new() } else { error.status.to_string() };
    [status.as_str(), &error.errcode, &error.message]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A call that failed because of the way there, not because of what was asked.
pub(super) fn away(line: &'static str, error: &CallError) -> Option<Finding> {
    match error.kind {
        CallErrorKind::NotSent | CallErrorKind::Uncertain => Some(Finding::fail(
            line,
            ExitCode::HomeserverUnreachable,
            format!("the homeserver gave no answer ({})", said(error)),
            "look at the homeserver's log and at what lies between",
        )),
        CallErrorKind::Limited(wait) => Some(Finding::warn(
            line,
            format!("the homeserver asks for patience ({} s)", wait.as_secs()),
            "wait, or set rate_limited: false in the registration",
        )),
        CallErrorKind::Server => Some(Finding::fail(
            line,
            ExitCode::HomeserverUnreachable,
            format!("the homeserver has a fault of its own ({})", said(error)),
            "look at the homeserver's log",
        )),
        CallErrorKind::Unauthorized
        | CallErrorKind::Forbidden
        | CallErrorKind::NotFound
        | CallErrorKind::TooLarge
        | CallErrorKind::Already
        | CallErrorKind::Refused => None,
    }
}
