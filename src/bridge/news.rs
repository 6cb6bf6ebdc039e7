//! What a turn tells beside its mail: what is so now, against what her session was told already.

use std::collections::BTreeSet;

use ruma::{OwnedRoomId, OwnedUserId, UserId};

use super::directory::Directory;
use super::shared::Shared;
use super::speech::label;
use super::spend;
use super::{BridgeError, PersonaConfig};
use crate::conversation::notices::{Around, Common, Facts, MOST_PEOPLE, News, RoomFacts, Rooms, diff};
use crate::conversation::{Lane, Millis, Room, reactions};
use crate::persona::budget::day_number;

/// What is new in a lane to a session, as of a time.
pub(crate) fn news(
    shared: &Shared,
    persona: &PersonaConfig,
    lane: &Lane,
    generation: u32,
    now: Millis,
) -> Result<News, BridgeError> {
    let id = &persona.persona.id;
    let told = shared.store.told(id, lane, generation)?;
    let reactions = shared.store.reactions(id, lane)?;
    let campaigns = shared.store.campaigns()?.into_iter();
    let campaigns = campaigns.map(|open| (open.slug().to_string(), open.title().to_owned())).collect();
    let spent = shared.config.budget.quarters(shared.spend().today(id, now));
    let common = Common { day: day_number(now), campaigns, spent };
    let past = spend::past(shared, id, told.common.as_ref().map(|common| common.day), now)?;
    let directory = shared.directory();
    let facts = Facts { rooms: rooms(&directory, persona, lane), common };
    let name = |user: &UserId| name(&directory, &facts.rooms, user);
    let register = |room: &OwnedRoomId| match &directory.room(room)?.seats.get(id)?.lane {
        Lane::Register(register) => Some(register.clone()),
        Lane::Direct(_) => None,
    };
    let successor = |room: &OwnedRoomId| directory.successor(room).cloned();
    let around = Around { name: &name, register: &register, successor: &successor, past: &past };
    let mut notices = diff(&told, &facts, around);
    notices.extend(reactions::line(&reactions));
    Ok(News { generation, notices, facts, reactions: reactions.share })
}

fn rooms(directory: &Directory, persona: &PersonaConfig, lane: &Lane) -> Rooms {
    let of_lane = directory.rooms_in(&persona.persona.id, lane);
    of_lane.map(|room| (room.id.clone(), facts(directory, persona, lane, room))).collect()
}

fn facts(directory: &Directory, persona: &PersonaConfig, lane: &Lane, room: &Room) -> RoomFacts {
    let is_other = |user: &&OwnedUserId| **user != persona.persona.user && **user != directory.bot;
    let people = (room.members.len() <= MOST_PEOPLE)
        .then(|| room.members.keys().filter(is_other).cloned().collect::<BTreeSet<_>>());
    let (name, topic) = (room.name.clone(), room.topic.clone());
    RoomFacts { label: label(room, persona, lane), name, topic, people }
}

/// The display name of somebody in one of the rooms.
fn name(directory: &Directory, rooms: &Rooms, user: &UserId) -> Option<String> {
    rooms.keys().find_map(|room| directory.room(room)?.members.get(user)?.clone())
}
