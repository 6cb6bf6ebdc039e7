//! The beat as a text of JSON, and what Personas vote for it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mail::LaneForm;
use super::turn::WakeForm;
use crate::conversation::{Millis, PersonaId};
use crate::persona::heart::{Beats, Grant, Rhythm};
use crate::store::Result;
use crate::store::heart::PACE;
use crate::store::table::Table;

/// [`Rhythm`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct RhythmForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tempo_ms: Option<u64>,
    #[serde(default)]
    urgency: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    voted: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<u64>,
}

impl From<Rhythm> for RhythmForm {
    fn from(rhythm: Rhythm) -> Self {
        let millis = |tempo: Duration| u64::try_from(tempo.as_millis()).unwrap_or(u64::MAX);
        Self {
            tempo_ms: rhythm.tempo.map(millis),
            urgency: rhythm.urgency,
            voted: rhythm.voted.map(|at| at.0),
            ended: rhythm.ended.map(|at| at.0),
        }
    }
}

impl From<RhythmForm> for Rhythm {
    fn from(form: RhythmForm) -> Self {
        Self {
            tempo: form.tempo_ms.map(Duration::from_millis),
            urgency: form.urgency,
            voted: form.voted.map(Millis),
            ended: form.ended.map(Millis),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct PaceForm {
    last: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grant: Option<GrantForm>,
    #[serde(default)]
    silences: (u64, u32),
}

#[derive(Serialize, Deserialize)]
struct GrantForm {
    persona: String,
    lane: LaneForm,
    wake: WakeForm,
}

/// The text of the beat.
pub(in crate::store) fn pace_text(pace: &Beats) -> String {
    let grant = pace.grant.as_ref().map(|grant| GrantForm {
        persona: grant.persona.to_string(),
        lane: LaneForm::from(&grant.lane),
        wake: grant.wake.into(),
    });
    let silences = (pace.silences.0.0, pace.silences.1);
    serde_json::to_string(&PaceForm { last: pace.last.0, grant, silences })
        .expect("forms are plain data with text keys")
}

/// The beat of a text.
pub(in crate::store) fn pace(text: &str) -> Result<Beats> {
    let read: PaceForm = serde_json::from_str(text)
        .map_err(|_| super::corrupt(Table::Meta, PACE.as_bytes(), "it is no beat"))?;
    let grant = read.grant.map(|grant| Grant {
        persona: PersonaId(grant.persona),
        lane: grant.lane.into(),
        wake: grant.wake.into(),
    });
    let silences = (Millis(read.silences.0), read.silences.1);
    Ok(Beats { last: Millis(read.last), grant, silences })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Lane, RegisterName};
    use crate::persona::Wake;

    #[test]
    fn the_beat_stays_as_it_is() {
        let grant = Grant {
            persona: PersonaId("eir".to_owned()),
            lane: Lane::Register(RegisterName("swarm".to_owned())),
            wake: Wake::Beat,
        };
        let pace_of = |grant| Beats { last: Millis(5), grant, silences: (Millis(3), 2) };
        let rows = [
            (r#"{"last":5,"silences":[3,2]}"#, pace_of(None)),
            (
                r#"{"last":5,"grant":{"persona":"eir","lane":{"register":"swarm"},"wake":"beat"},"silences":[3,2]}"#,
                pace_of(Some(grant)),
            ),
        ];
        for (text, beat) in rows {
            assert_eq!((pace(text).unwrap(), pace_text(&beat).as_str()), (beat, text));
        }
        assert!(pace("[]").is_err());
    }
}
