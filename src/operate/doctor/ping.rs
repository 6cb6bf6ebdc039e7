//! What a ping tells about the way from the homeserver to the bridge. Pure.

use super::super::{ExitCode, Finding};
use super::diagnose::{Ear, Ping, away, said};
use crate::homeserver::client::{CallError, CallErrorKind};

const LINE: &str = "ping";

pub(super) fn ping(ping: &Ping) -> Finding {
    let (url, listen) = (&ping.url, ping.listen);
    match (&ping.answer, &ping.ear) {
        (_, Ear::Unbound(reason)) => Finding::fail(
            LINE,
            ExitCode::ConfigInvalid,
            format!("{listen} cannot be bound ({reason})"),
            "mend [appservice] listen: it is an address of this machine",
        ),
        (Ok(took), Ear::Ours(Some(_))) => {
            Finding::ok(LINE, format!("the homeserver reaches {url} in {} ms", took.as_millis()))
        }
        (Ok(took), Ear::Theirs) => Finding::ok(
            LINE,
            format!("the homeserver reaches the bridge that runs at {url} in {} ms", took.as_millis()),
        ),
        (Ok(_), Ear::Ours(None)) => unreachable(
            format!("{url} is answered, but not by what listens at {listen}"),
            "make [appservice] url (and the registration's) lead to [appservice] listen",
        ),
        (Err(error), Ear::Ours(Some(401 | 403))) => wrong_token(error),
        (Err(error), ear) => failed(url, error, ear),
    }
}

fn failed(url: &str, error: &CallError, ear: &Ear) -> Finding {
    match error.errcode.as_str() {
        "M_BAD_STATUS" => bad_status(url, error, ear),
        "M_CONNECTION_FAILED" => unreachable(
            format!("the homeserver cannot reach {url} ({})", said(error)),
            "mend [appservice] url as seen from the homeserver's machine, then generate and install the registration",
        ),
        "M_CONNECTION_TIMEOUT" => unreachable(
            format!("{url} does not answer the homeserver in time"),
            "look for a firewall or a proxy between the homeserver and the bridge",
        ),
        "M_URL_NOT_SET" => unreachable(
            "the homeserver's registration has no url".into(),
            "generate the registration with [appservice] url set, install it and restart the homeserver",
        ),
        "M_UNRECOGNIZED" => Finding::fail(
            LINE,
            ExitCode::Unsupported,
            "the homeserver has no ping",
            "update it; without one nobody can tell whether its events arrive",
        ),
        _ => refused(url, error),
    }
}

fn bad_status(url: &str, error: &CallError, ear: &Ear) -> Finding {
    let status = error.message.split(|c: char| !c.is_ascii_digit()).find(|part| part.len() == 3);
    match (status, ear) {
        (Some("401" | "403"), Ear::Theirs) => wrong_token(error),
        (Some(status), Ear::Theirs | Ear::Ours(None) | Ear::Unbound(_)) => unreachable(
            format!("another process answers at {url} (status {status})"),
            "find who listens there, or give the bridge another port in [appservice] listen and url",
        ),
        (status, _) => unreachable(
            format!("{url} answers the homeserver's ping with status {}", status.unwrap_or("unknown")),
            "look at what lies between the homeserver and the bridge",
        ),
    }
}

fn refused(url: &str, error: &CallError) -> Finding {
    match error.kind {
        CallErrorKind::Forbidden => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("the homeserver knows our token under another id ({})", said(error)),
            "install this very registration at the homeserver and restart it",
        ),
        CallErrorKind::Unauthorized => Finding::fail(
            LINE,
            ExitCode::TokenRefused,
            format!("the homeserver refuses as_token ({})", said(error)),
            "install this very registration at the homeserver and restart it",
        ),
        CallErrorKind::NotFound => Finding::fail(
            LINE,
            ExitCode::Unsupported,
            format!("the homeserver has no ping ({})", said(error)),
            "update it, or let the proxy before it pass /_matrix/client/v1/appservice",
        ),
        CallErrorKind::NotSent
        | CallErrorKind::Uncertain
        | CallErrorKind::Limited(_)
        | CallErrorKind::TooLarge
        | CallErrorKind::Server
        | CallErrorKind::Already
        | CallErrorKind::Refused => away(LINE, error).unwrap_or_else(|| {
            unreachable(
                format!("the homeserver did not ping {url} ({})", said(error)),
                "look at the homeserver's log",
            )
        }),
    }
}

fn wrong_token(error: &CallError) -> Finding {
    Finding::fail(
        LINE,
        ExitCode::TokenRefused,
        format!("the homeserver comes with another hs_token than ours ({})", said(error)),
        "install this very registration at the homeserver and restart it",
    )
}

fn unreachable(cause: String, remedy: &str) -> Finding {
    Finding::fail(LINE, ExitCode::BridgeUnreachable, cause, remedy)
}
