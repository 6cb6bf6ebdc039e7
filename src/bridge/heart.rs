//! The shared beat as it falls: who is granted a turn is decided by `persona::heart`.
//!
//! What a beat grants stands in the store before anybody is woken, and is used up in the transaction that writes the turn down,
//! so that a crash neither loses it nor grants it twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::shared::Shared;
use super::{BridgeError, PersonaConfig, RoomKind};
use crate::conversation::{Lane, Millis, PersonaId, Room};
use crate::persona::budget::day_of;
use crate::persona::heart::{Beats, Fall, Standing, State};
use crate::persona::{OpenTurn, Wake};
use crate::store::{Store, StoreError};

/// How long after its start the bridge lets no beat fall: what was said while it was away is read back first.
const START: Duration = Duration::from_secs(30);

/// How the beat goes on, and what everybody is doing.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    pace: Mutex<Option<Beats>>,
    /// Before this no beat falls.
    from: Millis,
    states: Mutex<BTreeMap<PersonaId, State>>,
    /// Whether a beat that is due waits for somebody.
    waits: AtomicBool,
    changed: Notify,
}

impl Heart {
    /// Reads how it goes on; where that cannot be read, the beat begins anew.
    pub(crate) fn load(store: &Store, now: Millis) -> Result<Self, StoreError> {
        let pace = match store.beats() {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(%error, "how the beat went on cannot be read: it begins anew");
                None
            }
            read => read?,
        };
        Ok(Self { pace: Mutex::new(pace), from: now.plus(START), ..Self::default() })
    }

    /// The turn that the last beat granted her, until she has begun it.
    pub(crate) fn granted(&self, persona: &PersonaId) -> Option<(Lane, Wake)> {
        let pace = self.pace();
        let grant = pace.as_ref()?.grant.as_ref().filter(|grant| grant.persona == *persona)?;
        Some((grant.lane.clone(), grant.wake))
    }

    /// What she is doing now.
    pub(crate) fn finds(&self, persona: &PersonaId, state: State) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if states.insert(persona.clone(), state) != Some(state) {
            self.changed.notify_one();
        }
    }

    /// Mail came in: a beat that waits for somebody may be for another now.
    pub(crate) fn hears(&self) {
        if self.waits.load(Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// A turn of hers is written down.
    pub(crate) fn begun(&self, persona: &PersonaId, turn: &OpenTurn) {
        if let Some(pace) = self.pace().as_mut() {
            pace.grant.take_if(|grant| grant.is_used_by(persona, turn));
        }
    }

    fn pace(&self) -> MutexGuard<'_, Option<Beats>> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, persona: &PersonaId) -> State {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(persona).copied().unwrap_or_default()
    }
}

/// Lets beats fall until the service has drained; none once it is told to stop.
pub(crate) async fn run(shared: Arc<Shared>) -> Result<(), BridgeError> {
    if shared.heart.pace().is_none() {
        goes_on(&shared, Beats { last: shared.clock.now(), ..Beats::default() }).await?;
    }
    loop {
        if shared.soft.is_cancelled() {
            shared.drained.cancelled().await;
            return Ok(());
        }
        let due = next(&shared)?;
        let until = if due > shared.clock.now() { Some(due) } else { fall(&shared).await? };
        tokio::select! {
            () = shared.soft.cancelled() => {}
            () = shared.heart.changed.notified() => {}
            () = shared.clock.sleep_until(until) => {}
        }
    }
}

/// What is to be said of the next beat, as things are.
pub(crate) enum Outlook {
    /// It falls then at the earliest.
    Falls(Millis),
    /// It is due, and who has mail for it has cooled down then.
    Cools(Millis),
    /// It is due, and who has mail for it has a turn in hand.
    Thinks,
    /// Nobody may be asked.
    Nobody,
}

/// What is to be said of the next beat.
pub(crate) fn outlook(shared: &Shared) -> Result<Outlook, BridgeError> {
    let (due, now, standings) = (next(shared)?, shared.clock.now(), standings(shared)?);
    if standings.iter().all(|one| one.state == State::Held) {
        return Ok(Outlook::Nobody);
    }
    if due > now {
        return Ok(Outlook::Falls(due));
    }
    Ok(match shared.config.heart.fall(&standings, now, 0) {
        Fall::Later(Some(at)) => Outlook::Cools(at),
        Fall::Later(None) => Outlook::Thinks,
        Fall::Grant(_) | Fall::Nothing => Outlook::Falls(now),
    })
}

/// When the next beat falls at the earliest.
pub(crate) fn next(shared: &Shared) -> Result<Millis, BridgeError> {
    let mut rhythms = shared.store.rhythms()?;
    rhythms.retain(|persona, _| shared.bells.contains_key(persona));
    let beat = shared.config.heart.beat(rhythms.into_values());
    let now = shared.clock.now();
    Ok(shared.heart.pace().as_ref().map_or(now, |pace| pace.next(beat, now)).max(shared.heart.from))
}

/// The beat is due: it falls, unless it waits for somebody; answers when it is to be looked at again.
async fn fall(shared: &Shared) -> Result<Option<Millis>, BridgeError> {
    let (now, pace) = (shared.clock.now(), shared.heart.pace().clone().unwrap_or_default());
    let day = day_of(now);
    // Before the look, so that no mail behind it is missed.
    shared.heart.waits.store(true, Ordering::Relaxed);
    let grant = match shared.config.heart.fall(&standings(shared)?, now, pace.silences_on(day)) {
        Fall::Later(at) => return Ok(at),
        Fall::Grant(grant) => Some(grant),
        Fall::Nothing => None,
    };
    shared.heart.waits.store(false, Ordering::Relaxed);
    goes_on(shared, pace.fallen(now, day, grant.clone())).await?;
    if let Some(grant) = grant {
        tracing::info!(persona = %grant.persona, wake = ?grant.wake, "the beat falls");
        shared.wake(&grant.persona);
    }
    next(shared).map(Some)
}

async fn goes_on(shared: &Shared, pace: Beats) -> Result<(), BridgeError> {
    shared.store.set_beats(pace.clone()).await?;
    *shared.heart.pace() = Some(pace);
    Ok(())
}

fn standings(shared: &Shared) -> Result<Vec<Standing>, BridgeError> {
    let rhythms = shared.store.rhythms()?;
    let standing = |config: &PersonaConfig| {
        let persona = config.persona.id.clone();
        // At a beat nothing is heard of a room that bears nothing more of Personas.
        let lanes = shared.lanes_without(&persona, &shared.full_rooms_of(&persona))?.into_iter();
        // What wakes her comes by itself, and brings the rest of its lane along.
        let unheard =
            lanes.filter(|mail| mail.waking.is_empty()).filter_map(|mail| Some((mail.unheard?, mail.lane)));
        Ok(Standing {
            state: shared.heart.state(&persona),
            unheard: unheard.min(),
            home: home(shared, config),
            rhythm: rhythms.get(&persona).copied().unwrap_or_default(),
            persona,
        })
    };
    shared.config.personas.iter().map(standing).collect()
}

/// The lane of the first register among her rooms in which she can be heard now.
fn home(shared: &Shared, config: &PersonaConfig) -> Option<Lane> {
    let registers = config.rooms.iter().filter_map(|alias| match shared.config.rooms.get(alias)? {
        RoomKind::Register(register) => Some(Lane::Register(register.clone())),
        RoomKind::Direct => None,
    });
    let id = &config.persona.id;
    let (held, full) = (shared.held_in(id), shared.full_rooms_of(id));
    let directory = shared.directory();
    let is_open = |room: &&Room| {
        let is_shut = held.contains(&room.id) || full.contains(&room.id) || shared.stops(id, &room.id);
        !room.encrypted && !is_shut
    };
    let open = directory.rooms_of(id).filter(is_open);
    let lanes: Vec<&Lane> = open.filter_map(|room| Some(&room.seats.get(id)?.lane)).collect();
    registers.into_iter().find(|lane| lanes.contains(&lane))
}
