//! Watches whether the homeserver can reach us: pings while nothing comes or the last ping failed, and nudges a
//! server without a retry timer.

use std::sync::Arc;
use std::time::Duration;

use super::BridgeError;
use super::clock::draw;
use super::shared::{Poke, Shared};
use crate::homeserver::client::{CallError, CallErrorKind, Mode};

/// Silence after which the homeserver is asked to ping us.
const QUIET: Duration = Duration::from_secs(60);
/// How soon a failed ping is repeated at first: each connection to a bridge that is gone fails once at the homeserver.
const SOON: Duration = Duration::from_millis(500);
/// How many failures in a row are repeated that soon.
const HASTE: u32 = 8;
/// How often a server that was found behind is nudged.
const NUDGE: Duration = Duration::from_secs(30);

/// Pings at once, then while silent or after a failure; until the service has drained.
pub(crate) async fn run(shared: Arc<Shared>) -> Result<(), BridgeError> {
    let mut good = None;
    let mut failures = 0;
    loop {
        let now = shared.clock.now();
        let mut limit = Duration::ZERO;
        if good != Some(true) || now.since(shared.last_transaction()) >= QUIET {
            let answer = match ping(&shared).await {
                Ok(answer) => answer,
                Err(after) => {
                    limit = after;
                    good == Some(true)
                }
            };
            if good.is_some_and(|before| before != answer) {
                tracing::info!(reached = answer, "the ping's answer changed, reading all rooms back");
                shared.poke(Poke::All);
            }
            good = Some(answer);
            failures = if answer { 0 } else { failures + 1 };
        }
        if shared.is_behind() || (shared.mode() == Mode::Token && good == Some(false)) {
            limit = limit.max(nudge(&shared).await);
        }
        let pause = if (1..HASTE).contains(&failures) { SOON } else { NUDGE }.max(limit);
        tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            () = shared.clock.sleep_until(Some(shared.clock.now().plus(pause))) => {}
        }
    }
}

/// Whether the homeserver reaches us, or how long it wants to be left alone.
async fn ping(shared: &Shared) -> Result<bool, Duration> {
    let txn = draw().to_string();
    match shared.client.ping(&shared.config.appservice, &txn).await {
        Ok(took) => {
            tracing::debug!(?took, "the homeserver reaches us");
            shared.readiness.clear("ping");
            Ok(true)
        }
        Err(CallError { kind: CallErrorKind::Limited(after), .. }) => Err(after),
        Err(error) => {
            let reason = if error.kind == CallErrorKind::NotSent {
                "the homeserver cannot be reached".to_owned()
            } else {
                let (status, errcode) = (error.status, &error.errcode);
                format!("the homeserver does not reach us ({status} {errcode}); see `persona-bridge doctor`")
            };
            if shared.readiness.say("ping", &reason) {
                tracing::warn!(%error, "the homeserver does not reach us");
            }
            Ok(false)
        }
    }
}

/// A state event of the bot in its control room makes such a server try its queue again; answers how long it wants to be
/// left alone.
async fn nudge(shared: &Shared) -> Duration {
    let Ok(Some(room)) = shared.store.control_room() else { return Duration::ZERO };
    let bot = shared.identity(&shared.config.bot);
    let body = format!(r#"{{"at":{}}}"#, shared.clock.now().0);
    match shared.client.send_state(&bot, &room, "dev.persona_bridge.nudge", "", &body).await {
        Ok(_) => Duration::ZERO,
        Err(error) => {
            tracing::debug!(%error, "the nudge was not taken");
            if let CallErrorKind::Limited(after) = error.kind { after } else { Duration::ZERO }
        }
    }
}
