//! A turn from the open row to the committed reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ruma::OwnedRoomId;
use uuid::Uuid;

use super::BridgeError;
use super::PersonaConfig;
use super::clock::draw_turn;
use super::halt::Halt;
use super::memories::{self, Reminded};
use super::presence::Presence;
use super::session::Sessions;
use super::shared::Shared;
use super::speech::{self, Spoken};
use super::spend;
use crate::conversation::prompt;
use crate::conversation::{Batch, Delivery, Lane, LineId, Millis, PersonaId};
use crate::mind::Feed;
use crate::persona::session::Usd;
use crate::persona::{Ending, OpenTurn, Troubles, Usage, Verdict, shorter, tighter, verdict};
use crate::store::{Books, Commit};

/// The most text one batch carries, in bytes (its first delivery always goes in).
const BATCH_BYTES: usize = 256 * 1024;
/// For how long a turn's words stay as they were first put: no cache keeps them longer.
const WORDS_KEPT: Duration = Duration::from_secs(3600);
/// The most deliveries one batch carries.
const BATCH_DELIVERIES: usize = 500;

/// A Persona's turns.
pub(crate) struct Turns {
    shared: Arc<Shared>,
    persona: PersonaConfig,
    prompt: String,
    open: Option<OpenTurn>,
    sessions: Sessions,
    presence: Presence,
    reminded: Reminded,
}

impl Turns {
    pub(crate) fn load(shared: Arc<Shared>, persona: PersonaConfig) -> Result<Self, BridgeError> {
        let (open, session) = shared.store.standing(&persona.persona.id)?;
        let prompt = speech::system_prompt(&shared, &persona)?;
        let sessions = Sessions::new(shared.clone(), &persona, &prompt, session);
        let presence = Presence::new(shared.clone(), persona.persona.user.clone());
        let reminded = Reminded::default();
        Ok(Self { shared, persona, prompt, open, sessions, presence, reminded })
    }

    /// When her session is to be looked at while nobody says anything.
    pub(crate) fn next_look(&self) -> Result<Option<Millis>, BridgeError> {
        if self.open.is_some() { Ok(None) } else { self.sessions.next_look() }
    }

    /// The line that uses the cache once, so that it stays warm, if that is to be done now.
    pub(crate) fn ping(&self) -> Result<Option<Feed>, BridgeError> {
        let Some(session) = self.sessions.current().filter(|_| self.open.is_none()).cloned() else {
            return Ok(None);
        };
        if !self.sessions.wants_ping()? {
            return Ok(None);
        }
        let line = LineId::derive(draw_turn(), 1);
        let feed = Feed::single(session, line, &self.prompt, prompt::PING, self.shared.clock.now());
        Ok(Some(Feed { must_exist: true, ..feed }))
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

    /// Whether her child is of no more use until mail comes.
    pub(crate) fn is_child_spent(&self) -> bool {
        self.open.is_none() && self.sessions.is_spent()
    }

    /// The resident memory of her child in its last turn, in bytes.
    pub(crate) fn resident(&self) -> Option<u64> {
        self.sessions.current().and_then(|session| session.account.resident)
    }

    /// When the oldest mail to her that waits was heard.
    pub(crate) fn waits_since(&self) -> Result<Millis, BridgeError> {
        let id = &self.persona.persona.id;
        let open = self.open.iter().flat_map(|turn| &turn.seqs).copied().collect::<Vec<u64>>();
        let open = self.shared.store.deliveries(id, &open)?.into_iter();
        let open = open.filter(|delivery| delivery.addressed).map(|delivery| delivery.heard);
        let lanes = self.shared.ready_lanes(id)?;
        let waiting = lanes.iter().flat_map(|lane| &lane.addressed).map(|room| room.first_addressed);
        Ok(open.chain(waiting).min().unwrap_or_else(|| self.shared.clock.now()))
    }

    pub(crate) fn open(&self) -> Option<&OpenTurn> {
        self.open.as_ref()
    }

    /// Whether the line is the one that the open turn waits for.
    pub(crate) fn is_current(&self, line: LineId) -> bool {
        self.open.as_ref().is_some_and(|turn| LineId::derive(turn.id, turn.attempt) == line)
    }

    /// Writes down a turn with the waiting mail of the lane.
    pub(crate) async fn begin(&mut self, lane: &Lane) -> Result<(), BridgeError> {
        let id = self.persona.persona.id.clone();
        let mail = self.batch(lane)?;
        self.look_at_state()?;
        self.sessions.take_up(&mail).await?;
        let turn = OpenTurn {
            id: draw_turn(),
            lane: lane.clone(),
            seqs: mail.iter().map(|delivery| delivery.seq).collect(),
            attempt: 1,
            not_before: Millis::default(),
            as_of: self.shared.clock.now(),
            spent: Usd::default(),
            troubles: Troubles::default(),
        };
        tracing::info!(persona = %id, turn = %turn.id, mail = turn.seqs.len(), "turn begins");
        self.write(turn).await
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

    /// The mail that goes into the next turn of a lane, in the order in which it was said; what she asked to be shown in whole
    /// comes by itself.
    fn batch(&self, lane: &Lane) -> Result<Vec<Delivery>, BridgeError> {
        let id = &self.persona.persona.id;
        let waiting = self.shared.ready_mail(id)?;
        let of_lane = || waiting.iter().filter(|mail| mail.lane == *lane);
        let asked_for = of_lane().any(|mail| mail.whole);
        let seqs = of_lane().filter(|mail| mail.whole == asked_for).map(|mail| mail.seq);
        let seqs: Vec<u64> = seqs.take(2 * BATCH_DELIVERIES).collect();
        let deliveries = as_said(self.shared.store.deliveries(id, &seqs)?);
        let mut bytes = 0;
        let fitting = deliveries.into_iter().take(BATCH_DELIVERIES).take_while(|delivery| {
            let first = bytes == 0;
            bytes += delivery.text.len().max(1);
            first || bytes <= BATCH_BYTES
        });
        Ok(fitting.collect())
    }

    async fn write(&mut self, turn: OpenTurn) -> Result<(), BridgeError> {
        let books = self.sessions.books();
        self.shared.store.write_turn(&self.persona.persona.id, turn.clone(), books).await?;
        self.open = Some(turn);
        Ok(())
    }

    /// The line to be fed; none where all of the mail was withdrawn and the turn is closed in silence.
    pub(crate) async fn feed(&mut self) -> Result<Option<Feed>, BridgeError> {
        let (Some(turn), Some(session)) = (self.open.clone(), self.sessions.current().cloned()) else {
            return Ok(None);
        };
        let deliveries = self.shared.store.deliveries(&self.persona.persona.id, &turn.seqs)?;
        let batch = Batch { lane: turn.lane.clone(), deliveries };
        if batch.deliveries.iter().all(|d| d.kind == crate::conversation::DeliveryKind::Withdrawn) {
            self.commit(turn, Spoken::default(), None).await?;
            return Ok(None);
        }
        let turn = self.lately_put(turn).await?;
        self.reminded =
            memories::remind(&self.shared, &self.persona.persona.id, &session, &batch, turn.as_of)?;
        let memories = self.reminded.memories.clone();
        let surroundings =
            speech::surroundings(&self.shared, &self.persona, &batch, &session, memories, &turn).await?;
        let line = LineId::derive(turn.id, turn.attempt);
        self.presence.thinking(&batch);
        self.sessions.feeds(&batch.deliveries);
        let again =
            turn.troubles.fault.as_deref().map_or_else(|| prompt::RETRY.to_owned(), prompt::fault_line);
        Ok(Some(Feed {
            line,
            must_exist: session.last_committed.is_some(),
            purpose: self.sessions.purpose(&session),
            session,
            prompt: self.prompt.clone(),
            whole: prompt::render(&batch, &surroundings),
            again,
            earlier: (1..turn.attempt).map(|attempt| LineId::derive(turn.id, attempt)).collect(),
            now: self.shared.clock.now(),
        }))
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
        }
    }

    /// Carries out what follows from an ending; answers why no more is to be asked, if so.
    pub(crate) async fn finish(
        &mut self,
        ending: Ending,
        usage: &Usage,
    ) -> Result<Option<String>, BridgeError> {
        let why = self.conclude(ending, usage).await?;
        // Last, so that it does not hold up what she said.
        self.presence.rest();
        Ok(why)
    }

    async fn conclude(&mut self, ending: Ending, usage: &Usage) -> Result<Option<String>, BridgeError> {
        let Some(mut turn) = self.open.clone() else { return Ok(None) };
        turn.spent += self.sessions.count(turn.attempt, usage).await?;
        let now = self.shared.clock.now();
        self.show_health(&ending);
        if let Ending::Transient { reason, retry_after: Some(wait) } = &ending {
            spend::limited(&self.shared, &self.persona.persona.id, reason, *wait).await?;
        }
        let is_loss = self.sessions.is_loss(&ending);
        match self.within_budget(&turn, self.judge(&turn, ending)?) {
            (Verdict::Commit { .. }, spoken) => {
                let line = LineId::derive(turn.id, turn.attempt);
                self.tell_lost(&turn, &spoken.lost).await?;
                self.commit(turn, spoken, Some(line)).await?;
            }
            (Verdict::Again { after, troubles }, _) => {
                let attempt = turn.attempt + 1;
                let not_before = now.plus(after);
                self.write(OpenTurn { attempt, not_before, as_of: not_before, troubles, ..turn }).await?;
            }
            (Verdict::Same { after, troubles }, _) => {
                self.write(OpenTurn { not_before: now.plus(after), troubles, ..turn }).await?;
            }
            (Verdict::NewGeneration { reason, troubles, spoilt }, _) => {
                if spoilt {
                    self.spoilt(&reason).await?;
                }
                self.sessions.renew_and_tell(&reason, is_loss).await?;
                let attempt = turn.attempt + 1;
                self.write(OpenTurn { attempt, not_before: now, as_of: now, troubles, ..turn }).await?;
            }
            (Verdict::Shorten { reason }, _) => self.shorten(turn, reason).await?,
            (Verdict::Hold { reason, spoilt }, _) => {
                if spoilt {
                    self.spoilt(&reason).await?;
                }
                self.hold(turn, reason).await?;
            }
            (Verdict::StopAsking { reason }, _) => return self.stop_asking(reason).await.map(Some),
        }
        Ok(None)
    }

    /// What the ending says of her mind: a warning and /ready while it does not answer.
    fn show_health(&self, ending: &Ending) {
        let id = &self.persona.persona.id;
        let key = mind_key(id);
        match ending {
            Ending::Transient { reason, .. } | Ending::Lost { reason } | Ending::Died { reason } => {
                if self.shared.readiness.say(&key, &format!("the mind of {id} does not answer: {reason}")) {
                    tracing::warn!(persona = %id, reason, "her mind does not answer; it is asked again");
                }
            }
            // The last answer of a spoilt one takes the alarm not back.
            Ending::Answered { .. }
                if !self.sessions.is_spoilt() && self.shared.readiness.clear(&alarm_key(id)) =>
            {
                self.shared.readiness.clear(&key);
                tracing::info!(persona = %id, "her new session answers");
            }
            Ending::Answered { .. }
            | Ending::Final { .. }
            | Ending::Rejected { .. }
            | Ending::Invalid { .. }
            | Ending::TooLong => {
                if self.shared.readiness.clear(&key) {
                    tracing::info!(persona = %id, "her mind answers again");
                }
            }
            Ending::Stranded
            | Ending::Refused { .. }
            | Ending::Poisoned { .. }
            | Ending::SessionGone { .. } => {}
        }
    }

    /// Her session is not to be trusted any more: its file is put aside, and that is an alarm, shown until her next good turn.
    pub(crate) async fn spoilt(&mut self, reason: &str) -> Result<(), BridgeError> {
        self.sessions.spoilt();
        let id = &self.persona.persona.id;
        let generation = self.sessions.current().map_or(0, |session| session.generation);
        let text = format!(
            "session {generation} of {id} is not used any more: {reason}; its file is put aside as `.quarantined`"
        );
        if !self.shared.readiness.say(&alarm_key(id), &text) {
            return Ok(());
        }
        tracing::error!(persona = %id, reason, "her session is not used any more; the next one begins");
        self.shared.tell(&format!("poisoned:{id}:{generation}"), &text).await
    }

    /// The verdict, with the says of a reply that can be used; one that cannot is an invalid ending.
    fn judge(&self, turn: &OpenTurn, ending: Ending) -> Result<(Verdict, Spoken), BridgeError> {
        let verdict_of = |ending| verdict(ending, &turn.troubles);
        let verdict = verdict_of(ending);
        let Verdict::Commit { reply } = &verdict else { return Ok((verdict, Spoken::default())) };
        match speech::says(&self.shared, &self.persona, turn, reply)? {
            Ok(spoken) => Ok((verdict, spoken)),
            Err(fault) => Ok((verdict_of(Ending::Invalid { fault: fault.0 }), Spoken::default())),
        }
    }

    /// A turn that has cost all that one may is not tried once more: its mail is held.
    fn within_budget(&self, turn: &OpenTurn, judged: (Verdict, Spoken)) -> (Verdict, Spoken) {
        let asks = matches!(judged.0, Verdict::Again { .. } | Verdict::NewGeneration { .. });
        if !asks || self.shared.config.budget.allows_another_try(turn.spent) {
            return judged;
        }
        let reason = format!("the turn has cost {}, as much as [budget] per_turn allows", turn.spent);
        (Verdict::Hold { reason, spoilt: false }, Spoken::default())
    }

    async fn tell_lost(&self, turn: &OpenTurn, lost: &BTreeSet<OwnedRoomId>) -> Result<(), BridgeError> {
        let id = &self.persona.persona.id;
        for room in lost {
            let text = format!("{id} answered in {room}, where she cannot speak any more; it was dropped");
            self.shared.tell(&format!("lost:{}:{room}", turn.id), &text).await?;
        }
        Ok(())
    }

    async fn commit(
        &mut self,
        turn: OpenTurn,
        spoken: Spoken,
        line: Option<LineId>,
    ) -> Result<(), BridgeError> {
        let Spoken { says, lost: _, words, keeps } = spoken;
        let show = keeps.show.iter().filter_map(|label| label.strip_prefix('m')?.parse().ok()).collect();
        let is_taken_down = line.is_some() && !self.shared.config.transcript_keep.is_zero();
        if let Some(line) = line {
            self.sessions.commits(line);
        }
        tracing::info!(persona = %self.persona.persona.id, turn = %turn.id, says = says.len(), "turn ends");
        let halt = self.shared.config.halt.filter(|_| !says.is_empty());
        let Books { session: Some(session), ledger } = self.sessions.books() else { return Ok(()) };
        let commit = Commit {
            persona: self.persona.persona.id.clone(),
            turn: turn.id,
            says,
            session,
            ledger,
            memory: std::mem::take(&mut self.reminded).with(keeps),
            show,
            said: is_taken_down.then_some(words),
            now: self.shared.clock.now(),
        };
        self.shared.store.commit(commit).await?;
        Halt::AfterCommit.reached(halt);
        self.open = None;
        self.shared.outbox.notify_one();
        self.sessions.boundary()
    }

    /// Mail that is too long by itself goes on with less of it, the rest in later turns; one message alone with a part of it.
    async fn shorten(&mut self, turn: OpenTurn, reason: String) -> Result<(), BridgeError> {
        let deliveries = self.shared.store.deliveries(&self.persona.persona.id, &turn.seqs)?;
        let bytes = deliveries.iter().map(|delivery| delivery.text.len()).sum();
        let alone = || Some((turn.seqs.clone(), tighter(&turn.troubles, bytes, prompt::TIGHT)?));
        let Some((seqs, troubles)) = shorter(&turn.seqs).or_else(alone) else {
            return self.hold(turn, reason).await;
        };
        self.sessions.renew_and_tell(&reason, false).await?;
        tracing::info!(turn = %turn.id, mail = turn.seqs.len(), left = seqs.len(), "the turn goes on with less mail");
        let (attempt, now) = (turn.attempt + 1, self.shared.clock.now());
        self.write(OpenTurn { seqs, attempt, not_before: now, as_of: now, troubles, ..turn }).await
    }

    async fn hold(&mut self, turn: OpenTurn, reason: String) -> Result<(), BridgeError> {
        let id = self.persona.persona.id.clone();
        let text = format!("{} could not answer {} messages, they are held: {reason}", id, turn.seqs.len());
        self.shared.tell(&format!("held:{}", turn.id), &text).await?;
        let books = self.sessions.books();
        self.shared.store.hold(&id, turn, reason, self.shared.clock.now(), books).await?;
        self.open = None;
        self.sessions.boundary()
    }

    /// She is asked again at once, whatever she waited for.
    pub(crate) fn asks_again(&mut self) {
        if let Some(turn) = &mut self.open {
            turn.not_before = Millis::default();
        }
        self.shared.readiness.clear(&mind_key(&self.persona.persona.id));
    }

    async fn stop_asking(&mut self, reason: String) -> Result<String, BridgeError> {
        let id = &self.persona.persona.id;
        let text = format!(
            "{id} is not asked any more: {reason}. Mend the account or the credential, then run `persona-bridge release`, or \
             restart the bridge where [mind.claude] was changed; it is tried again by itself every 15 minutes"
        );
        if self.shared.readiness.say(&mind_key(id), &text) {
            let key = format!("refused:{id}:{}", self.shared.clock.now().0);
            self.shared.tell(&key, &text).await?;
        }
        Ok(reason)
    }
}

/// Under which /ready shows why her mind does not answer.
fn mind_key(id: &PersonaId) -> String {
    format!("mind:{id}")
}

/// Under which /ready shows that her session was spoilt.
fn alarm_key(id: &PersonaId) -> String {
    format!("session:{id}")
}

/// Puts what was read back, numbered behind what was pushed before it, where it was said; what came one way keeps the
/// server's order.
fn as_said(deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let (late, pushed): (Vec<_>, Vec<_>) = deliveries.into_iter().partition(|delivery| delivery.late);
    let mut late = late.into_iter().peekable();
    let mut ordered = Vec::new();
    for delivery in pushed {
        while let Some(earlier) = late.next_if(|late| late.said <= delivery.said) {
            ordered.push(earlier);
        }
        ordered.push(delivery);
    }
    ordered.extend(late);
    ordered
}

/// The labels of events a batch refers to, by event.
pub(crate) fn labels_of(batch: &Batch) -> BTreeMap<ruma::OwnedEventId, String> {
    batch.deliveries.iter().map(|d| (d.event.clone(), format!("m{}", d.seq))).collect()
}

#[cfg(test)]
mod tests {
    use ruma::{event_id, room_id, user_id};

    use super::*;
    use crate::conversation::DeliveryKind;

    fn mail(seq: u64, said: u64, late: bool) -> Delivery {
        let room = room_id!("!a:hs.test").to_owned();
        Delivery {
            seq,
            lane: Lane::Direct(room.clone()),
            room,
            sender: user_id!("@a:hs.test").to_owned(),
            sender_name: None,
            event: event_id!("$e").to_owned(),
            kind: DeliveryKind::Text,
            text: "x".into(),
            thread: None,
            reply_to: None,
            addressed: true,
            late,
            said: Millis(said),
            heard: Millis(said),
        }
    }

    #[test]
    fn late_mail_goes_where_it_was_said_and_what_came_one_way_keeps_its_order() {
        let pushed = [mail(1, 30, false), mail(2, 29, false), mail(3, 50, false)];
        let late = [mail(4, 10, true), mail(5, 9, true), mail(6, 60, true)];
        let order = as_said(pushed.into_iter().chain(late).collect());
        assert_eq!(order.iter().map(|mail| mail.seq).collect::<Vec<_>>(), [4, 5, 1, 2, 3, 6]);
    }
}
