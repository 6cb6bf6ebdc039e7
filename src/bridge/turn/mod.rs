//! A turn from the open row to the committed reply.

mod conclude;
mod flush;
mod health;
mod mail;

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::BridgeError;
use super::PersonaConfig;
use super::clock::draw_turn;
use super::memories::{self, Reminded};
use super::news;
use super::presence::Presence;
use super::reminders;
use super::session::Sessions;
use super::shared::Shared;
use super::speech::{self, Spoken};
use crate::conversation::{Batch, Delivery, DeliveryKind, Lane, LineId, Millis, TurnId};
use crate::conversation::{notices, prompt};
use crate::mind::{Feed, Purpose};
use crate::persona::places::Wish;
use crate::persona::session::{Care, Moment, Reason, Session, Usd};
use crate::persona::{OpenTurn, Troubles, Usage, Wake};
pub(crate) use mail::labels_of;

/// For how long a turn's words stay as they were first put: no cache keeps them longer.
const WORDS_KEPT: Duration = Duration::from_secs(3600);

/// A Persona's turns.
pub(crate) struct Turns {
    shared: Arc<Shared>,
    persona: PersonaConfig,
    prompt: String,
    open: Option<OpenTurn>,
    sessions: Sessions,
    presence: Presence,
    reminded: Reminded,
    /// The turn whose line entered her session last, and the generation of that.
    entered: Option<(TurnId, u32)>,
}

impl Turns {
    pub(crate) fn load(shared: Arc<Shared>, persona: PersonaConfig) -> Result<Self, BridgeError> {
        let (open, session) = shared.store.standing(&persona.persona.id)?;
        let prompt = speech::system_prompt(&shared, &persona)?;
        let sessions = Sessions::new(shared.clone(), &persona, &prompt, session);
        let presence = Presence::new(shared.clone(), persona.persona.user.clone());
        let reminded = Reminded::default();
        Ok(Self { shared, persona, prompt, open, sessions, presence, reminded, entered: None })
    }

    /// When her session is to be looked at while nobody says anything.
    pub(crate) fn next_look(&self) -> Result<Option<Millis>, BridgeError> {
        if self.open.is_some() { Ok(None) } else { self.sessions.next_look() }
    }

    /// What is to be done with her session, of which nothing was asked for long.
    pub(crate) fn idle_deadline(&mut self) -> Result<Care, BridgeError> {
        if self.open.is_some() { Ok(Care::Keep) } else { self.sessions.idle_deadline() }
    }

    /// Her child was weighed, or there is none any more.
    pub(crate) fn weighs(&mut self, resident: Option<u64>) {
        self.sessions.weighs(resident);
    }

    /// The line that uses the cache once, so that it stays warm.
    pub(crate) fn ping(&self) -> Option<Feed> {
        let session = self.sessions.current()?.clone();
        let line = LineId::derive(draw_turn(), 1);
        let feed = Feed::single(session, line, &self.prompt, prompt::PING, self.shared.clock.now());
        Some(Feed { must_exist: true, ..feed })
    }

    /// A ping is over.
    pub(crate) async fn pinged(&mut self, usage: &Usage) -> Result<(), BridgeError> {
        self.sessions.pinged(usage).await
    }

    /// Whether this is the session that goes on.
    pub(crate) fn is_of(&self, session: Uuid) -> bool {
        self.sessions.current().is_some_and(|current| current.id == session)
    }

    /// The session whose file is to be put aside now, once.
    pub(crate) fn take_spoilt(&mut self) -> Option<Uuid> {
        self.sessions.take_spoilt()
    }

    /// Her mind's program says that it is of another version than the one that begun a session.
    pub(crate) fn runs_as(&mut self, session: Uuid, version: &str, begun: bool) {
        self.sessions.runs_as(session, version, begun);
    }

    /// Whether her child is of no more use until mail comes.
    pub(crate) fn is_child_spent(&self) -> bool {
        self.open.is_none() && self.sessions.is_spent()
    }

    /// The resident memory of her child in its last turn, in bytes.
    pub(crate) fn resident(&self) -> Option<u64> {
        self.sessions.current().and_then(|session| session.account.resident)
    }

    /// What she wishes to think about, as it counts among the wishes of others: what wakes her since it was heard, a reminder
    /// since it was due, else what she hears at a beat, or that without any mail since it fell.
    pub(crate) fn wish(&self) -> Result<Wish, BridgeError> {
        let (id, resident) = (&self.persona.persona.id, self.resident());
        let open = self.open.iter().flat_map(|turn| &turn.seqs).copied().collect::<Vec<u64>>();
        let open = self.shared.store.deliveries(id, &open)?;
        let lanes = self.shared.ready_lanes(id)?;
        let waiting = lanes.iter().flat_map(|lane| &lane.waking).map(|room| room.first);
        let woken =
            open.iter().filter(|delivery| delivery.wakes).map(|delivery| delivery.heard).chain(waiting);
        if let Some(first) = woken.chain(reminders::due_since(&self.shared, id, self.open.as_ref())?).min() {
            return Ok(Wish::woken(first, resident));
        }
        let unheard = lanes.iter().filter_map(|lane| lane.unheard);
        let first = open.iter().map(|delivery| delivery.heard).chain(unheard);
        let first = first.chain(self.open.as_ref().map(|turn| turn.as_of)).min();
        let since = first.unwrap_or_else(|| self.shared.clock.now());
        Ok(Wish::at_the_beat(since, self.shared.config.heart.beat, resident))
    }

    pub(crate) fn open(&self) -> Option<&OpenTurn> {
        self.open.as_ref()
    }

    /// Whether mail of the open turn is of a room in which she is stopped.
    pub(crate) fn is_stopped(&self) -> Result<bool, BridgeError> {
        let id = &self.persona.persona.id;
        let Some(turn) = self.open.as_ref().filter(|_| self.shared.brake().is_steered()) else {
            return Ok(false);
        };
        let deliveries = self.shared.store.deliveries(id, &turn.seqs)?;
        let told = reminders::of_turn(&self.shared, id, turn)?;
        Ok(deliveries.iter().any(|delivery| self.shared.stops(id, &delivery.room))
            || told.iter().any(|reminder| reminders::is_stopped(&self.shared, id, reminder)))
    }

    /// Whether the line is the one that the open turn waits for.
    pub(crate) fn is_current(&self, line: LineId) -> bool {
        self.open.as_ref().is_some_and(|turn| LineId::derive(turn.id, turn.attempt) == line)
    }

    /// Writes down a turn with the waiting mail of the lane; where a flush is due first, that.
    pub(crate) async fn begin(&mut self, lane: &Lane, wake: Wake) -> Result<(), BridgeError> {
        let id = self.persona.persona.id.clone();
        let mail = self.batch(lane)?;
        if self.withdraw_unheard(&mail).await? {
            return Ok(());
        }
        self.look_at_state()?;
        if self.flush(Moment::Mail, &mail).await? {
            return Ok(());
        }
        self.sessions.take_up(&mail).await?;
        let seqs = mail.iter().map(|delivery| delivery.seq).collect();
        let reminders = reminders::due_in(&self.shared, &id, lane)?;
        let turn = OpenTurn { wake, seqs, reminders, ..self.drawn(lane) };
        tracing::info!(persona = %id, turn = %turn.id, mail = turn.seqs.len(), ?wake, "turn begins");
        self.write(turn).await
    }

    /// A turn of the lane that is not written down yet.
    fn drawn(&self, lane: &Lane) -> OpenTurn {
        OpenTurn {
            id: draw_turn(),
            lane: lane.clone(),
            wake: Wake::Mail,
            seqs: Vec::new(),
            attempt: 1,
            not_before: Millis::default(),
            as_of: self.shared.clock.now(),
            spent: Usd::default(),
            flush: None,
            reminders: Vec::new(),
            news: None,
            troubles: Troubles::default(),
        }
    }

    /// Her state may have been changed: what a session is begun with now follows it.
    fn look_at_state(&mut self) -> Result<(), BridgeError> {
        let prompt = speech::system_prompt(&self.shared, &self.persona)?;
        if prompt != self.prompt {
            self.sessions.begin_with(&prompt);
            self.prompt = prompt;
        }
        Ok(())
    }

    async fn write(&mut self, turn: OpenTurn) -> Result<(), BridgeError> {
        let turn = self.with_news(turn)?;
        let books = self.sessions.books();
        self.shared.store.write_turn(&self.persona.persona.id, turn.clone(), books).await?;
        self.shared.heart.begun(&self.persona.persona.id, &turn);
        self.open = Some(turn);
        Ok(())
    }

    /// The turn with what it tells beside the mail to the session that goes on; fed to it again, it tells the same.
    fn with_news(&self, mut turn: OpenTurn) -> Result<OpenTurn, BridgeError> {
        let generation = self.sessions.current().map(|session| session.generation);
        let Some(generation) = generation.filter(|_| turn.flush.is_none()) else { return Ok(turn) };
        if turn.news.as_ref().is_none_or(|news| news.generation != generation) {
            let now = self.shared.clock.now();
            let mut news = news::news(&self.shared, &self.persona, &turn.lane, generation, now)?;
            news.notices.splice(..0, notices::behind(self.behind(&turn)?));
            turn.news = Some(news);
        }
        Ok(turn)
    }

    /// The turn as it ends without a reply, with what its line has told her all the same.
    fn as_told(&self, mut turn: OpenTurn) -> OpenTurn {
        turn.news.take_if(|news| self.entered != Some((turn.id, news.generation)));
        turn
    }

    /// The line to be fed; none where all of the mail was withdrawn and the turn is closed in silence.
    pub(crate) async fn feed(&mut self) -> Result<Option<Feed>, BridgeError> {
        let (Some(turn), Some(session)) = (self.open.clone(), self.sessions.current().cloned()) else {
            return Ok(None);
        };
        if turn.flush.is_some() {
            return self.feed_flush(&turn, session).map(Some);
        }
        let id = self.persona.persona.id.clone();
        let mut deliveries = self.shared.store.deliveries(&id, &turn.seqs)?;
        if self.withdraw_unheard(&deliveries).await? {
            deliveries = self.shared.store.deliveries(&id, &turn.seqs)?;
            let is_left = |delivery: &Delivery| delivery.kind != DeliveryKind::Withdrawn;
            if turn.wake == Wake::Mail && !deliveries.iter().any(|d| is_left(d) && d.wakes) {
                self.put_back().await?;
                return Ok(None);
            }
        }
        let batch = Batch { lane: turn.lane.clone(), deliveries }.settled();
        let nothing_left = batch.deliveries.iter().all(|d| d.kind == DeliveryKind::Withdrawn);
        let told = reminders::of_turn(&self.shared, &id, &turn)?;
        if nothing_left && turn.wake != Wake::Silence && told.is_empty() {
            self.close(turn).await?;
            return Ok(None);
        }
        let purpose = self.purpose(&turn, &session, &batch.deliveries)?;
        let put = turn.as_of;
        let turn = self.lately_put(turn).await?;
        self.reminded =
            memories::remind(&self.shared, &self.persona.persona.id, &session, &batch, turn.as_of)?;
        let memories = self.reminded.memories.clone();
        let surroundings =
            speech::surroundings(&self.shared, &self.persona, &batch, &session, memories, &turn).await?;
        self.reminded.shows(&surroundings.context);
        self.reminded.listed = (!surroundings.agenda.is_empty()).then_some(session.generation);
        let line = LineId::derive(turn.id, turn.attempt);
        self.presence.thinking(&batch);
        self.sessions.feeds(&batch.deliveries, put);
        let again =
            turn.troubles.fault.as_deref().map_or_else(|| prompt::RETRY.to_owned(), prompt::fault_line);
        Ok(Some(Feed {
            line,
            must_exist: session.last_committed.is_some(),
            purpose,
            session,
            prompt: self.prompt.clone(),
            whole: prompt::render(&batch, &surroundings),
            again,
            earlier: (1..turn.attempt).map(|attempt| LineId::derive(turn.id, attempt)).collect(),
            now: self.shared.clock.now(),
        }))
    }

    /// Ends a turn of which nothing is left to be fed; what it was to tell, another one tells.
    async fn close(&mut self, turn: OpenTurn) -> Result<(), BridgeError> {
        let turn = OpenTurn { news: None, ..turn };
        let books = self.sessions.books();
        self.shared.store.write_turn(&self.persona.persona.id, turn.clone(), books).await?;
        self.commit(turn, Spoken::default(), None).await
    }

    /// What the turn is fed for: one that has cost all that one may is only settled.
    fn purpose(&self, turn: &OpenTurn, session: &Session, mail: &[Delivery]) -> Result<Purpose, BridgeError> {
        let has_cost = turn.spent > Usd::default();
        if has_cost && !self.shared.config.budget.allows_another_try(turn.spent) {
            return Ok(Purpose::Settle(Reason::Budget));
        }
        self.sessions.purpose(session, mail)
    }

    /// The turn with words that are not put too long ago.
    async fn lately_put(&mut self, turn: OpenTurn) -> Result<OpenTurn, BridgeError> {
        let now = self.shared.clock.now();
        if now < turn.as_of.plus(WORDS_KEPT) {
            return Ok(turn);
        }
        let turn = OpenTurn { as_of: now, ..turn };
        self.write(turn.clone()).await?;
        Ok(turn)
    }

    /// The line has entered her session.
    pub(crate) fn heard(&mut self, line: LineId) {
        if self.is_current(line) {
            self.presence.read();
            let session = self.sessions.current();
            self.entered =
                self.open.as_ref().zip(session).map(|(turn, session)| (turn.id, session.generation));
        }
    }
}
