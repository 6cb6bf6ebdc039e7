//! The rooms as the bridge knows them right now, folded from events; the store has the same, durably.

mod succession;

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};

use super::start_line::Start;
use super::threads::Threads;
use super::{BridgeError, Config, RoomKind};
use crate::conversation::{
    Bots, Content, Described, Event, Heed, Lane, Listen, Membership, Millis, Permissions, Persona, PersonaId,
    RegisterName, Room, Seat,
};
use crate::store::{RoomRow, SeatRow, StartLine, Store};

/// All rooms, and what the config says of them.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) personas: Vec<Persona>,
    pub(crate) permissions: Permissions,
    pub(crate) bots: Bots,
    pub(crate) bot: OwnedUserId,
    rooms: BTreeMap<OwnedRoomId, Known>,
    configured: BTreeMap<OwnedRoomId, Lane>,
    heeds: BTreeMap<RegisterName, Heed>,
    /// Aliases of rooms in which only what is addressed becomes mail.
    addressed_only: BTreeSet<String>,
    threads: Threads,
}

#[derive(Debug)]
struct Known {
    room: Room,
    changed: BTreeMap<OwnedUserId, Millis>,
    invites: BTreeMap<PersonaId, OwnedEventId>,
    /// The start lines that are known.
    lines: BTreeMap<PersonaId, StartLine>,
    /// Those who had a seat and lost it.
    out: BTreeSet<PersonaId>,
    /// Whether reading has caught up: before that, what is pushed would overtake what is read.
    marked: bool,
    /// After how many outages the server last said that the room is not encrypted.
    plain: Option<u64>,
    described: Dates,
    /// The room that takes its place, by its own word.
    successor: Option<OwnedRoomId>,
}

/// When a room was described last.
#[derive(Debug, Default)]
struct Dates {
    name: Millis,
    topic: Millis,
    /// After how many outages the server was last asked.
    asked: Option<u64>,
}

impl Directory {
    /// Loads what the store has. Reading has to reach each mark before mail is fed: what was lost while the service was
    /// away comes before what is pushed now.
    pub(crate) fn load(config: &Config, store: &Store) -> Result<Self, BridgeError> {
        let mut directory = Self {
            personas: config.personas.iter().map(|p| p.persona.clone()).collect(),
            permissions: config.permissions.clone(),
            bots: config.bots.clone(),
            bot: config.bot.clone(),
            rooms: BTreeMap::new(),
            configured: BTreeMap::new(),
            addressed_only: config.addressed_only.iter().map(ToString::to_string).collect(),
            threads: Threads::default(),
            heeds: config.registers.iter().map(|(name, register)| (name.clone(), register.heed)).collect(),
        };
        for row in store.rooms()? {
            directory.put_row(config, row);
        }
        Ok(directory)
    }

    fn put_row(&mut self, config: &Config, row: RoomRow) {
        let RoomRow { room, alias, name, topic, encrypted, successor, mark: _, seats, out, members } = row;
        let kind = alias.as_deref().and_then(|alias| kind_of(config, alias));
        if let Some(kind) = kind {
            self.configured.insert(room.clone(), kind.lane(&room));
        }
        self.name(&room, alias);
        let known = self.known(&room);
        (known.room.name, known.room.topic) = (name, topic);
        known.room.encrypted = encrypted;
        known.room.members = members.into_iter().collect();
        (known.out, known.successor) = (out, successor);
        for seat in seats {
            self.seat(&seat);
        }
    }

    fn known(&mut self, room: &OwnedRoomId) -> &mut Known {
        self.rooms.entry(room.clone()).or_insert_with(|| Known {
            room: Room {
                id: room.clone(),
                alias: None,
                name: None,
                topic: None,
                encrypted: false,
                listen: Listen::All,
                seats: BTreeMap::new(),
                members: BTreeMap::new(),
            },
            changed: BTreeMap::new(),
            invites: BTreeMap::new(),
            lines: BTreeMap::new(),
            out: BTreeSet::new(),
            marked: false,
            plain: None,
            described: Dates::default(),
            successor: None,
        })
    }

    /// A room, if anything is known of it.
    pub(crate) fn room(&self, room: &RoomId) -> Option<&Room> {
        self.rooms.get(room).map(|known| &known.room)
    }

    /// All rooms with a seat in them.
    pub(crate) fn seated(&self) -> Vec<OwnedRoomId> {
        self.rooms.values().filter(|k| !k.room.seats.is_empty()).map(|k| k.room.id.clone()).collect()
    }

    /// The Persona of a user.
    pub(crate) fn persona(&self, user: &UserId) -> Option<&Persona> {
        self.personas.iter().find(|persona| persona.user == user)
    }

    /// Whether a user is the bot or a Persona.
    pub(crate) fn is_ours(&self, user: &UserId) -> bool {
        *self.bot == *user || self.persona(user).is_some()
    }

    /// Whether nobody of us is known to be in a room, so that its events may mean that somebody is.
    pub(crate) fn is_strange(&self, room: &OwnedRoomId) -> bool {
        self.room(room).is_none_or(|room| room.seats.is_empty() && !room.members.contains_key(&self.bot))
    }

    /// All rooms of which anything is known.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = &Room> {
        self.rooms.values().map(|known| &known.room)
    }

    /// Whether the bot is in a room, and no Persona is.
    pub(crate) fn is_bots(&self, room: &RoomId) -> bool {
        self.room(room).is_some_and(|room| room.seats.is_empty() && room.members.contains_key(&self.bot))
    }

    /// The lane of a room that the config names.
    pub(crate) fn configured(&self, room: &OwnedRoomId) -> Option<&Lane> {
        self.configured.get(room)
    }

    /// The lane in which a room is heard: as the config says, else as whoever sits there hears it. All hear a room in one lane:
    /// what is said in somebody's direct chat is never heard among the rooms of a register.
    pub(crate) fn lane(&self, room: &OwnedRoomId) -> Option<&Lane> {
        let seats = || self.room(room).into_iter().flat_map(|room| room.seats.values());
        let is_direct = |seat: &&Seat| matches!(seat.lane, Lane::Direct(_));
        let sits = || seats().find(is_direct).or_else(|| seats().next());
        self.configured(room).or_else(|| sits().map(|seat| &seat.lane))
    }

    /// Ties an alias of the config to its room.
    pub(crate) fn configure(&mut self, room: &OwnedRoomId, alias: &str, kind: &RoomKind) {
        self.configured.insert(room.clone(), kind.lane(room));
        self.name(room, Some(alias.to_owned()));
    }

    fn name(&mut self, room: &OwnedRoomId, alias: Option<String>) {
        let is_named = alias.as_ref().is_some_and(|alias| self.addressed_only.contains(alias));
        let known = self.known(room);
        known.room.alias = alias;
        known.room.listen = if is_named { Listen::Addressed } else { Listen::All };
    }

    /// What was just heard of whom threads ask, and is not in the store yet.
    pub(crate) fn threads(&mut self) -> &mut Threads {
        &mut self.threads
    }

    /// The rooms known by an alias in which a Persona has a seat, or had one.
    pub(crate) fn been_in(&self, persona: &PersonaId, alias: &str) -> Vec<OwnedRoomId> {
        let named = self.rooms.values().filter(|known| known.room.alias.as_deref() == Some(alias));
        let been =
            named.filter(|known| known.out.contains(persona) || known.room.seats.contains_key(persona));
        been.map(|known| known.room.id.clone()).collect()
    }

    /// A Persona takes her place.
    pub(crate) fn seat(&mut self, row: &SeatRow) {
        let heed = self.heeds.get(&row.lane.register()).copied().unwrap_or_default();
        let known = self.known(&row.room);
        known.out.remove(&row.persona);
        known.room.seats.insert(row.persona.clone(), Seat { lane: row.lane.clone(), heed });
        if let Some(invite) = &row.invite {
            known.invites.insert(row.persona.clone(), invite.clone());
        }
        match row.line {
            _ if known.lines.contains_key(&row.persona) => {}
            Some(line) => drop(known.lines.insert(row.persona.clone(), line)),
            // Nothing is fed before it is known what is hers.
            None => known.marked = false,
        }
    }

    /// A Persona loses her place; answers whether she had one.
    pub(crate) fn unseat(&mut self, persona: &PersonaId, room: &OwnedRoomId) -> bool {
        let Some(known) = self.rooms.get_mut(room) else { return false };
        let had = known.room.seats.remove(persona).is_some();
        known.invites.remove(persona);
        known.lines.remove(persona);
        if had {
            known.out.insert(persona.clone());
        }
        known.marked &= !known.room.seats.is_empty();
        had
    }

    /// Whether mail of a room may be fed: somebody sits there and reading has caught up.
    pub(crate) fn hears(&self, room: &RoomId) -> bool {
        self.rooms.get(room).is_some_and(|known| known.marked && !known.room.seats.is_empty())
    }

    /// Whether a Persona's mail of a room may be fed: its reading has caught up, or she has lost the room.
    pub(crate) fn is_ready(&self, persona: &PersonaId, room: &RoomId) -> bool {
        !self.sits(persona, room) || self.hears(room)
    }

    /// Reading a room has caught up.
    pub(crate) fn set_marked(&mut self, room: &OwnedRoomId) {
        self.known(room).marked = true;
    }

    /// Reading has to catch up again, in one room or in all, before mail is fed; encryption may have come meanwhile.
    pub(crate) fn unmark(&mut self, room: Option<&OwnedRoomId>) {
        let fits = |id: &OwnedRoomId| room.is_none_or(|room| room == id);
        self.rooms.iter_mut().filter(|(id, _)| fits(id)).for_each(|(_, known)| {
            known.marked = false;
            known.plain = None;
            known.described.asked = None;
        });
    }

    /// The seats of a room, with what is known of where hearing begins.
    pub(crate) fn starts(&self, room: &OwnedRoomId) -> Vec<Start> {
        let Some(known) = self.rooms.get(room) else { return Vec::new() };
        let seated = self.personas.iter().filter(|persona| known.room.seats.contains_key(&persona.id));
        let start = |persona: &Persona| Start {
            persona: persona.id.clone(),
            user: persona.user.clone(),
            invite: known.invites.get(&persona.id).cloned(),
            line: known.lines.get(&persona.id).copied(),
        };
        seated.map(start).collect()
    }

    /// The start lines of a room as far as they are known.
    pub(crate) fn lines(&self, room: &OwnedRoomId) -> Vec<(PersonaId, StartLine)> {
        let lines = self.rooms.get(room).map(|known| &known.lines).into_iter().flatten();
        lines.map(|(persona, line)| (persona.clone(), *line)).collect()
    }

    /// Start lines are found, or passed.
    pub(crate) fn set_lines(&mut self, room: &OwnedRoomId, lines: &[(PersonaId, StartLine)]) {
        let known = self.known(room);
        let seated = lines.iter().filter(|(persona, _)| known.room.seats.contains_key(persona));
        known.lines.extend(seated.cloned());
    }

    /// Reading is about to come to a Persona's start line.
    pub(crate) fn expect_line(&mut self, room: &OwnedRoomId, persona: &PersonaId) {
        let known = self.known(room);
        if known.room.seats.contains_key(persona) {
            known.lines.entry(persona.clone()).or_insert(StartLine { at: Millis(0), passed: false });
        }
    }

    /// Reading comes to an event: her own invite or join is where her hearing begins, her leave where it ends.
    pub(crate) fn read_over(&mut self, event: &Event) {
        let Content::Member(member) = &event.content else { return };
        let Some(persona) = self.persona(&member.user).map(|persona| persona.id.clone()) else { return };
        let known = self.rooms.get_mut(&event.room);
        let Some(line) = known.and_then(|known| known.lines.get_mut(&persona)) else { return };
        match member.membership {
            Membership::Invite | Membership::Join if line.passed => {}
            Membership::Invite | Membership::Join => *line = StartLine { at: event.at, passed: true },
            Membership::Leave | Membership::Ban => line.passed = false,
            Membership::Knock => {}
        }
    }

    /// Whether reading a room has come to where a Persona's hearing begins.
    pub(crate) fn has_passed(&self, persona: &PersonaId, room: &OwnedRoomId) -> bool {
        self.rooms.get(room).and_then(|known| known.lines.get(persona)).is_some_and(|line| line.passed)
    }

    /// Whether only reading can tell for whom a pushed event is mail: it is older than somebody's start line, or that is
    /// not known yet.
    pub(crate) fn is_for_reading(&self, event: &Event) -> bool {
        let Some(known) = self.rooms.get(&event.room) else { return false };
        let early = |persona| match known.lines.get(persona) {
            Some(line) => event.at < line.at && event.at.is_known(),
            None => !known.marked,
        };
        matches!(event.content, Content::Message(_)) && known.room.seats.keys().any(early)
    }

    /// A member's state; older news than the known changes nothing.
    pub(crate) fn member(
        &mut self,
        room: &OwnedRoomId,
        user: &OwnedUserId,
        name: Option<String>,
        joined: bool,
        at: Millis,
    ) {
        let known = self.known(room);
        if known.changed.get(user).is_some_and(|changed| *changed > at) {
            return;
        }
        known.changed.insert(user.clone(), at);
        if joined {
            known.room.members.insert(user.clone(), name);
        } else {
            known.room.members.remove(user);
        }
    }

    /// A Persona is in a room, by the server's word; who else is there is not known.
    pub(crate) fn joined(&mut self, room: &OwnedRoomId, user: &UserId) {
        let name = self.persona(user).map(|persona| persona.name.clone());
        self.known(room).room.members.entry(user.to_owned()).or_insert(name);
    }

    /// All members, by the server's word.
    pub(crate) fn set_members(&mut self, room: &OwnedRoomId, members: &[(OwnedUserId, Option<String>)]) {
        self.known(room).room.members = members.iter().cloned().collect();
    }

    /// What a room is called or about: by an event of a time, unless a newer one is known, or by the server's word.
    /// Answers whether that is another one than was known.
    pub(crate) fn describe(&mut self, room: &OwnedRoomId, is: Described, at: Option<Millis>) -> bool {
        let known = self.known(room);
        let (date, is_now, text) = match is {
            Described::Name(name) => (&mut known.described.name, &mut known.room.name, name),
            Described::Topic(topic) => (&mut known.described.topic, &mut known.room.topic, topic),
        };
        let at = at.unwrap_or(*date);
        if at < *date {
            return false;
        }
        *date = at;
        std::mem::replace(is_now, text.clone()) != text
    }

    /// The server was asked what the room is called and about, after so many outages.
    pub(crate) fn asked_description(&mut self, room: &OwnedRoomId, outages: u64) {
        self.known(room).described.asked = Some(outages);
    }

    /// Whether that was asked, and nothing was missed since.
    pub(crate) fn is_described(&self, room: &OwnedRoomId, outages: u64) -> bool {
        self.rooms.get(room).is_some_and(|known| known.described.asked == Some(outages))
    }

    /// The room is encrypted from now on.
    pub(crate) fn encrypted(&mut self, room: &OwnedRoomId) {
        self.known(room).room.encrypted = true;
    }

    /// The server says, after so many outages, that the room is not encrypted.
    pub(crate) fn plain(&mut self, room: &OwnedRoomId, outages: u64) {
        self.known(room).plain = Some(outages);
    }

    /// Whether the room is known not to be encrypted, and nothing was missed since.
    pub(crate) fn is_plain(&self, room: &OwnedRoomId, outages: u64) -> bool {
        self.rooms.get(room).is_some_and(|known| !known.room.encrypted && known.plain == Some(outages))
    }

    /// Those who may read a room: joined by the server's word. Conduit hides for ever what somebody asks for too early.
    pub(crate) fn readers(&self, room: &OwnedRoomId) -> Vec<OwnedUserId> {
        let Some(room) = self.room(room) else { return Vec::new() };
        let seated = self.personas.iter().filter(|persona| room.seats.contains_key(&persona.id));
        seated.map(|persona| persona.user.clone()).filter(|user| room.members.contains_key(user)).collect()
    }

    /// Whether the room is known to be encrypted.
    pub(crate) fn is_encrypted(&self, room: &OwnedRoomId) -> bool {
        self.rooms.get(room).is_some_and(|known| known.room.encrypted)
    }

    /// The direct rooms of a Persona, each with the person she talks to there, if that is known.
    pub(crate) fn directs(&self, persona: &PersonaId) -> Vec<(OwnedRoomId, Option<OwnedUserId>)> {
        let rooms =
            self.rooms.values().map(|known| &known.room).filter(|room| {
                room.seats.get(persona).is_some_and(|seat| matches!(seat.lane, Lane::Direct(_)))
            });
        rooms
            .map(|room| (room.id.clone(), room.members.keys().find(|user| !self.is_ours(user)).cloned()))
            .collect()
    }

    /// The rooms that a Persona hears in a lane.
    pub(crate) fn rooms_in(&self, persona: &PersonaId, lane: &Lane) -> impl Iterator<Item = &Room> {
        self.rooms_of(persona)
            .filter(move |room| room.seats.get(persona).is_some_and(|seat| seat.lane == *lane))
    }

    /// Whether a Persona has a seat in a room.
    pub(crate) fn sits(&self, persona: &PersonaId, room: &RoomId) -> bool {
        self.room(room).is_some_and(|room| room.seats.contains_key(persona))
    }

    /// The rooms in which a Persona has a seat.
    pub(crate) fn rooms_of(&self, persona: &PersonaId) -> impl Iterator<Item = &Room> {
        self.rooms.values().map(|known| &known.room).filter(|room| room.seats.contains_key(persona))
    }
}

/// What the config says of an alias.
fn kind_of<'a>(config: &'a Config, alias: &str) -> Option<&'a RoomKind> {
    config.rooms.iter().find(|(configured, _)| configured.as_str() == alias).map(|(_, kind)| kind)
}
