//! Which session a Persona's turns go to: asks `persona::session` at each boundary and before mail is fed, and carries out
//! what it says. It decides nothing itself.

use std::sync::Arc;

use uuid::Uuid;

use super::books::Keeper;
use super::shared::Shared;
use super::{BridgeError, Mind, PersonaConfig, memories, speech};
use crate::conversation::reply::SCHEMA;
use crate::conversation::{Delivery, Lane, LineId, Millis, PersonaId};
use crate::mind::Purpose;
use crate::mind::claude::Resuming;
use crate::persona::session::care::{Mark, Word};
use crate::persona::session::identity::VERSION;
use crate::persona::session::terms::tokens_of;
use crate::persona::session::{
    Added, Care, Fingerprint, Moment, Policy, Price, Reason, Session, Standing, Usd, care, marks, next_look,
    next_session,
};
use crate::persona::{Ending, OpenTurn, Usage};
use crate::store::Books;

/// A Persona's sessions: the one that goes on, and what was written down about it.
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    id: PersonaId,
    name: String,
    /// What a session is begun with now.
    fingerprint: Fingerprint,
    current: Option<Session>,
    keeper: Keeper,
    /// Why the next mail begins the next session, if that was decided at a boundary.
    over: Option<Reason>,
    /// Whether its child is of no more use until mail comes.
    spent: bool,
    /// A session that is not to be trusted and whose file is not put aside yet.
    quarantine: Option<Uuid>,
    /// The resident memory of its child as it was last weighed, in bytes; none where there is no child.
    resident: Option<u64>,
}

impl Sessions {
    pub(crate) fn new(
        shared: Arc<Shared>,
        persona: &PersonaConfig,
        prompt: &str,
        current: Option<Session>,
    ) -> Self {
        let id = persona.persona.id.clone();
        let fingerprint = speech::fingerprint(&shared.config, &id, prompt);
        let shared_part = tokens_of(prompt.len() + SCHEMA.len());
        let keeper = Keeper::new(shared.clone(), id.clone(), shared_part);
        let name = persona.persona.name.clone();
        Self {
            shared,
            id,
            name,
            fingerprint,
            current,
            keeper,
            over: None,
            spent: false,
            quarantine: None,
            resident: None,
        }
    }

    /// From now on a session is begun with this prompt.
    pub(crate) fn begin_with(&mut self, prompt: &str) {
        // The mind's program may be of another version by now than it was at the start.
        let version = self.fingerprint.0.remove_entry(VERSION);
        self.fingerprint = speech::fingerprint(&self.shared.config, &self.id, prompt);
        self.fingerprint.0.extend(version);
    }

    /// The mind's program says that it is of another version than the one that begun a session, unless it has just begun that
    /// itself.
    pub(crate) fn runs_as(&mut self, session: Uuid, version: &str, begun: bool) {
        tracing::warn!(persona = %self.id, version, "the mind's program is of another version by now");
        let this = self.current.as_mut().filter(|current| begun && current.id == session);
        for print in this.map(|session| &mut session.fingerprint).into_iter().chain([&mut self.fingerprint]) {
            print.0.insert(VERSION.to_owned(), version.to_owned());
        }
    }

    /// The one that goes on.
    pub(crate) fn current(&self) -> Option<&Session> {
        self.current.as_ref()
    }

    /// Mail is about to be fed: goes on with the session, or begins the next one and says why.
    pub(crate) async fn take_up(&mut self, mail: &[Delivery]) -> Result<(), BridgeError> {
        self.spent = false;
        let saved = self.at(Added::default(), |standing, _| standing.saved_by_warmth())?;
        let (Some(session), Some(saved)) = (&mut self.current, saved) else {
            self.renew(Reason::First);
            return Ok(());
        };
        self.keeper.woken(session, saved);
        session.account.woken(self.shared.clock.now());
        let decided = match self.over.take() {
            Some(Reason::Poisoned) => Some((Care::Refresh, Reason::Poisoned)),
            // What was decided at the boundary is decided again: an operator may have had a word since.
            Some(_) | None => self.ask(Moment::Mail, added_by(mail))?,
        };
        match decided {
            Some((Care::Refresh, reason)) => self.refresh(reason).await,
            Some((Care::Keep | Care::Ping | Care::Flush | Care::Close, _)) | None => Ok(()),
        }
    }

    /// Whether she is to note first what would be lost with the session, of which lane, and why; asked once, she is not asked
    /// again before she has answered somebody.
    pub(crate) fn flush(
        &mut self,
        moment: Moment,
        mail: &[Delivery],
    ) -> Result<Option<(Lane, Reason)>, BridgeError> {
        let Some(session) = self.current.as_ref().filter(|_| !self.is_spoilt()) else { return Ok(None) };
        let (_, Some(lane)) = memories::to_note(&self.shared, &self.id, session)? else { return Ok(None) };
        let decided = self.at(added_by(mail), |standing, policy| care(standing, moment, policy))?;
        let Some((Care::Flush, reason)) = decided else { return Ok(None) };
        if let Some(session) = &mut self.current {
            session.account.unnoted.0.clear();
        }
        Ok(Some((lane, reason)))
    }

    /// A turn of a lane was answered, with or without a note.
    pub(crate) fn answered(&mut self, lane: &Lane, noted: bool) {
        if let Some(session) = &mut self.current {
            session.account.unnoted.answered(lane, noted);
        }
    }

    /// Whether the cache still holds the session.
    pub(crate) fn is_warm(&self) -> Result<bool, BridgeError> {
        Ok(self.at(Added::default(), |standing, _| standing.is_warm())?.unwrap_or(false))
    }

    /// A turn is over: looks at what is to be done with the session.
    pub(crate) fn boundary(&mut self) -> Result<(), BridgeError> {
        self.look(Moment::Boundary, "the process of her session is closed after the turn").map(drop)
    }

    /// Nothing has come for long: looks at what is to be done with the session.
    pub(crate) fn idle_deadline(&mut self) -> Result<Care, BridgeError> {
        self.look(Moment::IdleDeadline, "the process of her session is closed while nobody speaks")
    }

    /// Decides between two turns; where its child is of no more use, that is noted and told.
    fn look(&mut self, moment: Moment, closed: &'static str) -> Result<Care, BridgeError> {
        let Some((decided, reason)) = self.ask(moment, Added::default())? else { return Ok(Care::Keep) };
        match decided {
            Care::Refresh if self.is_spoilt() => {}
            Care::Refresh => self.over = Some(reason),
            Care::Close => {}
            Care::Keep | Care::Ping | Care::Flush => return Ok(decided),
        }
        if !self.spent && self.resident.is_some() {
            tracing::info!(persona = %self.id, reason = reason.name(), "{closed}");
        }
        self.spent = true;
        Ok(decided)
    }

    /// Her child was weighed, or there is none any more.
    pub(crate) fn weighs(&mut self, resident: Option<u64>) {
        self.resident = resident;
    }

    /// It is not to be trusted any more: the next mail begins the next one.
    pub(crate) fn spoilt(&mut self) {
        self.quarantine = self.current.as_ref().map(|session| session.id);
        self.over = Some(Reason::Poisoned);
    }

    /// Whether it is not to be trusted any more.
    pub(crate) fn is_spoilt(&self) -> bool {
        self.over == Some(Reason::Poisoned)
    }

    /// The session whose file is to be put aside now, once.
    pub(crate) fn take_spoilt(&mut self) -> Option<Uuid> {
        self.quarantine.take()
    }

    /// When the session is to be looked at while nobody says anything.
    pub(crate) fn next_look(&self) -> Result<Option<Millis>, BridgeError> {
        if self.over.is_some() {
            return Ok(None);
        }
        Ok(self.at(Added::default(), next_look)?.flatten())
    }

    /// A ping is over; it is written down at once, for no turn may follow.
    pub(crate) async fn pinged(&mut self, usage: &Usage) -> Result<(), BridgeError> {
        let Some(session) = &mut self.current else { return Ok(()) };
        self.keeper.pinged(session, usage);
        let books = self.books();
        Ok(self.shared.store.book(&self.id, books).await?)
    }

    /// Whether the child of the session is of no more use until mail comes.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// What an open turn with this mail is fed to the session for: one that another claude or another folder begun is only
    /// settled, and so is one that has waited until the cache forgot it, where the next is to begin.
    pub(crate) fn purpose(&self, session: &Session, mail: &[Delivery]) -> Result<Purpose, BridgeError> {
        match marks(&session.fingerprint, &self.fingerprint).first() {
            Some(Mark::CliVersion) => return Ok(Purpose::Settle(Reason::CliVersion)),
            Some(Mark::Cwd) => return Ok(Purpose::Settle(Reason::Cwd)),
            Some(Mark::Poisoned | Mark::Tainted | Mark::Stale) | None => {}
        }
        let decided = self.at(added_by(mail), |standing, policy| {
            (!standing.is_warm()).then(|| care(standing, Moment::Mail, policy))
        })?;
        Ok(match decided.flatten() {
            Some((Care::Refresh, why)) => Purpose::Settle(why),
            Some((Care::Keep | Care::Ping | Care::Flush | Care::Close, _)) | None => Purpose::Answer,
        })
    }

    /// Whether the session is lost by an ending for which it is given up.
    pub(crate) fn is_loss(&self, ending: &Ending) -> bool {
        ending.loses_session() && self.current.as_ref().is_some_and(Session::seeds_the_next)
    }

    /// Begins the next session and tells operators why, in this sentence; where the last one is lost, it is told what was said
    /// before.
    pub(crate) async fn renew_and_tell(
        &mut self,
        why: Reason,
        sentence: &str,
        is_loss: bool,
    ) -> Result<(), BridgeError> {
        self.renew(why);
        if let Some(session) = &mut self.current {
            session.seeded = is_loss;
        }
        self.tell(sentence).await
    }

    /// A line is fed now, with this mail in it, whose words were put at a time.
    pub(crate) fn feeds(&mut self, mail: &[Delivery], put: Millis) {
        self.keeper.feeds(added_by(mail).mail, put);
    }

    /// Counts what an attempt has used, or what is recalled of it from the session's file; answers what it cost.
    pub(crate) async fn count(
        &mut self,
        turn: &OpenTurn,
        (usage, recalled): (&Usage, bool),
    ) -> Result<Usd, BridgeError> {
        self.resident = usage.resident;
        let Some(session) = &mut self.current else { return Ok(Usd::default()) };
        let resumed_with =
            self.shared.config.mind.resumes_with(&session.fingerprint, &self.fingerprint).clone();
        self.keeper.count(session, turn, (usage, recalled), &resumed_with).await
    }

    /// The reply to a line is committed from it.
    pub(crate) fn commits(&mut self, line: LineId) {
        if let Some(session) = &mut self.current {
            session.last_committed = Some(line);
        }
    }

    /// What is new about it, to be written down.
    pub(crate) fn books(&mut self) -> Books {
        Books { session: self.current.clone(), ledger: self.keeper.take() }
    }

    async fn refresh(&mut self, reason: Reason) -> Result<(), BridgeError> {
        let differences = match &self.current {
            Some(session) => session.fingerprint.differences(&self.fingerprint),
            None => Vec::new(),
        };
        self.renew(reason);
        match (reason, differences.as_slice()) {
            (Reason::Stale, differences @ [_, ..]) => {
                self.tell(&format!("{}, {} changed", reason.name(), differences.join(", "))).await
            }
            _ => self.tell(reason.name()).await,
        }
    }

    fn renew(&mut self, why: Reason) {
        let (epoch, now) = (self.shared.store.epoch(), self.shared.clock.now());
        let next = next_session(epoch, &self.id, self.current.as_ref(), self.fingerprint.clone(), now);
        tracing::info!(persona = %self.id, generation = next.generation, reason = why.name(), "a session begins");
        self.keeper.begins(next.generation, why);
        self.current = Some(next);
        self.over = None;
    }

    async fn tell(&self, why: &str) -> Result<(), BridgeError> {
        let generation = self.current.as_ref().map_or(0, |session| session.generation);
        let text = format!("{} begins session {generation}: {why}", self.name);
        self.shared.note(&format!("generation:{}:{generation}", self.id), &text).await
    }

    /// Asks what is to be done; none where there is no session.
    fn ask(&self, moment: Moment, ahead: Added) -> Result<Option<(Care, Reason)>, BridgeError> {
        let decided = self.at(ahead, |standing, policy| care(standing, moment, policy))?;
        if let Some((decided, reason)) = decided {
            let (id, reason) = (&self.id, reason.name());
            if decided == Care::Keep {
                tracing::debug!(persona = %id, ?moment, reason, "her session was looked at and is kept");
            } else {
                tracing::info!(persona = %id, ?moment, ?decided, reason, "her session was looked at");
            }
        }
        Ok(decided)
    }

    /// Looks at how the session stands before a turn that adds so much; none where there is no session.
    fn at<T>(
        &self,
        ahead: Added,
        look: impl FnOnce(&Standing<'_>, &Policy) -> T,
    ) -> Result<Option<T>, BridgeError> {
        let Some(session) = &self.current else { return Ok(None) };
        let (account, config) = (&session.account, &self.shared.config);
        let price = self.price(session);
        let word = self.shared.store.word(&self.id)?;
        let used = account.used.unwrap_or(session.begun);
        let mut marks = marks(&session.fingerprint, &self.fingerprint);
        if self.shared.store.tainted(&self.id)? == Some(session.generation) {
            marks.insert(Mark::Tainted);
        }
        let (tasks, lane) = memories::to_note(&self.shared, &self.id, session)?;
        let holds = |generation: u32, word: Word| {
            generation == session.generation && (word != Word::Flush || lane.is_some())
        };
        let standing = Standing {
            now: self.shared.clock.now(),
            used,
            idle_since: account.mail.unwrap_or(used),
            ttl: account.ttl.unwrap_or_else(|| config.mind.cached_for()),
            price: &price,
            window: account.window.unwrap_or(price.window),
            prefix: account.prefix,
            ahead: ahead.tokens(),
            meter: account.meter,
            gaps: &account.gaps,
            rss: self.resident.unwrap_or_default(),
            tasks,
            marks,
            word: word.filter(|(generation, word)| holds(*generation, *word)).map(|(_, word)| word),
        };
        Ok(Some(look(&standing, &config.care)))
    }

    /// What the session's model costs.
    fn price(&self, session: &Session) -> Price {
        let model = session.fingerprint.0.get("model").map_or("", String::as_str);
        self.shared.config.prices.find(model).unwrap_or_else(|| Price::unknown(model))
    }
}

/// What a turn with this mail is expected to add.
fn added_by(mail: &[Delivery]) -> Added {
    Added::expected(mail.iter().map(|delivery| delivery.text.len()))
}

impl Mind {
    /// For how long the cache keeps a session of which nothing was seen yet.
    pub(crate) fn cached_for(&self) -> crate::persona::session::Ttl {
        match self {
            Self::Scripted(_) => crate::persona::session::Ttl::FiveMinutes,
            Self::Claude(config) => config.cached_for(),
        }
    }

    /// With what a session is resumed that was begun so, where this is configured now.
    fn resumes_with<'a>(&self, begun: &'a Fingerprint, now: &'a Fingerprint) -> &'a Fingerprint {
        match self {
            Self::Claude(config) if config.resuming == Resuming::AsConfigured => now,
            Self::Claude(_) | Self::Scripted(_) => begun,
        }
    }
}
