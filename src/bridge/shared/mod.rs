//! What the bridge's tasks share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ruma::{OwnedRoomAliasId, OwnedRoomId, OwnedUserId, UserId};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::directory::Directory;
use super::presence::Signal;
use super::readiness::Readiness;
use super::slots::{Slots, ToClose};
use super::spend::Spend;
use super::tally::Tally;
use super::watched::Watched;
use super::{BridgeError, Config};
use crate::conversation::{Millis, PersonaId, RequestId};
use crate::homeserver::client::{Client, Identity, Mode};
use crate::homeserver::content;
use crate::homeserver::event::REQUEST_KEY;
use crate::persona::budget::day_of;
use crate::persona::places::Wish;
use crate::persona::probe::Access;
use crate::persona::{Brake, LaneMail};
use crate::store::{NewSay, Store, StoreError, Waiting};

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
            brake: Mutex::default(),
            spend: Mutex::new(Spend::of_ledger(&store.ledger(day_of(clock.now()))?, clock.now())),
            access: Mutex::default(),
            refusals: Notify::new(),
            limit: Mutex::default(),
            directory: Mutex::new(Directory::load(&config, &store)?),
            readiness,
            slots: Slots::new(config.places),
            tally,
            bells,
            outbox: Notify::new(),
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

    pub(crate) fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Configured rooms that could not be joined at start.
    pub(crate) fn unjoined(&self) -> MutexGuard<'_, BTreeSet<(PersonaId, OwnedRoomAliasId)>> {
        self.unjoined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rooms whose members could not be read when a Persona took her seat.
    pub(crate) fn memberless(&self) -> MutexGuard<'_, BTreeSet<OwnedRoomId>> {
        self.memberless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a direct room is known to be marked as such with the server.
    pub(crate) fn is_marked_direct(&self, persona: &PersonaId, room: &OwnedRoomId) -> bool {
        let marked = self.marked_direct.lock().unwrap_or_else(PoisonError::into_inner);
        marked.contains(&(persona.clone(), room.clone()))
    }

    /// A direct room is marked as such with the server.
    pub(crate) fn note_marked_direct(&self, persona: &PersonaId, room: &OwnedRoomId) {
        let mut marked = self.marked_direct.lock().unwrap_or_else(PoisonError::into_inner);
        marked.insert((persona.clone(), room.clone()));
    }

    /// Reading a room has caught up: its mail may be fed.
    pub(crate) fn caught_up(&self, room: &OwnedRoomId) {
        let seated: Vec<PersonaId> = {
            let mut directory = self.directory();
            directory.set_marked(room);
            directory.room(room).map(|room| room.seats.keys().cloned().collect()).unwrap_or_default()
        };
        for persona in &seated {
            self.wake(persona);
        }
    }

    /// The heads of a Persona's mail that may be fed: of rooms whose reading has caught up, and of rooms she has lost.
    pub(crate) fn ready_mail(&self, persona: &PersonaId) -> Result<Vec<Waiting>, BridgeError> {
        let waiting = self.store.waiting(persona)?;
        let directory = self.directory();
        Ok(waiting.into_iter().filter(|mail| directory.is_ready(persona, &mail.room)).collect())
    }

    /// The lanes of that mail.
    pub(crate) fn ready_lanes(&self, persona: &PersonaId) -> Result<Vec<LaneMail>, BridgeError> {
        let directory = self.directory();
        Ok(self.store.lanes(persona, |room| directory.is_ready(persona, room))?)
    }

    /// Reads whom the operator's brake holds; where that cannot be read it holds everyone.
    pub(crate) fn read_brake(&self) -> Result<(), BridgeError> {
        let brake = match self.store.brake() {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(%error, "whom the brake holds cannot be read: it holds everyone");
                Brake::everyone()
            }
            read => read?,
        };
        match brake.held() {
            Some(held) => {
                let text = format!("the brake holds {held}: nothing is asked until `brake release`");
                if self.readiness.say("brake", &text) {
                    tracing::warn!("{text}");
                }
            }
            None => drop(self.readiness.clear("brake")),
        }
        *self.brake.lock().unwrap_or_else(PoisonError::into_inner) = brake;
        Ok(())
    }

    /// What is spent today.
    pub(crate) fn spend(&self) -> MutexGuard<'_, Spend> {
        self.spend.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the account.
    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account was refused to somebody.
    pub(crate) fn account_refused(&self) {
        self.access().refused(self.clock.now());
        self.refusals.notify_one();
    }

    /// The API takes the account: whoever was held because it did not goes on.
    pub(crate) async fn account_taken(&self) -> Result<(), BridgeError> {
        if !self.access().taken() {
            return Ok(());
        }
        self.refusals.notify_one();
        self.bells.values().for_each(|bell| bell.taken.store(true, Ordering::Relaxed));
        self.wake_all();
        let key = format!("account:{}", self.clock.now().0);
        self.note(&key, "the API takes the account again: whoever was not asked any more goes on").await
    }

    /// The API asks to wait until then; answers whether no such wait is known that still lasts.
    pub(crate) fn note_limit(&self, now: Millis, until: Millis) -> bool {
        let mut known = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known <= now;
        *known = until.max(*known);
        is_new
    }

    /// Whom the operator's brake holds.
    pub(crate) fn brake(&self) -> MutexGuard<'_, Brake> {
        self.brake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a Persona's loop.
    pub(crate) fn wake(&self, persona: &PersonaId) {
        if let Some(bell) = self.bells.get(persona) {
            bell.wake.notify_one();
        }
    }

    /// Wakes every Persona's loop.
    pub(crate) fn wake_all(&self) {
        for bell in self.bells.values() {
            bell.wake.notify_one();
        }
    }

    /// Takes a place to think for a Persona, or has others make room for her: whether she may now.
    pub(crate) fn takes_place(&self, persona: &PersonaId, wish: Wish) -> bool {
        let (granted, close) = self.slots.take(persona, wish, self.clock.now());
        self.ask_to_close(&close);
        granted
    }

    /// A Persona's mind, if it lives, has nothing to do from now on.
    pub(crate) fn rests(&self, persona: &PersonaId) {
        self.ask_to_close(&self.slots.rests(persona, self.clock.now()));
    }

    /// A Persona has nothing to think about: who waited behind her does so no longer.
    pub(crate) fn wants_no_place(&self, persona: &PersonaId) {
        if self.slots.withdraw(persona) {
            self.wake_all();
        }
    }

    /// Asks the loops of Personas to close their idle minds.
    fn ask_to_close(&self, personas: &ToClose) {
        for bell in personas.iter().filter_map(|persona| self.bells.get(persona)) {
            bell.close.store(true, Ordering::Relaxed);
            bell.wake.notify_one();
        }
    }

    /// Asks for a pass; without a reconciler any more there is nothing to ask.
    pub(crate) fn poke(&self, poke: Poke) {
        let _ = self.pokes.send(poke);
    }

    /// The identity a user's calls are made with; before it is established, plain masquerading.
    pub(crate) fn identity(&self, user: &UserId) -> Identity {
        let known = self.identities.lock().unwrap_or_else(PoisonError::into_inner).get(user).cloned();
        known.unwrap_or_else(|| Identity { user: user.to_owned(), device: None, token: None })
    }

    pub(crate) fn set_identity(&self, identity: Identity) {
        let mut identities = self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        identities.insert(identity.user.clone(), identity);
    }

    pub(crate) fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// A transaction came: the homeserver reaches us.
    pub(crate) fn note_transaction(&self) {
        self.last_transaction.store(self.clock.now().0, Ordering::Relaxed);
        self.missed.store(false, Ordering::Relaxed);
    }

    /// When the last transaction came, or the service began.
    pub(crate) fn last_transaction(&self) -> Millis {
        Millis(self.last_transaction.load(Ordering::Relaxed))
    }

    /// How often the homeserver fell silent.
    pub(crate) fn outages(&self) -> u64 {
        self.outages.load(Ordering::Relaxed)
    }

    /// Reading back found what no transaction brought.
    pub(crate) fn note_missed(&self) {
        self.missed.store(true, Ordering::Relaxed);
    }

    /// Whether a homeserver without a retry timer may hold something back: it does so after a failure, until its delay
    /// is over and something new happens. A transaction shows that it does not.
    pub(crate) fn is_behind(&self) -> bool {
        self.mode() == Mode::Token && self.missed.load(Ordering::Relaxed)
    }

    /// The user of a Persona.
    pub(crate) fn user_of(&self, persona: &PersonaId) -> Option<OwnedUserId> {
        let configured = self.config.personas.iter().find(|p| p.persona.id == *persona);
        configured.map(|p| p.persona.user.clone())
    }

    /// A say with its request id derived and its body frozen.
    pub(crate) fn say(&self, sender: &UserId, target: SayTarget<'_>, content: &serde_json::Value) -> NewSay {
        let SayTarget { room, kind, cause, part } = target;
        let request = RequestId::derive(self.store.epoch(), sender, room, cause, kind, part);
        NewSay {
            sender: sender.to_owned(),
            room: room.clone(),
            body: content::freeze(content, &request),
            request,
            kind: kind.to_owned(),
            cause: cause.to_owned(),
            part: part.to_owned(),
        }
    }

    /// Tells operators once for `key`: a warning in the log and a notice in the control room.
    pub(crate) async fn tell(&self, key: &str, text: &str) -> Result<(), BridgeError> {
        tracing::warn!(key, "{text}");
        self.put_notice(key, text).await
    }

    /// Like [`Shared::tell`], of what goes as it should.
    pub(crate) async fn note(&self, key: &str, text: &str) -> Result<(), BridgeError> {
        tracing::info!(key, "{text}");
        self.put_notice(key, text).await
    }

    async fn put_notice(&self, key: &str, text: &str) -> Result<(), BridgeError> {
        if let Some((key, says)) = self.control_notice(key, text)?
            && self.store.say_once(key, says, self.clock.now()).await?
        {
            self.outbox.notify_one();
        }
        Ok(())
    }

    /// Like [`Shared::tell`], for who puts the notice into the store together with something else.
    pub(crate) fn telling(
        &self,
        key: &str,
        text: &str,
    ) -> Result<Option<(String, Vec<NewSay>)>, BridgeError> {
        tracing::warn!(key, "{text}");
        self.control_notice(key, text)
    }

    fn control_notice(&self, key: &str, text: &str) -> Result<Option<(String, Vec<NewSay>)>, BridgeError> {
        let Some(room) = self.store.control_room()? else { return Ok(None) };
        let cause = format!("told:{key}");
        let target = SayTarget { room: &room, kind: "m.room.message", cause: &cause, part: "0" };
        let say = self.say(&self.config.bot, target, &notice(text));
        Ok(Some((cause, vec![say])))
    }
}

/// Where a say goes and what it is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SayTarget<'a> {
    pub(crate) room: &'a OwnedRoomId,
    pub(crate) kind: &'a str,
    pub(crate) cause: &'a str,
    pub(crate) part: &'a str,
}

/// A plain `m.notice`.
pub(crate) fn notice(text: &str) -> serde_json::Value {
    serde_json::json!({ "msgtype": "m.notice", "body": text, "m.mentions": {} })
}

/// Reads our request id back out of a frozen body and gives the content without it.
pub(crate) fn thaw(body: &str) -> Option<serde_json::Value> {
    let mut content: serde_json::Value = serde_json::from_str(body).ok()?;
    content.as_object_mut()?.remove(REQUEST_KEY);
    Some(content)
}
