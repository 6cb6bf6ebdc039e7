//! Patience for the calls that the service cannot do without.

use std::time::Duration;

use super::BridgeError;
use super::shared::Shared;
use crate::homeserver::client::{CallError, CallErrorKind};

/// The longest delay between two tries.
const LONGEST: Duration = Duration::from_secs(60);

/// What work that needs both the homeserver and the store may end in, beside success.
pub(crate) enum Failed {
    Call(CallError),
    Bridge(BridgeError),
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<BridgeError> for Failed {
    fn from(error: BridgeError) -> Self {
        Self::Bridge(error)
    }
}

impl From<crate::store::StoreError> for Failed {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Bridge(error.into())
    }
}

/// Tries a call until it is answered: waits out outages and limits; answers `None` when the service stops meanwhile.
///
/// What is refused for good is the caller's to judge.
pub(crate) async fn patiently<T, F>(shared: &Shared, call: impl Fn() -> F) -> Option<Result<T, CallError>>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut tries = 0_u32;
    loop {
        let error = match call().await {
            Ok(answer) => return Some(Ok(answer)),
            Err(error) => error,
        };
        let delay = match error.kind {
            CallErrorKind::Limited(after) => after,
            CallErrorKind::NotSent | CallErrorKind::Uncertain | CallErrorKind::Server => backoff(tries),
            CallErrorKind::Unauthorized
            | CallErrorKind::Forbidden
            | CallErrorKind::NotFound
            | CallErrorKind::TooLarge
            | CallErrorKind::Already
            | CallErrorKind::Refused => return Some(Err(error)),
        };
        if shared.readiness.say("homeserver", &format!("the homeserver does not answer: {error}")) {
            tracing::warn!(%error, "the homeserver does not answer; trying again");
        }
        tries = tries.saturating_add(1);
        let wake = shared.clock.now().plus(delay);
        tokio::select! {
            () = shared.soft.cancelled() => return None,
            () = shared.clock.sleep_until(Some(wake)) => {}
        }
    }
}

/// 1 s, doubling, at most a minute.
fn backoff(tries: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(tries.min(16))).min(LONGEST)
}

/// A refused call as the reason why the service cannot run.
pub(crate) fn fatal(error: CallError, remedy: &str) -> BridgeError {
    if error.kind == CallErrorKind::Unauthorized {
        BridgeError::TokenRefused { error }
    } else {
        BridgeError::Homeserver { error, remedy: remedy.to_owned() }
    }
}
