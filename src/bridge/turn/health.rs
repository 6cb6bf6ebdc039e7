//! What operators see of a Persona's mind while it does not answer as it should.

use super::Turns;
use crate::bridge::BridgeError;
use crate::conversation::{Millis, PersonaId};
use crate::persona::Ending;

impl Turns {
    /// What the ending says of her mind: a warning and /ready while it does not answer.
    pub(super) fn show_health(&self, ending: &Ending) {
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
            | Ending::SessionGone { .. }
            | Ending::Unsettled { .. } => {}
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

    /// She is asked again at once, whatever she waited for.
    pub(crate) fn asks_again(&mut self) {
        if let Some(turn) = &mut self.open {
            turn.not_before = Millis::default();
        }
        self.shared.readiness.clear(&mind_key(&self.persona.persona.id));
    }

    pub(super) async fn stop_asking(&mut self, reason: String) -> Result<String, BridgeError> {
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
