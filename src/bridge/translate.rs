//! From events to what they do to the store; folds them into the directory on the way.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId};

use super::BridgeError;
use super::commands;
use super::directory::Directory;
use super::encryption;
use super::hearing;
use super::shared::{InviteWork, Poke, Shared};
use super::steering;
use super::upgrade;
use crate::conversation::about_me;
use crate::conversation::invite::{self, Decision};
use crate::conversation::{Content, Described, Event, Level, Member, Membership, PersonaId};
use crate::store::{Arrival, Effect, SeatRow, StartLine};

/// Why what is no message is not heard, as a counter's label.
pub(crate) const OTHER_TYPE: &str = "of another type";

/// How events came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// In a transaction.
    Transaction,
    /// By reading a room back.
    ReadBack,
}

/// What a group of events does.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) woken: Woken,
    pub(crate) invites: Vec<InviteWork>,
    pub(crate) pokes: BTreeSet<Poke>,
    /// Rooms in which reading has to begin, with the first event seen there.
    pub(crate) first_sights: Vec<(OwnedRoomId, OwnedEventId)>,
}

/// Who has something to do once the effects are in the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Woken {
    pub(crate) hearers: BTreeSet<PersonaId>,
    /// Whether the bot is asked something.
    pub(crate) desk: bool,
    /// The rooms in which an admin has stopped Personas, or let them go on.
    pub(crate) steered: BTreeSet<OwnedRoomId>,
}

/// Translates events in order.
pub(crate) fn translate(shared: &Shared, events: &[Event], path: Path) -> Result<Effects, BridgeError> {
    let mut effects = Effects::default();
    let control = shared.store.control_room()?;
    for event in events {
        if path == Path::ReadBack {
            shared.directory().read_over(event);
        }
        if shared.store.knows(&event.id)? {
            continue;
        }
        let steers = steering::steer(shared, event, path).is_some();
        let asked = if steers { None } else { question(&shared.directory(), event, path) };
        effects.woken.desk |= asked.is_some();
        if path == Path::Transaction && control.as_ref() != Some(&event.room) {
            if is_unknown(&shared.directory(), event) {
                if let Some(asked) = asked {
                    effects.arrivals.push(Arrival { event: event.id.clone(), effects: vec![asked] });
                    continue;
                }
                first_sight(shared, event, &mut effects)?;
                continue;
            }
            if shared.directory().is_for_reading(event) {
                first_sight(shared, event, &mut effects)?;
                continue;
            }
            if !shared.directory().hears(&event.room) {
                effects.pokes.insert(Poke::Room(event.room.clone()));
            }
        }
        if is_bots_join(&shared.directory(), event) {
            // So that it is known after a restart where the bot is.
            first_sight(shared, event, &mut effects)?;
        }
        let mut one = translate_one(shared, event, path, &mut effects)?;
        one.extend(asked);
        effects.arrivals.push(Arrival { event: event.id.clone(), effects: one });
    }
    Ok(effects)
}

/// A room without a seat, unless the event itself is about one of us.
fn is_unknown(directory: &Directory, event: &Event) -> bool {
    let about_us = matches!(&event.content, Content::Member(member) if directory.is_ours(&member.user));
    !about_us && directory.room(&event.room).is_none_or(|room| room.seats.is_empty())
}

fn is_bots_join(directory: &Directory, event: &Event) -> bool {
    matches!(&event.content, Content::Member(member) if member.user == directory.bot && member.membership == Membership::Join)
}

/// An event for which reading decides who hears it stays at the server: where nothing is read yet, reading begins at it.
fn first_sight(shared: &Shared, event: &Event, effects: &mut Effects) -> Result<(), BridgeError> {
    let marked = shared.store.mark(&event.room)?.is_some();
    if !marked && !effects.first_sights.iter().any(|(room, _)| *room == event.room) {
        effects.first_sights.push((event.room.clone(), event.id.clone()));
    }
    effects.pokes.insert(Poke::Room(event.room.clone()));
    Ok(())
}

fn translate_one(
    shared: &Shared,
    event: &Event,
    path: Path,
    effects: &mut Effects,
) -> Result<Vec<Effect>, BridgeError> {
    match &event.content {
        Content::Member(member) => member_changed(shared, event, member, path, effects),
        Content::Encryption => Ok(encrypted(shared, event)),
        Content::Message(_) | Content::Redaction { .. } | Content::Reaction { .. } => {
            hearing::said(shared, event, path, effects)
        }
        Content::Tombstone(to) => {
            let mut out = echo(shared, event);
            if let Some(to) = to.as_ref().filter(|to| **to != event.room) {
                effects.pokes.insert(Poke::Room(event.room.clone()));
                out.push(upgrade::announced(shared, &event.room, to));
            }
            Ok(out)
        }
        Content::Described(is) => Ok(described(shared, event, is)),
        Content::Other { .. } => {
            let ours = shared.directory().is_ours(&event.sender);
            shared.tally.unheard(OTHER_TYPE, u64::from(!ours));
            Ok(echo(shared, event))
        }
    }
}

/// What the bot is asked by somebody who may talk to us.
fn question(directory: &Directory, event: &Event, path: Path) -> Option<Effect> {
    let heard = !directory.is_ours(&event.sender) && level(directory, &event.sender) >= Level::Chat;
    let about_them = || about_me::question(event, &directory.bot).filter(|_| heard);
    commands::asked(directory, event, path).or_else(about_them).map(Effect::Ask)
}

/// The echo of what one of us sent.
pub(crate) fn echo(shared: &Shared, event: &Event) -> Vec<Effect> {
    let ours = shared.directory().is_ours(&event.sender);
    event.request.iter().filter(|_| ours).map(|request| Effect::Echo(request.clone())).collect()
}

fn member_changed(
    shared: &Shared,
    event: &Event,
    member: &Member,
    path: Path,
    effects: &mut Effects,
) -> Result<Vec<Effect>, BridgeError> {
    let mut directory = shared.directory();
    let joined = member.membership == Membership::Join;
    directory.member(&event.room, &member.user, member.display_name.clone(), joined, event.at);
    let mut out = vec![Effect::Member {
        room: event.room.clone(),
        user: member.user.clone(),
        name: member.display_name.clone(),
        joined,
        at: event.at,
    }];
    if path == Path::ReadBack {
        // What stands in history may be overtaken: the pass asks the server where she is now.
        return Ok(out);
    }
    let persona = directory.persona(&member.user).map(|persona| persona.id.clone());
    if member.membership == Membership::Invite
        && let Some(old) = persona.as_ref().and_then(|persona| directory.awaited(persona, &event.room))
    {
        effects.pokes.insert(Poke::Room(old.clone()));
        return Ok(out);
    }
    if member.membership == Membership::Invite && directory.is_ours(&member.user) {
        effects.invites.push(InviteWork {
            user: member.user.clone(),
            room: event.room.clone(),
            inviter: event.sender.clone(),
            is_direct: member.is_direct,
        });
    }
    let Some(persona) = persona else { return Ok(out) };
    match member.membership {
        Membership::Invite => {
            out.extend(invited(shared, &mut directory, event, &persona, member.is_direct));
        }
        Membership::Join => {
            effects.pokes.insert(Poke::Room(event.room.clone()));
        }
        Membership::Leave | Membership::Ban => {
            if directory.unseat(&persona, &event.room) && event.sender != member.user {
                out.extend(put_out(shared, event, member)?);
            }
            out.push(Effect::Unseat { persona, user: member.user.clone(), room: event.room.clone() });
        }
        Membership::Knock => {}
    }
    Ok(out)
}

/// Somebody has put her out of a room: operators are told once.
fn put_out(shared: &Shared, event: &Event, member: &Member) -> Result<Option<Effect>, BridgeError> {
    let text = format!(
        "{} was put out of {} by {}; what waited to be said there was dropped, and she comes back only by invite",
        member.user, event.room, event.sender
    );
    let telling = shared.telling(&format!("out:{}", event.id), &text)?;
    Ok(telling.map(|(key, says)| Effect::Once { key, says }))
}

/// The seat of an invite that is taken.
fn invited(
    shared: &Shared,
    directory: &mut Directory,
    event: &Event,
    persona: &PersonaId,
    is_direct: bool,
) -> Option<Effect> {
    let lane = decide_invite(shared, directory, &event.room, &event.sender, is_direct).lane()?;
    let row = SeatRow {
        persona: persona.clone(),
        room: event.room.clone(),
        lane,
        invite: Some(event.id.clone()),
        line: Some(StartLine { at: event.at, passed: false }),
    };
    directory.seat(&row);
    Some(Effect::Seat(row))
}

/// Decides an invite with what is known now.
pub(crate) fn decide_invite(
    shared: &Shared,
    directory: &Directory,
    room: &OwnedRoomId,
    inviter: &ruma::UserId,
    is_direct: bool,
) -> Decision {
    invite::decide(invite::Invite {
        room,
        level: level(directory, inviter),
        is_direct,
        heard: directory.lane(room),
        default_register: shared.config.default_register.as_ref(),
    })
}

/// What an inviter may do; our own users may invite each other.
pub(crate) fn level(directory: &Directory, inviter: &ruma::UserId) -> Level {
    if directory.is_ours(inviter) { Level::Admin } else { directory.permissions.level(inviter) }
}

fn described(shared: &Shared, event: &Event, is: &Described) -> Vec<Effect> {
    shared.directory().describe(&event.room, is.clone(), Some(event.at));
    let mut out = echo(shared, event);
    out.push(Effect::Described { room: event.room.clone(), is: is.clone(), at: event.at });
    out
}

fn encrypted(shared: &Shared, event: &Event) -> Vec<Effect> {
    let mut directory = shared.directory();
    directory.encrypted(&event.room);
    let mut out = vec![Effect::Encrypted(event.room.clone())];
    out.extend(encryption::notice_of(shared, &directory, &event.room));
    out
}
