//! Rooms, seats and members.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};

use super::record::{self, LaneForm, LineForm, MemberForm, RoomForm, SeatForm, TextForm};
use super::table::{self, Table, key};
use super::tx::{Read, Tx};
use super::{Mark, Result, RoomRow, SeatRow, StartLine, Store, outbox};
use crate::conversation::{Described, Millis, PersonaId};

impl Store {
    /// All rooms.
    pub fn rooms(&self) -> Result<Vec<RoomRow>> {
        self.read(|view| all(view))
    }
    /// One room.
    pub fn room(&self, room: &OwnedRoomId) -> Result<Option<RoomRow>> {
        self.read(|view| self::room(view, room))
    }
    /// The checked mark of a room: the last event up to which the server's order was read without a gap.
    pub fn mark(&self, room: &OwnedRoomId) -> Result<Option<OwnedEventId>> {
        self.read(|view| mark_of(view, room))
    }
    /// Puts a Persona into a room (idempotent; an invite and a start line recorded before are kept).
    pub async fn seat(&self, seat: SeatRow, alias: Option<String>) -> Result<()> {
        self.write(move |tx| self::seat(tx, seat, alias)).await
    }
    /// Writes down start lines that were found.
    pub async fn set_lines(&self, room: OwnedRoomId, lines: Vec<(PersonaId, StartLine)>) -> Result<()> {
        self.write(move |tx| set_lines(tx, &room, lines)).await
    }
    /// Replaces the members of a room by what the server says.
    pub async fn set_members(
        &self,
        room: OwnedRoomId,
        members: Vec<(OwnedUserId, Option<String>)>,
        now: Millis,
    ) -> Result<()> {
        self.write(move |tx| set_members(tx, &room, members, now)).await
    }
    /// Writes down what a room is called or about, by the server's word.
    pub async fn describe(&self, room: OwnedRoomId, is: Described) -> Result<()> {
        self.write(move |tx| describe(tx, &room, is, None)).await
    }
    /// Another room takes the place of one, or none does after all.
    pub async fn succeed(&self, room: OwnedRoomId, to: Option<OwnedRoomId>) -> Result<()> {
        self.write(move |tx| succeed(tx, &room, to)).await
    }
    /// A room is found to be encrypted.
    pub async fn note_encrypted(&self, room: OwnedRoomId) -> Result<()> {
        self.write(move |tx| encrypted(tx, &room)).await
    }
    /// Takes a Persona out of a room and drops what waits to be sent by her user there; answers how many says.
    pub async fn unseat(&self, persona: &PersonaId, user: OwnedUserId, room: OwnedRoomId) -> Result<u64> {
        let persona = persona.clone();
        self.write(move |tx| unseat(tx, &persona, &user, &room)).await
    }
}

fn change(tx: &mut Tx<'_>, room: &RoomId, change: impl FnOnce(&mut RoomForm)) -> Result<()> {
    let mut form: RoomForm = tx.record(Table::Rooms, room.as_bytes())?.unwrap_or_default();
    change(&mut form);
    tx.put(Table::Rooms, room.as_bytes(), &form)
}

/// Moves the checked mark of a room.
pub(super) fn mark(tx: &mut Tx<'_>, mark: Mark) -> Result<()> {
    let Mark { room, event, lines } = mark;
    change(tx, &room, |form| form.mark = Some(event))?;
    set_lines(tx, &room, lines)
}

/// Writes start lines down, of those who have a seat.
pub(super) fn set_lines(tx: &mut Tx<'_>, room: &RoomId, lines: Vec<(PersonaId, StartLine)>) -> Result<()> {
    for (persona, line) in lines {
        let place = key(room.as_str(), persona.as_str().as_bytes());
        let seat: Option<SeatForm> = tx.record(Table::Seats, &place)?;
        let line = Some(LineForm::from(line));
        if let Some(seat) = seat.filter(|seat| seat.line != line) {
            tx.put(Table::Seats, &place, &SeatForm { line, ..seat })?;
        }
    }
    Ok(())
}

/// A room is encrypted from now on.
pub(super) fn encrypted(tx: &mut Tx<'_>, room: &RoomId) -> Result<()> {
    change(tx, room, |form| form.encrypted = true)
}

/// Writes down what a room is called or about: by an event of a time, unless a newer one is known, or by the server's word.
pub(super) fn describe(tx: &mut Tx<'_>, room: &RoomId, is: Described, at: Option<Millis>) -> Result<()> {
    change(tx, room, |form| {
        let (known, text) = match is {
            Described::Name(name) => (&mut form.name, name),
            Described::Topic(topic) => (&mut form.topic, topic),
        };
        let at = at.map_or(known.at, |at| at.0);
        if at >= known.at {
            *known = TextForm { text, at };
        }
    })
}

/// Another room takes the place of one, or none does after all.
pub(super) fn succeed(tx: &mut Tx<'_>, room: &RoomId, to: Option<OwnedRoomId>) -> Result<()> {
    change(tx, room, |form| form.successor = to)
}

/// Seats a Persona, who is not put out any more. An invite and a start line that were recorded stay; so does an alias.
pub(super) fn seat(tx: &mut Tx<'_>, seat: SeatRow, alias: Option<String>) -> Result<()> {
    change(tx, &seat.room, |form| {
        form.alias = alias.or(form.alias.take());
        form.out.remove(seat.persona.as_str());
    })?;
    let place = key(seat.room.as_str(), seat.persona.as_str().as_bytes());
    let before: Option<SeatForm> = tx.record(Table::Seats, &place)?;
    let (invite, line) = before.map_or((None, None), |seat| (seat.invite, seat.line));
    let (invite, line) = (invite.or(seat.invite), line.or(seat.line.map(LineForm::from)));
    tx.put(Table::Seats, &place, &SeatForm { lane: LaneForm::from(&seat.lane), invite, line })
}

/// Takes a Persona out of a room, and what waits to be sent by her there; answers how many says that were.
pub(super) fn unseat(tx: &mut Tx<'_>, persona: &PersonaId, user: &UserId, room: &RoomId) -> Result<u64> {
    let place = key(room.as_str(), persona.as_str().as_bytes());
    if tx.row(Table::Seats, &place)?.is_some() {
        change(tx, room, |form| {
            form.out.insert(persona.as_str().to_owned());
        })?;
    }
    tx.remove(Table::Seats, &place)?;
    if tx.rows(Table::Seats, &key(room.as_str(), &[]))?.is_empty() {
        // Nobody hears the room any more; who comes back begins at her new start line.
        change(tx, room, |form| form.mark = None)?;
    }
    outbox::drop_says(tx, user, room)
}

/// Writes down a membership unless a newer one is known.
pub(super) fn member(
    tx: &mut Tx<'_>,
    room: &RoomId,
    user: &UserId,
    name: Option<String>,
    joined: bool,
    at: Millis,
) -> Result<()> {
    let place = key(room.as_str(), user.as_bytes());
    let known: Option<MemberForm> = tx.record(Table::Members, &place)?;
    if known.is_some_and(|known| known.at > at.0) {
        return Ok(());
    }
    tx.put(Table::Members, &place, &MemberForm { name, joined, at: at.0 })
}

/// Replaces the members of a room; those not among them have left.
pub(super) fn set_members(
    tx: &mut Tx<'_>,
    room: &RoomId,
    members: Vec<(OwnedUserId, Option<String>)>,
    now: Millis,
) -> Result<()> {
    let prefix = key(room.as_str(), &[]);
    for (place, known) in tx.records::<MemberForm>(Table::Members, &prefix)? {
        tx.put(Table::Members, &place, &MemberForm { joined: false, at: now.0, ..known })?;
    }
    for (user, name) in members {
        let place = key(room.as_str(), user.as_bytes());
        tx.put(Table::Members, &place, &MemberForm { name, joined: true, at: now.0 })?;
    }
    Ok(())
}

/// The checked mark of a room.
pub(super) fn mark_of<R: Read>(from: &R, room: &RoomId) -> Result<Option<OwnedEventId>> {
    Ok(from.record::<RoomForm>(Table::Rooms, room.as_bytes())?.and_then(|form| form.mark))
}

/// The marks of all rooms, as keys.
pub(super) fn marks<R: Read>(from: &R) -> Result<BTreeSet<Vec<u8>>> {
    let rooms = from.records::<RoomForm>(Table::Rooms, &[])?.into_iter();
    Ok(rooms.filter_map(|(_, form)| form.mark).map(|mark| mark.as_bytes().to_vec()).collect())
}

/// A room.
pub(super) fn room<R: Read>(from: &R, room: &OwnedRoomId) -> Result<Option<RoomRow>> {
    let form = from.record::<RoomForm>(Table::Rooms, room.as_bytes())?;
    form.map(|form| filled(from, room.clone(), form)).transpose()
}

/// All rooms.
pub(super) fn all<R: Read>(from: &R) -> Result<Vec<RoomRow>> {
    let rows = from.records::<RoomForm>(Table::Rooms, &[])?.into_iter();
    rows.map(|(place, form)| filled(from, id(Table::Rooms, &place, &place)?, form)).collect()
}

fn filled<R: Read>(from: &R, room: OwnedRoomId, form: RoomForm) -> Result<RoomRow> {
    let prefix = key(room.as_str(), &[]);
    let seats = from.records::<SeatForm>(Table::Seats, &prefix)?.into_iter();
    let seats = seats.map(|(place, seat)| {
        let persona = PersonaId(id(Table::Seats, &place, table::parts(Table::Seats, &place)?.1)?);
        let (lane, line) = (seat.lane.into(), seat.line.map(StartLine::from));
        Ok(SeatRow { persona, room: room.clone(), lane, invite: seat.invite, line })
    });
    let seats = seats.collect::<Result<_>>()?;
    let members = from.records::<MemberForm>(Table::Members, &prefix)?.into_iter();
    let members = members.filter(|(_, member)| member.joined).map(|(place, member)| {
        let user = id(Table::Members, &place, table::parts(Table::Members, &place)?.1)?;
        Ok((user, member.name))
    });
    let members = members.collect::<Result<_>>()?;
    let out = form.out.into_iter().map(PersonaId).collect();
    let (name, topic) = (form.name.text, form.topic.text);
    let (alias, encrypted, mark, successor) = (form.alias, form.encrypted, form.mark, form.successor);
    Ok(RoomRow { room, alias, name, topic, encrypted, successor, mark, seats, out, members })
}

/// An id out of a key.
pub(super) fn id<T: TryFrom<String>>(table: Table, place: &[u8], bytes: &[u8]) -> Result<T> {
    let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
    text.and_then(|text| T::try_from(text).ok()).ok_or_else(|| record::corrupt(table, place, "not an id"))
}
