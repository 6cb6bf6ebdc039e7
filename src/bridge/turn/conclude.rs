//! What follows from the ending of an attempt, up to the committed reply.

use std::collections::BTreeSet;

use ruma::OwnedRoomId;

use super::Turns;
use crate::bridge::BridgeError;
use crate::bridge::halt::Halt;
use crate::bridge::speech::{self, Spoken};
use crate::bridge::spend;
use crate::conversation::reply::Reminds;
use crate::conversation::{LineId, prompt};
use crate::persona::session::Reason;
use crate::persona::{Ending, OpenTurn, Usage, Verdict, shorter, tighter, verdict};
use crate::store::{Books, Commit, Reminding};

impl Turns {
    /// Carries out what follows from an ending, with what it used and whether that is recalled from the session's file; answers
    /// why no more is to be asked, if so.
    pub(crate) async fn finish(
        &mut self,
        ending: Ending,
        usage: (&Usage, bool),
    ) -> Result<Option<String>, BridgeError> {
        let why = self.conclude(ending, usage).await?;
        // Last, so that it does not hold up what she said.
        self.presence.rest();
        Ok(why)
    }

    async fn conclude(
        &mut self,
        ending: Ending,
        usage: (&Usage, bool),
    ) -> Result<Option<String>, BridgeError> {
        let Some(mut turn) = self.open.clone() else { return Ok(None) };
        turn.spent += self.sessions.count(&turn, usage).await?;
        let now = self.shared.clock.now();
        if let Ending::Transient { reason, retry_after: Some(wait) } = &ending {
            spend::limited(&self.shared, &self.persona.persona.id, reason, *wait).await?;
        }
        if turn.flush.is_some() {
            return self.conclude_flush(turn, ending).await;
        }
        self.show_health(&ending);
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
            (Verdict::NewGeneration { why, reason, troubles, spoilt }, _) => {
                if spoilt {
                    self.spoilt(&reason).await?;
                }
                self.sessions.renew_and_tell(why, &reason, is_loss).await?;
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
            (Verdict::StopAsking { reason }, _) => {
                self.write(turn).await?;
                return self.stop_asking(reason).await.map(Some);
            }
        }
        Ok(None)
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

    /// A turn that has cost all that one may is not tried once more: its mail is held. The same line is still fed to be
    /// settled, since its answer may stand in the session's file.
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

    pub(super) async fn commit(
        &mut self,
        turn: OpenTurn,
        spoken: Spoken,
        line: Option<LineId>,
    ) -> Result<(), BridgeError> {
        let Spoken { says, lost: _, words, keeps, guard, hops } = spoken;
        let pulse = keeps.pulse;
        let Reminds { remind, unremind } = keeps.reminds.clone();
        let reminders =
            Reminding { remind, unremind, listed: self.reminded.listed.filter(|_| line.is_some()) };
        let show = keeps.show.iter().filter_map(|label| label.strip_prefix('m')?.parse().ok()).collect();
        let is_taken_down =
            line.is_some() && turn.flush.is_none() && !self.shared.config.transcript_keep.is_zero();
        if let Some(line) = line {
            self.sessions.commits(line);
            if turn.flush.is_none() {
                let noted = !keeps.remember.is_empty() || !keeps.forget.is_empty();
                self.sessions.answered(&turn.lane, noted);
            }
        }
        tracing::info!(persona = %self.persona.persona.id, turn = %turn.id, says = says.len(), "turn ends");
        let halt = self.shared.config.halt.filter(|_| !says.is_empty());
        let Books { session: Some(session), ledger } = self.sessions.books() else { return Ok(()) };
        let commit = Commit {
            pulse,
            reminders,
            persona: self.persona.persona.id.clone(),
            turn: turn.id,
            hops,
            says,
            guard,
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
        self.sessions.renew_and_tell(Reason::TooLong, &reason, false).await?;
        tracing::info!(turn = %turn.id, mail = turn.seqs.len(), left = seqs.len(), "the turn goes on with less mail");
        let (attempt, now) = (turn.attempt + 1, self.shared.clock.now());
        self.write(OpenTurn { seqs, attempt, not_before: now, as_of: now, troubles, ..turn }).await
    }

    async fn hold(&mut self, turn: OpenTurn, reason: String) -> Result<(), BridgeError> {
        let id = &self.persona.persona.id;
        let text = match turn.seqs.len() {
            0 => format!("{id} could not take up a turn without mail: {reason}"),
            mail => format!("{id} could not answer {mail} messages, they are held: {reason}"),
        };
        self.shared.tell(&format!("held:{}", turn.id), &text).await?;
        self.put_aside(turn, reason).await
    }

    /// Closes the open turn; its mail waits again.
    pub(crate) async fn put_back(&mut self) -> Result<(), BridgeError> {
        let Some(turn) = self.open.clone() else { return Ok(()) };
        let (id, books) = (&self.persona.persona.id, self.sessions.books());
        tracing::info!(persona = %id, turn = %turn.id, "turn ends: she is stopped where its mail was said");
        self.shared.store.put_back(id, self.as_told(turn), books).await?;
        self.open = None;
        self.presence.rest();
        self.sessions.boundary()
    }

    /// Closes a turn that is not answered; its mail, if it has any, is held for this reason.
    pub(super) async fn put_aside(&mut self, turn: OpenTurn, reason: String) -> Result<(), BridgeError> {
        let (id, books) = (&self.persona.persona.id, self.sessions.books());
        let turn = self.as_told(turn);
        self.shared.store.hold(id, turn, reason, self.shared.clock.now(), books).await?;
        self.open = None;
        self.sessions.boundary()
    }
}
