//! A flush: a turn without mail, in which a Persona notes what would be lost with her session. Nobody hears of it, and whatever
//! becomes of it, mail goes on.

use super::Turns;
use crate::bridge::BridgeError;
use crate::bridge::speech::{self, Spoken};
use crate::conversation::{Delivery, LineId, prompt};
use crate::mind::{Feed, Purpose};
use crate::persona::session::care::Reason;
use crate::persona::session::{Moment, Session};
use crate::persona::{Ending, OpenTurn, Troubles};

impl Turns {
    /// Begins a flush if one is due, with this mail at hand; answers whether it did.
    pub(crate) async fn flush(&mut self, moment: Moment, mail: &[Delivery]) -> Result<bool, BridgeError> {
        if self.open.is_some() {
            return Ok(false);
        }
        let Some((lane, reason)) = self.sessions.flush(moment, mail)? else { return Ok(false) };
        let (id, reason) = (&self.persona.persona.id, reason.name());
        tracing::info!(persona = %id, reason, "she is asked to note what would be lost with her session");
        let turn = OpenTurn { flush: Some(reason.to_owned()), ..self.drawn(&lane) };
        self.write(turn).await?;
        Ok(true)
    }

    /// The line of a flush. Of a session that was forgotten by the cache meanwhile, only an answer that stands there is taken.
    pub(super) fn feed_flush(&mut self, turn: &OpenTurn, session: Session) -> Result<Feed, BridgeError> {
        self.reminded = super::Reminded::default();
        self.sessions.feeds(&[], turn.as_of);
        let purpose = match self.sessions.purpose(&session, &[])? {
            Purpose::Answer if !self.sessions.is_warm()? => Purpose::Settle(Reason::Cold),
            purpose @ (Purpose::Answer | Purpose::Settle(_)) => purpose,
        };
        let label = speech::lane_label(&self.shared, &self.persona, &turn.lane);
        let (line, must_exist) = (LineId::derive(turn.id, turn.attempt), session.last_committed.is_some());
        let words = prompt::flush(&turn.lane, &label);
        let feed = Feed::single(session, line, &self.prompt, &words, self.shared.clock.now());
        Ok(Feed { must_exist, purpose, again: prompt::RETRY.to_owned(), ..feed })
    }

    /// What follows from the end of a flush: what she noted is kept, and nothing else of it. Lost on the way, it is fed once more.
    pub(super) async fn conclude_flush(
        &mut self,
        turn: OpenTurn,
        ending: Ending,
    ) -> Result<Option<String>, BridgeError> {
        match ending {
            Ending::Answered { reply } => match speech::keeps(&self.shared, &self.persona, &turn, &reply)? {
                Ok(keeps) => {
                    let line = LineId::derive(turn.id, turn.attempt);
                    self.commit(turn, Spoken { keeps, ..Spoken::default() }, Some(line)).await?;
                }
                Err(_) => self.give_up(turn).await?,
            },
            Ending::Lost { .. } if turn.troubles.lost == 0 => {
                let troubles = Troubles { lost: 1, ..Troubles::default() };
                self.write(OpenTurn { troubles, ..turn }).await?;
            }
            Ending::Poisoned { reason } => {
                self.give_up(turn).await?;
                self.spoilt(&reason).await?;
            }
            Ending::Refused { reason } => {
                self.give_up(turn).await?;
                return self.stop_asking(reason).await.map(Some);
            }
            Ending::Lost { .. }
            | Ending::Transient { .. }
            | Ending::Final { .. }
            | Ending::Rejected { .. }
            | Ending::Died { .. }
            | Ending::Invalid { .. }
            | Ending::TooLong
            | Ending::SessionGone { .. }
            | Ending::Unsettled { .. }
            | Ending::Stranded => self.give_up(turn).await?,
        }
        Ok(None)
    }

    async fn give_up(&mut self, turn: OpenTurn) -> Result<(), BridgeError> {
        let id = &self.persona.persona.id;
        tracing::info!(persona = %id, turn = %turn.id, "nothing was noted before her session may end");
        self.put_aside(turn, String::new()).await
    }
}
