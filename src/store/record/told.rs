//! What a session was told beside her mail.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedRoomId, OwnedUserId};
use serde::{Deserialize, Serialize};

use crate::conversation::notices::{Common, Facts, News, RoomFacts, Rooms};
use crate::conversation::reactions::Share;

/// What one session was told: of a lane's rooms, or of what is the same in every lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct ToldForm {
    pub(in crate::store) generation: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) rooms: Option<BTreeMap<OwnedRoomId, RoomFactsForm>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) common: Option<CommonForm>,
}

/// [`RoomFacts`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct RoomFactsForm {
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    people: Option<BTreeSet<OwnedUserId>>,
}

/// [`Common`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct CommonForm {
    day: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    campaigns: BTreeMap<String, String>,
    spent: (u8, u8),
}

/// [`News`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct NewsForm {
    generation: u32,
    notices: Vec<String>,
    rooms: BTreeMap<OwnedRoomId, RoomFactsForm>,
    common: CommonForm,
    /// The last reaction that is told, and how many more are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reactions: Option<(u64, u64)>,
}

/// The form of a lane's rooms.
pub(in crate::store) fn rooms_form(rooms: Rooms) -> BTreeMap<OwnedRoomId, RoomFactsForm> {
    rooms.into_iter().map(|(room, facts)| (room, facts.into())).collect()
}

/// A lane's rooms out of their form.
pub(in crate::store) fn rooms(form: BTreeMap<OwnedRoomId, RoomFactsForm>) -> Rooms {
    form.into_iter().map(|(room, facts)| (room, facts.into())).collect()
}

impl From<RoomFacts> for RoomFactsForm {
    fn from(RoomFacts { label, name, topic, people }: RoomFacts) -> Self {
        Self { label, name, topic, people }
    }
}

impl From<RoomFactsForm> for RoomFacts {
    fn from(RoomFactsForm { label, name, topic, people }: RoomFactsForm) -> Self {
        Self { label, name, topic, people }
    }
}

impl From<Common> for CommonForm {
    fn from(Common { day, campaigns, spent }: Common) -> Self {
        Self { day, campaigns, spent }
    }
}

impl From<CommonForm> for Common {
    fn from(CommonForm { day, campaigns, spent }: CommonForm) -> Self {
        Self { day, campaigns, spent }
    }
}

impl From<News> for NewsForm {
    fn from(News { generation, notices, facts: Facts { rooms, common }, reactions }: News) -> Self {
        let reactions = (reactions != Share::default()).then_some((reactions.last, reactions.more));
        Self { generation, notices, rooms: rooms_form(rooms), common: common.into(), reactions }
    }
}

impl From<NewsForm> for News {
    fn from(NewsForm { generation, notices, rooms: of, common, reactions }: NewsForm) -> Self {
        let reactions = reactions.map(|(last, more)| Share { last, more }).unwrap_or_default();
        Self { generation, notices, facts: Facts { rooms: rooms(of), common: common.into() }, reactions }
    }
}
