//! One loop a Persona: look at the situation, carry out the step, repeat.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::BridgeError;
use super::PersonaConfig;
use super::halt::Halt;
use super::reminders;
use super::shared::Shared;
use super::spend;
use super::turn::Turns;
use crate::conversation::{Lane, LineId, Millis, PersonaId};
use crate::mind::{Feed, MindCommand, MindEvent, MindHandle};
use crate::persona::decide::{Hold, Situation, Step, Stop, decide};
use crate::persona::heart::State;
use crate::persona::probe::shows_access;
use crate::persona::session::{Care, Moment};
use crate::persona::{Ending, MindState, Usage};

/// A Persona's life.
pub(crate) struct Live {
    shared: Arc<Shared>,
    id: PersonaId,
    mind: MindHandle,
    state: MindState,
    /// Why she is not asked, if her account was refused.
    refused: Option<String>,
    /// Until when the budget holds her.
    over_budget: Option<Millis>,
    turns: Turns,
    /// When her session is to be looked at.
    look: Option<Millis>,
    /// How her mind was before the ping that is asked.
    before_ping: MindState,
}

impl Live {
    pub(crate) fn new(
        shared: Arc<Shared>,
        persona: PersonaConfig,
        mind: MindHandle,
    ) -> Result<Self, BridgeError> {
        let id = persona.persona.id.clone();
        let turns = Turns::load(shared.clone(), persona)?;
        Ok(Self {
            shared,
            id,
            mind,
            state: MindState::Closed,
            refused: None,
            over_budget: None,
            turns,
            look: None,
            before_ping: MindState::Closed,
        })
    }

    /// Runs until all is at rest after the first signal.
    pub(crate) async fn run(mut self) -> Result<(), BridgeError> {
        loop {
            self.shows_state();
            self.close_if_asked();
            self.ask_if_told();
            self.quarantine_if_spoilt().await?;
            self.look_at_limits().await?;
            let reminder = reminders::next(&self.shared, &self.id).await?;
            let situation = self.situation(reminder)?;
            let step = decide(&situation);
            if situation.held.is_none() && matches!(step, Step::Sleep(_)) {
                self.shared.look_at_waiting(&situation.lanes).await?;
            }
            self.shared.heart.finds(&self.id, self.beat_state(&step));
            if !self.waits_for_place() && !matches!(step, Step::Feed(_)) {
                self.shared.wants_no_place(&self.id);
            }
            match step {
                Step::Sleep(until) => self.idle(until).await?,
                Step::BeginTurn(lane, wake) => self.turns.begin(&lane, wake).await?,
                Step::Feed(_) => self.feed().await?,
                Step::PutBack(_) => self.put_back().await?,
                Step::StopMind(how) => self.stop(how).await?,
                Step::Leave => return Ok(()),
            }
        }
    }

    fn shows_state(&self) {
        if let Some(bell) = self.shared.bells.get(&self.id) {
            bell.thinks.store(matches!(self.state, MindState::Busy(_)), Ordering::Relaxed);
        }
    }

    fn hold(&self) -> Option<Hold> {
        if self.shared.brake().holds(&self.id) {
            return Some(Hold::Brake);
        }
        let refused = self.refused.as_ref().map(|_| Hold::Until(None));
        refused.or(self.over_budget.map(|until| Hold::Until(Some(until))))
    }

    /// How a beat finds her.
    fn beat_state(&self, step: &Step) -> State {
        let waits = self.turns.open().is_some_and(|turn| turn.not_before > self.shared.clock.now());
        if waits || self.hold().is_some() || self.shared.soft.is_cancelled() {
            State::Held
        } else if self.is_at_rest() && self.turns.open().is_none() && matches!(step, Step::Sleep(_)) {
            State::Idle
        } else {
            State::Thinks
        }
    }

    /// Looks at the budget, and tells people who wait for long.
    async fn look_at_limits(&mut self) -> Result<(), BridgeError> {
        let (shared, id) = (self.shared.clone(), self.id.clone());
        self.over_budget = spend::held_until(&shared, &id).await?;
        let waits = self.turns.open().filter(|turn| turn.troubles.transient > 0);
        let until = self.over_budget.or(waits.map(|turn| turn.not_before));
        if let Some(until) = until {
            let lanes = self.shared.ready_lanes(&self.id)?;
            spend::courtesy(&shared, &id, until, (&lanes, self.turns.open())).await?;
        }
        Ok(())
    }

    /// An operator wants her asked again, or the account that was refused is taken.
    fn ask_if_told(&mut self) {
        let told =
            self.shared.bells.get(&self.id).is_some_and(|bell| bell.ask.swap(false, Ordering::Relaxed));
        let bell = self.shared.bells.get(&self.id);
        let taken = bell.is_some_and(|bell| bell.taken.swap(false, Ordering::Relaxed));
        if told || (taken && self.refused.is_some()) {
            self.refused = None;
            self.turns.asks_again();
        }
    }

    fn situation(&self, reminder: Option<(Lane, Millis)>) -> Result<Situation, BridgeError> {
        Ok(Situation {
            now: self.shared.clock.now(),
            shutting_down: self.shared.soft.is_cancelled(),
            grace_over: self.shared.grace_over.is_cancelled(),
            held: self.hold(),
            mind: self.state.clone(),
            open_turn: self.turns.open().cloned(),
            stopped: self.turns.is_stopped()?,
            lanes: self.shared.ready_lanes(&self.id)?,
            settle: self.shared.config.settle,
            reminder,
            grant: self.shared.heart.granted(&self.id),
        })
    }

    /// Another Persona's loop wants the slot of an idle mind.
    fn close_if_asked(&mut self) {
        let asked =
            self.shared.bells.get(&self.id).is_some_and(|bell| bell.close.swap(false, Ordering::Relaxed));
        if asked && matches!(self.state, MindState::Idle | MindState::Queued) {
            self.state = MindState::Stopping;
            let commands = self.mind.commands.clone();
            // The channel holds a few commands and an idle mind takes them at once.
            let _ = commands.try_send(MindCommand::Stop(Stop::Idle));
        }
    }

    /// A child that would only grow old is closed.
    async fn close_if_spent(&mut self) -> Result<(), BridgeError> {
        if self.state == MindState::Idle && self.turns.is_child_spent() {
            self.stop(Stop::Idle).await?;
        }
        Ok(())
    }

    /// The file of a session that is not to be trusted is put aside before anything else is fed.
    async fn quarantine_if_spoilt(&mut self) -> Result<(), BridgeError> {
        if !matches!(self.state, MindState::Idle | MindState::Closed) {
            return Ok(());
        }
        let Some(session) = self.turns.take_spoilt() else { return Ok(()) };
        self.state = MindState::Stopping;
        self.shared.slots.closes(&self.id);
        self.command(MindCommand::Quarantine { session, now: self.shared.clock.now() }).await
    }

    /// Sleeps, and looks at her session when it is time.
    async fn idle(&mut self, until: Option<Millis>) -> Result<(), BridgeError> {
        if self.state == MindState::Idle {
            self.shared.rests(&self.id);
        }
        let is_due = self.look.take().is_some_and(|look| look <= self.shared.clock.now());
        if !self.is_at_rest() {
            return self.sleep(until).await;
        }
        if is_due {
            return self.look().await;
        }
        if self.turns.flush(Moment::Boundary, &[]).await? {
            return Ok(());
        }
        self.look = self.turns.next_look()?;
        self.sleep(until.into_iter().chain(self.look).min()).await
    }

    /// The time to look at her session has come; a living mind is weighed first.
    async fn look(&mut self) -> Result<(), BridgeError> {
        if self.state == MindState::Idle {
            return self.command(MindCommand::Weigh).await;
        }
        self.care().await
    }

    async fn weighed(&mut self, resident: Option<u64>) -> Result<(), BridgeError> {
        if let Some(resident) = resident {
            self.shared.slots.weighs(&self.id, resident);
        }
        self.turns.weighs(resident);
        self.look_at_limits().await?;
        if self.is_at_rest() { self.care().await } else { Ok(()) }
    }

    /// Does with her session what is decided when nobody has spoken to her for long.
    async fn care(&mut self) -> Result<(), BridgeError> {
        match self.turns.idle_deadline()? {
            Care::Ping => match self.turns.ping() {
                Some(feed) if self.shared.may_ask_idly() => self.ping(feed).await,
                Some(_) | None => Ok(()),
            },
            Care::Close | Care::Refresh => self.close_if_spent().await,
            Care::Flush => self.turns.flush(Moment::IdleDeadline, &[]).await.map(drop),
            Care::Keep => Ok(()),
        }
    }

    /// Whether she waits for mail and nothing else.
    fn is_at_rest(&self) -> bool {
        matches!(self.state, MindState::Idle | MindState::Closed)
            && self.hold().is_none()
            && !self.shared.soft.is_cancelled()
    }

    /// Has the cache used once, in the place of a living mind; where there is none, the cache may forget.
    async fn ping(&mut self, feed: Feed) -> Result<(), BridgeError> {
        let resident = self.turns.resident();
        if self.state == MindState::Closed && !self.shared.slots.take_free(&self.id, resident) {
            return Ok(());
        }
        self.shared.slots.thinks(&self.id);
        self.before_ping = std::mem::replace(&mut self.state, MindState::Busy(feed.line));
        self.command(MindCommand::Ping(Box::new(feed))).await
    }

    async fn pinged(&mut self, usage: &Usage) -> Result<(), BridgeError> {
        self.turns.pinged(usage).await?;
        if matches!(self.state, MindState::Busy(_)) {
            self.state = std::mem::replace(&mut self.before_ping, MindState::Closed);
            if self.state == MindState::Closed {
                self.gives_back();
            }
        }
        Ok(())
    }

    async fn sleep(&mut self, until: Option<Millis>) -> Result<(), BridgeError> {
        let shared = self.shared.clone();
        let Some(bell) = shared.bells.get(&self.id) else { return Ok(()) };
        let shutting_down = shared.soft.is_cancelled();
        tokio::select! {
            biased;
            event = self.mind.events.recv() => return self.heard(event).await,
            () = bell.wake.notified() => {}
            () = shared.soft.cancelled(), if !shutting_down => {}
            () = shared.grace_over.cancelled(), if shutting_down && !shared.grace_over.is_cancelled() => {}
            () = shared.clock.sleep_until(until) => {}
        }
        self.asks_again();
        Ok(())
    }

    fn waits_for_place(&self) -> bool {
        matches!(self.state, MindState::NoSlot | MindState::Queued)
    }

    /// She waits for a place no more, until she is refused one again.
    fn asks_again(&mut self) {
        match self.state {
            MindState::NoSlot => self.state = MindState::Closed,
            MindState::Queued => self.state = MindState::Idle,
            MindState::Closed | MindState::Idle | MindState::Busy(_) | MindState::Stopping => {}
        }
    }

    async fn feed(&mut self) -> Result<(), BridgeError> {
        if !self.takes_place()? {
            self.state = if self.state == MindState::Closed { MindState::NoSlot } else { MindState::Queued };
            return Ok(());
        }
        let Some(feed) = self.turns.feed().await? else {
            if self.state == MindState::Closed {
                self.gives_back();
            }
            return Ok(());
        };
        self.state = MindState::Busy(feed.line);
        self.command(MindCommand::Feed(Box::new(feed))).await
    }

    /// She is stopped where the open turn's mail was said; what else she has to do needs its own place to think.
    async fn put_back(&mut self) -> Result<(), BridgeError> {
        self.asks_again();
        self.turns.put_back().await
    }

    /// Whether she may think now. Where nobody waits, an idle mind just goes on.
    fn takes_place(&self) -> Result<bool, BridgeError> {
        if self.state == MindState::Idle && self.shared.slots.goes_on(&self.id) {
            return Ok(true);
        }
        Ok(self.shared.takes_place(&self.id, self.turns.wish()?))
    }

    /// Her mind lives no more: others may have its place.
    fn gives_back(&self) {
        self.shared.slots.give_back(&self.id);
        self.shared.wake_all();
    }

    async fn stop(&mut self, how: Stop) -> Result<(), BridgeError> {
        self.state = MindState::Stopping;
        self.shared.slots.closes(&self.id);
        self.command(MindCommand::Stop(how)).await
    }

    async fn command(&self, command: MindCommand) -> Result<(), BridgeError> {
        let sent = self.mind.commands.send(command).await;
        sent.map_err(|_| BridgeError::Task { name: format!("mind of {}", self.id) })
    }

    async fn heard(&mut self, event: Option<MindEvent>) -> Result<(), BridgeError> {
        match event {
            None => return Err(BridgeError::Task { name: format!("mind of {}", self.id) }),
            Some(MindEvent::Heard { line }) => self.turns.heard(line),
            Some(MindEvent::TurnEnded { line, ending, usage, from_record, closed }) => {
                tracing::debug!(persona = %self.id, %line, from_record, ?usage, "turn ended");
                if !from_record && matches!(ending, Ending::Answered { .. }) {
                    Halt::BeforeCommit.reached(self.shared.config.halt);
                }
                if let Some(resident) = usage.resident {
                    self.shared.slots.weighs(&self.id, resident);
                }
                if self.turns.is_current(line) {
                    self.rest(line, closed);
                    let has_access = !from_record && shows_access(&ending);
                    self.refused = self.turns.finish(ending, (&usage, from_record)).await?;
                    if self.refused.is_some() {
                        self.shared.account_refused();
                    } else if has_access {
                        self.shared.account_taken().await?;
                    }
                    self.close_if_spent().await?;
                }
            }
            Some(MindEvent::Pinged { usage }) => self.pinged(&usage).await?,
            Some(MindEvent::Weighed { resident }) => self.weighed(resident).await?,
            Some(MindEvent::Probed { .. }) => {}
            Some(MindEvent::Exited { report }) => {
                tracing::debug!(persona = %self.id, report, "mind closed");
                self.state = MindState::Closed;
                self.turns.weighs(None);
                self.gives_back();
            }
            Some(MindEvent::Poisoned { session, reason }) => {
                if self.turns.is_of(session) {
                    self.turns.spoilt(reason).await?;
                }
            }
            Some(MindEvent::Version { session, version, begun }) => {
                self.turns.runs_as(session, &version, begun);
            }
            Some(MindEvent::Notice { text }) => {
                self.shared
                    .tell(&format!("mind:{}:{text}", self.id), &format!("{}: {text}", self.id))
                    .await?;
            }
        }
        Ok(())
    }

    /// The line is done: its mind is idle unless it is on its way out, or has ended with it.
    fn rest(&mut self, line: LineId, closed: bool) {
        if self.state == MindState::Busy(line) {
            self.state = if closed { MindState::Stopping } else { MindState::Idle };
        }
    }
}
