//! What whoami tells about tokens, users, server and namespace. Pure.

use ruma::{OwnedUserId, ServerName, UserId};

use super::super::{ExitCode, Finding};
use super::diagnose::{away, said};
use crate::homeserver::client::{CallError, CallErrorKind};

/// Whether a refusal only means that the user was never registered; the bot is, before it is judged.
pub(super) fn unregistered(error: &CallError) -> bool {
    let words = error.message.to_lowercase();
    error.kind == CallErrorKind::Forbidden
        && (words.contains("has not registered this user") || words.contains("user does not exist"))
}

pub(super) fn bot(bot: &UserId, server: &ServerName, answer: Result<OwnedUserId, CallError>) -> Finding {
    const LINE: &str = "token";
    match answer {
        Ok(user) if user == bot => Finding::ok(LINE, format!("the homeserver knows us as {bot}")),
        Ok(user) if user.server_name() != server => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("the homeserver is {}, not {server}", user.server_name()),
            "mend [homeserver] server_name, or [homeserver] url if it leads to another homeserver",
        ),
        Ok(user) => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("the token belongs to {user}, not to {bot}"),
            "use the same registration file here and at the homeserver, and restart the homeserver",
        ),
        Err(error) if error.kind == CallErrorKind::Unauthorized => Finding::fail(
            LINE,
            ExitCode::TokenRefused,
            format!("the homeserver refuses as_token ({})", said(&error)),
            "install this very registration at the homeserver and restart it; check that [homeserver] url is the \
             right one, and that the tokens were not generated anew since",
        ),
        Err(error) if unregistered(&error) => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("the bot was registered, and the homeserver still knows no {bot} ({})", said(&error)),
            format!("{server} is not its name; mend [homeserver] server_name"),
        ),
        Err(error) if outside(&error) => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("{bot} is not ours by the homeserver's registration ({})", said(&error)),
            format!(
                "if {server} is not its name, mend [homeserver] server_name; else install this very registration \
                 and restart the homeserver"
            ),
        ),
        Err(error) => other(LINE, &error),
    }
}

pub(super) fn persona(user: &UserId, answer: Result<OwnedUserId, CallError>) -> Finding {
    const LINE: &str = "namespace";
    match answer {
        Ok(answered) if answered == user => Finding::ok(LINE, format!("{user} is ours")),
        Ok(answered) => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("asked as {user}, the homeserver answers {answered}: it does not masquerade"),
            "check that [homeserver] url leads to the homeserver itself",
        ),
        Err(error) if unregistered(&error) => {
            Finding::ok(LINE, format!("{user} is ours, and will be registered at the first start"))
        }
        Err(error) if outside(&error) => Finding::fail(
            LINE,
            ExitCode::WrongUser,
            format!("{user} is outside the namespace that the homeserver has ({})", said(&error)),
            "install this very registration and restart the homeserver; check server_name and user_prefix",
        ),
        Err(error) => other(LINE, &error),
    }
}

/// M_EXCLUSIVE (Conduit), or "cannot masquerade" (Synapse), or any other closed door.
fn outside(error: &CallError) -> bool {
    error.kind == CallErrorKind::Forbidden
}

fn other(line: &'static str, error: &CallError) -> Finding {
    away(line, error).unwrap_or_else(|| {
        Finding::fail(
            line,
            ExitCode::Unsupported,
            format!("whoami is not answered as Matrix has it ({})", said(error)),
            "check that [homeserver] url leads to the homeserver itself, and update it",
        )
    })
}
