//! Asks now and then whether an account that was refused is taken again; then everybody who was held for it goes on.

use std::sync::Arc;

use super::clock::{draw, draw_turn};
use super::shared::Shared;
use super::{BridgeError, Config, PersonaConfig};
use crate::conversation::{LineId, Persona, PersonaId};
use crate::mind::{Feed, MindCommand, MindEvent, MindHandle};
use crate::persona::probe::{ACCOUNT, shows_access};
use crate::persona::session::{Entry, EntryKind, Session, Tokens, Usd};
use crate::persona::{Ending, Usage};
use crate::store::Books;

/// What the model is told, and asked.
const PROMPT: &str = "Answer with one word.";
const QUESTION: &str = "ok?";

/// In whose name the account is asked: nobody's, without doctrine and rooms.
pub(crate) fn account(config: &Config) -> PersonaConfig {
    let persona = Persona { id: id(), user: config.bot.clone(), name: "account".to_owned() };
    PersonaConfig { persona, avatar: None, doctrine: Vec::new(), state: None, rooms: Vec::new() }
}

fn id() -> PersonaId {
    PersonaId(ACCOUNT.to_owned())
}

/// Asks when it is due, by a mind of its own, until the service stops.
pub(crate) async fn run(shared: Arc<Shared>, mut mind: MindHandle) -> Result<(), BridgeError> {
    loop {
        let due = shared.access().due();
        tokio::select! {
            biased;
            () = shared.soft.cancelled() => break,
            () = shared.refusals.notified() => continue,
            () = shared.clock.sleep_until(due) => {}
        }
        if shared.brake().all {
            // Nothing is asked; after another period it is looked at again.
            shared.access().refused(shared.clock.now());
            continue;
        }
        let asked = tokio::select! {
            biased;
            () = shared.soft.cancelled() => break,
            asked = ask(&shared, &mut mind) => asked?,
        };
        settle(&shared, asked).await?;
    }
    drop(mind);
    shared.drained.cancelled().await;
    Ok(())
}

async fn ask(shared: &Shared, mind: &mut MindHandle) -> Result<(Ending, Usage), BridgeError> {
    let gone = || BridgeError::Task { name: "mind of the account".to_owned() };
    let now = shared.clock.now();
    let line = LineId::derive(draw_turn(), 1);
    let feed = Feed::single(Session::fresh(draw(), now), line, PROMPT, QUESTION, now);
    mind.commands.send(MindCommand::Probe(Box::new(feed))).await.map_err(|_| gone())?;
    loop {
        match mind.events.recv().await.ok_or_else(gone)? {
            MindEvent::Probed { ending, usage } => return Ok((ending, usage)),
            MindEvent::Heard { .. }
            | MindEvent::TurnEnded { .. }
            | MindEvent::Pinged { .. }
            | MindEvent::Weighed { .. }
            | MindEvent::Exited { .. }
            | MindEvent::Poisoned { .. }
            | MindEvent::Version { .. }
            | MindEvent::Notice { .. } => {}
        }
    }
}

/// Writes a probe down, and lets everybody go on where the account is taken.
async fn settle(shared: &Shared, (ending, usage): (Ending, Usage)) -> Result<(), BridgeError> {
    let (now, answered) = (shared.clock.now(), shows_access(&ending));
    tracing::info!(answered, "the account was asked about");
    let (tokens, money) =
        usage.first_paid(&shared.config.prices).unwrap_or((Tokens::default(), Some(Usd::default())));
    shared.spend().add(&id(), money.unwrap_or_default(), now);
    let entry = Entry { persona: id(), at: now, kind: EntryKind::Probe { tokens, money, answered } };
    shared.store.book(&id(), Books { session: None, ledger: vec![entry] }).await?;
    if answered {
        return shared.account_taken().await;
    }
    shared.access().refused(now);
    Ok(())
}
