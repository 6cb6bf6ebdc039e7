//! Memories, what a session was shown of them, and what people ask about them.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::{Deserialize, Serialize};

use super::mail::LaneForm;
use crate::conversation::about_me::{Question, Wish};
use crate::conversation::{Kept, Memory, MemoryNumber, Millis, Origin, Salience, Task};
use crate::persona::memory::Seen;

/// [`Memory`] without its number, which is in the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct MemoryForm {
    text: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    people: BTreeSet<OwnedUserId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    topics: BTreeSet<String>,
    salience: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<TaskForm>,
    lane: LaneForm,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    confided: BTreeMap<OwnedRoomId, BTreeSet<OwnedUserId>>,
    events: BTreeSet<OwnedEventId>,
    at: u64,
    generation: u32,
    uses: u32,
    used: u64,
}

/// [`Task`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskForm {
    Open,
    Done,
}

impl From<Task> for TaskForm {
    fn from(task: Task) -> Self {
        match task {
            Task::Open => Self::Open,
            Task::Done => Self::Done,
        }
    }
}

impl From<TaskForm> for Task {
    fn from(form: TaskForm) -> Self {
        match form {
            TaskForm::Open => Self::Open,
            TaskForm::Done => Self::Done,
        }
    }
}

impl From<&Memory> for MemoryForm {
    fn from(memory: &Memory) -> Self {
        let Memory { number: _, kept, origin, uses, used } = memory.clone();
        Self {
            text: kept.text,
            people: kept.people,
            topics: kept.topics,
            salience: kept.salience.hundredths(),
            task: kept.task.map(TaskForm::from),
            lane: LaneForm::from(&origin.lane),
            confided: origin.confided,
            events: origin.events,
            at: origin.at.0,
            generation: origin.generation,
            uses,
            used: used.0,
        }
    }
}

impl MemoryForm {
    /// The memory as it is where another direct room takes the place of one; none where it is not of that one.
    pub(in crate::store) fn carried_over(mut self, from: &OwnedRoomId, to: &OwnedRoomId) -> Option<Self> {
        let is_of_lane = matches!(&self.lane, LaneForm::Direct(room) if room == from);
        let told_by = self.confided.remove(from);
        let is_of_room = is_of_lane || told_by.is_some();
        if is_of_lane {
            self.lane = LaneForm::Direct(to.clone());
        }
        if let Some(told_by) = told_by {
            self.confided.entry(to.clone()).or_default().extend(told_by);
        }
        is_of_room.then_some(self)
    }

    /// The memory of this number.
    pub(in crate::store) fn memory(self, number: MemoryNumber) -> Memory {
        let kept = Kept {
            text: self.text,
            people: self.people,
            topics: self.topics,
            salience: Salience::of_hundredths(self.salience.into()),
            task: self.task.map(Task::from),
        };
        let origin = Origin {
            lane: self.lane.into(),
            confided: self.confided,
            events: self.events,
            at: Millis(self.at),
            generation: self.generation,
        };
        Memory { number, kept, origin, uses: self.uses, used: Millis(self.used) }
    }
}

/// In which room the event stands that a memory was learned from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct LearnedForm {
    pub(in crate::store) room: OwnedRoomId,
}

/// [`Question`] without its event, which is the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct QuestionForm {
    room: OwnedRoomId,
    user: OwnedUserId,
    forget: bool,
    mentions: bool,
    /// What an admin told the bridge; none where it is about memories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Whether that was carried out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    heeded: bool,
    #[serde(default, skip_serializing_if = "super::is_zero")]
    at: u64,
}

impl From<&Question> for QuestionForm {
    fn from(question: &Question) -> Self {
        Self {
            room: question.room.clone(),
            user: question.user.clone(),
            forget: question.wish == Wish::Forget,
            mentions: question.mentions,
            command: match &question.wish {
                Wish::Command(words) => Some(words.clone()),
                Wish::Tell | Wish::Forget => None,
            },
            heeded: false,
            at: question.at.0,
        }
    }
}

impl QuestionForm {
    /// The same, carried out.
    pub(in crate::store) fn heeded(self) -> Self {
        Self { heeded: true, ..self }
    }

    /// Whether it is.
    pub(in crate::store) fn is_heeded(&self) -> bool {
        self.heeded
    }

    /// The question of this event.
    pub(in crate::store) fn question(self, event: OwnedEventId) -> Question {
        let about_them = if self.forget { Wish::Forget } else { Wish::Tell };
        let wish = self.command.map_or(about_them, Wish::Command);
        Question {
            event,
            room: self.room,
            user: self.user,
            wish,
            at: Millis(self.at),
            mentions: self.mentions,
        }
    }
}

/// [`Seen`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct SeenForm {
    generation: u32,
    memories: BTreeSet<u64>,
    #[serde(default)]
    met: Vec<(LaneForm, BTreeSet<OwnedUserId>)>,
    #[serde(default)]
    earlier: BTreeMap<OwnedRoomId, BTreeSet<OwnedEventId>>,
}

impl From<Seen> for SeenForm {
    fn from(seen: Seen) -> Self {
        let memories = seen.memories.into_iter().map(|number| number.0).collect();
        let met = seen.people.into_iter().map(|(lane, people)| (LaneForm::from(&lane), people)).collect();
        Self { generation: seen.generation, memories, met, earlier: seen.earlier }
    }
}

impl From<SeenForm> for Seen {
    fn from(form: SeenForm) -> Self {
        let memories = form.memories.into_iter().map(MemoryNumber).collect();
        let people = form.met.into_iter().map(|(lane, people)| (lane.into(), people)).collect();
        Self { generation: form.generation, memories, people, earlier: form.earlier }
    }
}

#[cfg(test)]
mod tests {
    use ruma::{room_id, user_id};

    use super::*;

    fn form(lane: LaneForm, confided: &[(&str, &str)]) -> MemoryForm {
        let confided = confided
            .iter()
            .map(|(room, user)| ((*room).try_into().unwrap(), BTreeSet::from([(*user).try_into().unwrap()])));
        MemoryForm {
            text: "a cat".into(),
            people: BTreeSet::new(),
            topics: BTreeSet::new(),
            salience: 50,
            task: None,
            lane,
            confided: confided.collect(),
            events: BTreeSet::new(),
            at: 1,
            generation: 1,
            uses: 0,
            used: 1,
        }
    }

    #[test]
    fn what_is_of_a_direct_room_is_of_the_next_wherever_it_was_worded_and_nothing_else_is() {
        let (old, new) = (room_id!("!old").to_owned(), room_id!("!new").to_owned());
        let carried = |form: MemoryForm| {
            let memory = form.carried_over(&old, &new)?.memory(MemoryNumber(1));
            Some((memory.origin.lane, memory.origin.confided))
        };
        let direct = |room: &OwnedRoomId| LaneForm::Direct(room.clone());
        let swarm = LaneForm::Register("swarm".into());
        let told = |users: &[&OwnedUserId]| {
            BTreeMap::from([(new.clone(), users.iter().map(|user| (*user).clone()).collect::<BTreeSet<_>>())])
        };
        let (alice, bob) = (user_id!("@alice:x").to_owned(), user_id!("@bob:x").to_owned());
        let of_lane = carried(form(direct(&old), &[("!old", "@alice:x")]));
        assert_eq!(of_lane, Some((direct(&new).into(), told(&[&alice]))));
        let elsewhere = carried(form(swarm.clone(), &[("!old", "@alice:x"), ("!new", "@bob:x")]));
        assert_eq!(elsewhere, Some((swarm.clone().into(), told(&[&alice, &bob]))));
        assert_eq!(carried(form(swarm, &[("!other", "@alice:x")])), None);
        assert_eq!(carried(form(direct(&new), &[])), None);
    }
}
