//! Patience for the calls that the service cannot do without.

use std::time::Duration;

use super::BridgeError;
use super::shared::Shared;
use crate::homeserver::client::{CallError, CallErrorKind};
use crate::persona::ending::doubled;

/// The first delay between two tries; it doubles up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_secs(1);
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

/// The delay before the next try when so many failed before the last.
pub(crate) fn backoff(tries: u32) -> Duration {
    doubled(SHORTEST, tries, LONGEST)
}

/// Makes a call again for as long as the homeserver asks to wait, each time after the delay that it gives.
pub(crate) async fn unlimited<T, F>(shared: &Shared, call: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    loop {
        let error = match call().await {
            Err(error) if matches!(error.kind, CallErrorKind::Limited(_)) => error,
            other => return other,
        };
        let CallErrorKind::Limited(after) = error.kind else { return Err(error) };
        tokio::select! {
            () = shared.drained.cancelled() => return Err(error),
            () = shared.clock.sleep_until(Some(shared.clock.now().plus(after))) => {}
        }
    }
}

/// A refused call as the reason why the service cannot run.
pub(crate) fn fatal(error: CallError, remedy: &str) -> BridgeError {
    if error.kind == CallErrorKind::Unauthorized {
        BridgeError::TokenRefused { error }
    } else {
        BridgeError::Homeserver { error, remedy: remedy.to_owned() }
    }
}
