//! What the bridge's tasks share.

mod bells;
mod gates;
mod says;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ruma::{OwnedRoomAliasId, OwnedRoomId, OwnedUserId};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::directory::Directory;
use super::flights::Flights;
use super::heart::Heart;
use super::presence::Signal;
use super::readiness::Readiness;
use super::slots::Slots;
use super::spend::Spend;
use super::tally::Tally;
use super::typing::Typists;
use super::watched::Watched;
use super::{BridgeError, Config};
use crate::conversation::{Millis, PersonaId};
use crate::homeserver::client::{Client, Identity, Mode};
use crate::persona::budget::day_of;
use crate::persona::probe::Access;
use crate::persona::{Brake, LaneMail};
use crate::store::{Store, Waiting};
pub(crate) use says::{SayTarget, notice, thaw};

/// What a pass over the rooms is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Poke {
    /// One room.
    Room(OwnedRoomId),
    /// All rooms and invites.
    All,
}

/// An event batch on its way into the store, found by reading back.
#[derive(Debug)]
pub(crate) struct ReadBack {
    pub(crate) events: Vec<crate::conversation::Event>,
    pub(crate) unreadable: Vec<crate::homeserver::event::Unreadable>,
    pub(crate) room: OwnedRoomId,
    /// Where the mark moves with it.
    pub(crate) mark: ruma::OwnedEventId,
    /// Answers how many of the events were new.
    pub(crate) done: tokio::sync::oneshot::Sender<usize>,
}

/// An invite to be acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InviteWork {
    /// Who of us is invited: a Persona or the bot.
    pub(crate) user: OwnedUserId,
    pub(crate) room: OwnedRoomId,
    pub(crate) inviter: OwnedUserId,
    /// Whether to a direct chat.
    pub(crate) is_direct: bool,
}

/// A Persona's wake-up and what others ask of her loop.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    pub(crate) wake: Notify,
    pub(crate) close: AtomicBool,
    /// An operator wants her asked again although her account was refused.
    pub(crate) ask: AtomicBool,
    /// The account is taken again.
    pub(crate) taken: AtomicBool,
    /// Whether her mind is busy.
    pub(crate) thinks: AtomicBool,
}

/// Shared by all tasks of one bridge.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) directory: Mutex<Directory>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) slots: Slots,
    pub(crate) heart: Heart,
    typists: Mutex<Typists>,
    brake: Mutex<Brake>,
    spend: Mutex<Spend>,
    /// What is known of the account.
    access: Mutex<Access>,
    /// The account was refused, or is taken again.
    pub(crate) refusals: Notify,
    /// Until when the API has asked somebody to wait.
    limit: Mutex<Millis>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) bells: BTreeMap<PersonaId, Bell>,
    pub(crate) outbox: Notify,
    pub(crate) flights: Flights,
    /// The bot was asked something.
    pub(crate) questions: Notify,
    pub(crate) pokes: mpsc::UnboundedSender<Poke>,
    pub(crate) invites: mpsc::UnboundedSender<InviteWork>,
    pub(crate) read_back: mpsc::Sender<ReadBack>,
    pub(crate) signals: mpsc::UnboundedSender<Signal>,
    last_transaction: AtomicU64,
    missed: AtomicBool,
    outages: Arc<AtomicU64>,
    identities: Mutex<BTreeMap<OwnedUserId, Identity>>,
    unjoined: Mutex<BTreeSet<(PersonaId, OwnedRoomAliasId)>>,
    marked_direct: Mutex<BTreeSet<(PersonaId, OwnedRoomId)>>,
    memberless: Mutex<BTreeSet<OwnedRoomId>>,
    mode: Mutex<Mode>,
    /// Held while a user's `m.direct` is read and written.
    pub(crate) direct: tokio::sync::Mutex<()>,
    /// Set by the first signal: stop asking, finish, leave.
    pub(crate) soft: CancellationToken,
    /// Set when the grace is over.
    pub(crate) grace_over: CancellationToken,
    /// Set when deliver may end: all minds have left.
    pub(crate) drained: CancellationToken,
}

/// The receiving ends that belong to single tasks.
pub(crate) struct Ends {
    pub(crate) pokes: mpsc::UnboundedReceiver<Poke>,
    pub(crate) invites: mpsc::UnboundedReceiver<InviteWork>,
    pub(crate) read_back: mpsc::Receiver<ReadBack>,
    pub(crate) signals: mpsc::UnboundedReceiver<Signal>,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        store: Store,
        client: Client,
        clock: Clock,
        soft: CancellationToken,
    ) -> Result<(Arc<Self>, Ends), BridgeError> {
        let (pokes, poked) = mpsc::unbounded_channel();
        let (invites, invited) = mpsc::unbounded_channel();
        let (read_back, read) = mpsc::channel(4);
        let readiness = Arc::new(Readiness::new());
        let tally = Arc::new(Tally::default());
        let outages = Arc::new(AtomicU64::new(0));
        let watched =
            |inner| Watched::new(inner, outages.clone(), pokes.clone(), readiness.clone(), tally.clone());
        let client = client.for_run(clock.now().0).through(|inner| Arc::new(watched(inner)));
        let (signals, signalled) = mpsc::unbounded_channel();
        let bells = config.personas.iter().map(|p| (p.persona.id.clone(), Bell::default())).collect();
        let shared = Self {
            typists: Mutex::default(),
            brake: Mutex::default(),
            spend: Mutex::new(Spend::of_ledger(&store.ledger(day_of(clock.now()))?, clock.now())),
            access: Mutex::default(),
            refusals: Notify::new(),
            limit: Mutex::default(),
            directory: Mutex::new(Directory::load(&config, &store)?),
            readiness,
            slots: Slots::new(config.places),
            heart: Heart::load(&store, clock.now())?,
            tally,
            bells,
            outbox: Notify::new(),
            flights: Flights::default(),
            questions: Notify::new(),
            pokes,
            invites,
            read_back,
            signals,
            last_transaction: AtomicU64::new(clock.now().0),
            // It may have failed to reach us while we were away.
            missed: AtomicBool::new(true),
            outages,
            identities: Mutex::default(),
            unjoined: Mutex::default(),
            marked_direct: Mutex::default(),
            memberless: Mutex::default(),
            mode: Mutex::new(Mode::Masquerade),
            direct: tokio::sync::Mutex::default(),
            soft,
            grace_over: CancellationToken::new(),
            drained: CancellationToken::new(),
            config,
            store,
            client,
            clock,
        };
        shared.read_brake()?;
        Ok((Arc::new(shared), Ends { pokes: poked, invites: invited, read_back: read, signals: signalled }))
    }

    /// Who types where.
    pub(crate) fn typists(&self) -> MutexGuard<'_, Typists> {
        self.typists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reading a room has caught up: its mail may be fed.
    pub(crate) fn caught_up(&self, room: &OwnedRoomId) {
        self.directory().set_marked(room);
        self.wake_seated(room);
    }

    /// The heads of a Persona's mail that may be fed: of rooms whose reading has caught up, and of rooms she has lost; nothing of
    /// rooms in which she is stopped or held.
    pub(crate) fn ready_mail(&self, persona: &PersonaId) -> Result<Vec<Waiting>, BridgeError> {
        let (waiting, held) = (self.store.waiting(persona)?, self.held_in(persona));
        let is_ready = self.is_ready(persona, &held);
        Ok(waiting.into_iter().filter(|mail| is_ready(&mail.room)).collect())
    }

    /// The lanes of that mail.
    pub(crate) fn ready_lanes(&self, persona: &PersonaId) -> Result<Vec<LaneMail>, BridgeError> {
        self.lanes_without(persona, &BTreeSet::new())
    }

    /// The lanes of that mail, but for that of some rooms.
    pub(crate) fn lanes_without(
        &self,
        persona: &PersonaId,
        rooms: &BTreeSet<OwnedRoomId>,
    ) -> Result<Vec<LaneMail>, BridgeError> {
        let held = self.held_in(persona);
        let mut lanes = {
            let is_ready = self.is_ready(persona, &held);
            let max_hops = self.config.among.max_hops;
            self.store.lanes(persona, max_hops, |room| !rooms.contains(room) && is_ready(room))?
        };
        self.look_at_typing(&mut lanes);
        self.look_at_paces(&mut lanes);
        Ok(lanes)
    }

    /// Tells of a room whether a Persona's mail of it may be fed; holds the directory meanwhile.
    fn is_ready(&self, persona: &PersonaId, held: &BTreeSet<OwnedRoomId>) -> impl Fn(&OwnedRoomId) -> bool {
        let directory = self.directory();
        move |room| !held.contains(room) && !self.stops(persona, room) && directory.is_ready(persona, room)
    }

    /// Asks for a pass; without a reconciler any more there is nothing to ask.
    pub(crate) fn poke(&self, poke: Poke) {
        let _ = self.pokes.send(poke);
    }

    /// The user of a Persona.
    pub(crate) fn user_of(&self, persona: &PersonaId) -> Option<OwnedUserId> {
        let configured = self.config.personas.iter().find(|p| p.persona.id == *persona);
        configured.map(|p| p.persona.user.clone())
    }
}
