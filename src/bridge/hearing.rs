//! Who hears what is said, and what it does to the store.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ruma::OwnedUserId;

use super::BridgeError;
use super::barred;
use super::directory::Directory;
use super::shared::Shared;
use super::steering;
use super::translate::{Effects, OTHER_TYPE, Path, echo};
use crate::conversation::address::{Hearing, Known, OWN, UNADDRESSED, asks, hear, root};
use crate::conversation::command;
use crate::conversation::{Content, Delivery, Event, Lane, Message, PersonaId, Room};
use crate::store::{Effect, Place, Reacted};

/// Whether a message is for the bridge, a word of an admin or a command, whoever says that: it is never mail.
pub(crate) fn is_for_bridge(shared: &Shared, event: &Event) -> bool {
    steering::steer(shared, event, Path::Transaction).is_some() || is_command(shared, event)
}

fn is_command(shared: &Shared, event: &Event) -> bool {
    let Content::Message(message) = &event.content else { return false };
    command::prefixed(message).is_some() && !shared.directory().is_ours(&event.sender)
}

/// What is known beside an event: whom it answers, and whom its thread asked.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// The sender of what it answers.
    pub(crate) answers: Option<OwnedUserId>,
    /// Whom the thread that it stands in asked last.
    pub(crate) asked: BTreeSet<PersonaId>,
}

impl Beside {
    /// What is known by now.
    pub(crate) fn of(shared: &Shared, event: &Event) -> Result<Self, BridgeError> {
        Ok(Self { answers: answered_user(shared, event)?, asked: asked_in_thread(shared, event)? })
    }

    /// With what is always known.
    pub(crate) fn known<'a>(&'a self, shared: &Shared, directory: &'a Directory, path: Path) -> Known<'a> {
        Known {
            personas: &directory.personas,
            permissions: &directory.permissions,
            bots: &directory.bots,
            max_hops: shared.config.among.max_hops,
            bot: &directory.bot,
            answers: self.answers.as_deref(),
            asked: &self.asked,
            now: shared.clock.now(),
            late: path == Path::ReadBack,
        }
    }
}

/// What a message, a redaction or a reaction does.
pub(crate) fn said(
    shared: &Shared,
    event: &Event,
    path: Path,
    effects: &mut Effects,
) -> Result<Vec<Effect>, BridgeError> {
    let mut out = echo(shared, event);
    if let Some(steer) = steering::steer(shared, event, path) {
        effects.woken.steered.insert(event.room.clone());
        out.push(steering::effect(shared, event, steer)?);
        return Ok(out);
    }
    if is_command(shared, event) {
        return Ok(out);
    }
    let event = &*placed(shared, event)?;
    let beside = Beside::of(shared, event)?;
    let is_to_us = reacts_to_us(shared, event)?;
    let mut directory = shared.directory();
    let Some(room) = directory.room(&event.room) else { return Ok(out) };
    let known = beside.known(shared, &directory, path);
    // What is read back is hers from her start line on; what is pushed is newer than that.
    let is_hers = |persona: &PersonaId| path != Path::ReadBack || directory.has_passed(persona, &event.room);
    let asks = asks(event, room, known);
    match hear(event, room, known) {
        Hearing::Mail(mut mail) => {
            mail.retain(|(persona, _)| is_hers(persona));
            effects.woken.hearers.extend(woken(&mail, room));
            out.extend(mail.into_iter().map(|(persona, delivery)| Effect::Deliver(persona, delivery)));
        }
        Hearing::Edit(of, mut mail, mut anew) => {
            mail.retain(|(persona, _)| is_hers(persona));
            anew.retain(|(persona, _)| is_hers(persona));
            effects.woken.hearers.extend(woken(&mail, room));
            out.extend(mail.into_iter().map(|(persona, d)| Effect::DeliverEdit(persona, of.clone(), d)));
            out.extend(anew.into_iter().map(|(persona, d)| Effect::Reworded(persona, d)));
        }
        Hearing::Redaction(redacts, notice) => {
            effects.woken.hearers.extend(room.seats.keys().cloned());
            out.push(Effect::Redact { redacts, notice });
        }
        Hearing::Reaction(mut seats) => {
            seats.retain(|(persona, _)| is_hers(persona));
            let counts = !is_to_us && !directory.is_ours(&event.sender);
            shared.tally.unheard(OTHER_TYPE, u64::from(counts));
            out.extend(reacted(event, seats).map(Effect::React));
        }
        Hearing::Nothing(why) => {
            out.extend(passed(shared, event, why));
            out.extend(barred::courtesy(shared, &directory, event, is_hers));
        }
    }
    if let Some((root, personas)) = asks {
        directory.threads().asked.put(root.clone(), personas.clone());
        out.push(Effect::Asks(root, personas));
    }
    Ok(out)
}

/// What nobody hears is counted, and kept in mind where it was only addressed to nobody.
fn passed(shared: &Shared, event: &Event, why: &'static str) -> Option<Effect> {
    tracing::debug!(event = %event.id, room = %event.room, why, "not mail");
    shared.tally.unheard(why, u64::from(why != OWN));
    (why == UNADDRESSED).then(|| Effect::Passed(event.room.clone(), event.sender.clone()))
}

/// An edit with the place of what it edits, whose thread and answer it does not say again; what is said anew takes its place.
fn placed<'a>(shared: &Shared, event: &'a Event) -> Result<Cow<'a, Event>, BridgeError> {
    let Content::Message(message) = &event.content else { return Ok(Cow::Borrowed(event)) };
    let Some(of) = &message.edits else {
        let place = Place { thread: message.thread.clone(), reply_to: message.reply_to.clone() };
        shared.directory().threads().places.put(event.id.clone(), place);
        return Ok(Cow::Borrowed(event));
    };
    let lately = shared.directory().threads().places.of(of);
    let Place { thread, reply_to } = match lately {
        Some(place) => place,
        None => shared.store.place_of(of)?,
    };
    let content = Content::Message(Message { thread, reply_to, ..message.clone() });
    Ok(Cow::Owned(Event { content, ..event.clone() }))
}

/// Whether an event is a reaction to what one of us said, as far as that is known yet.
fn reacts_to_us(shared: &Shared, event: &Event) -> Result<bool, BridgeError> {
    let Content::Reaction { to, .. } = &event.content else { return Ok(false) };
    Ok(shared.store.sent_by(to)?.is_some())
}

/// A reaction for those who sit in its room.
fn reacted(event: &Event, seats: Vec<(PersonaId, Lane)>) -> Option<Reacted> {
    let Content::Reaction { to, key } = &event.content else { return None };
    Some(Reacted { room: event.room.clone(), to: to.clone(), key: key.clone(), seats })
}

/// Whose loops are to look: the hearers', and all of the room where a person's word may let others go on who were held there.
fn woken(mail: &[(PersonaId, Delivery)], room: &Room) -> BTreeSet<PersonaId> {
    let hearers = mail.iter().map(|(persona, _)| persona.clone());
    let lifts = mail.iter().any(|(_, delivery)| delivery.addressed && delivery.hops.is_none());
    let others = room.seats.keys().filter(|_| lifts).cloned();
    hearers.chain(others).collect()
}

/// Who said what a message answers, where it is known: one of us, or somebody whom a Persona heard.
fn answered_user(shared: &Shared, event: &Event) -> Result<Option<OwnedUserId>, BridgeError> {
    let Content::Message(Message { reply_to: Some(reply_to), .. }) = &event.content else { return Ok(None) };
    if let Some(sender) = shared.store.sent_by(reply_to)? {
        return Ok(Some(sender));
    }
    Ok(shared.store.said_by(reply_to)?)
}

/// Whom the thread of a message asked last: before it has turned to anybody, the Persona who said what it stands on.
fn asked_in_thread(shared: &Shared, event: &Event) -> Result<BTreeSet<PersonaId>, BridgeError> {
    let Content::Message(message) = &event.content else { return Ok(BTreeSet::new()) };
    if message.thread.is_none() && message.edits.is_none() {
        return Ok(BTreeSet::new());
    }
    let root = root(event, message);
    // Not in the match itself, which would hold the directory while the store is read.
    let lately = shared.directory().threads().asked.of(root);
    if let Some(asked) = lately.map_or_else(|| shared.store.asked(root), |asked| Ok(Some(asked)))? {
        return Ok(asked);
    }
    let Some(sender) = shared.store.sent_by(root)? else { return Ok(BTreeSet::new()) };
    Ok(shared.directory().persona(&sender).map(|persona| persona.id.clone()).into_iter().collect())
}
