//! What the store promises, in plain maps.

use std::collections::{BTreeMap, BTreeSet};

use persona_bridge::conversation::{Delivery, DeliveryKind, Lane, Millis, PersonaId, RequestId};
use persona_bridge::persona::OpenTurn;
use persona_bridge::persona::session::Session;
use persona_bridge::store::{Arrival, Commit, Effect, NewSay, SeatRow};
use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

/// Everything of one Persona.
#[derive(Clone, Debug, Default)]
pub(super) struct Pile {
    /// What each number stood for, the first being number 1.
    pub(super) heard: Vec<Delivery>,
    /// The numbers whose mail is there, with its words as they are now.
    pub(super) mail: BTreeMap<u64, Delivery>,
    /// Mail put aside.
    pub(super) held: BTreeMap<u64, (Delivery, String)>,
    /// The numbers of mail that was held once and is not any more.
    pub(super) released: BTreeSet<u64>,
    pub(super) turn: Option<OpenTurn>,
    pub(super) session: Option<Session>,
}

impl Pile {
    pub(super) fn number(&self, event: &OwnedEventId) -> Option<u64> {
        let place = self.heard.iter().position(|heard| heard.event == *event)?;
        Some(place as u64 + 1)
    }

    fn is_open(&self, seq: u64) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.seqs.contains(&seq))
    }

    /// The numbers that wait.
    pub(super) fn waiting(&self) -> Vec<u64> {
        let waits =
            |(seq, mail): &(&u64, &Delivery)| mail.kind != DeliveryKind::Withdrawn && !self.is_open(**seq);
        self.mail.iter().filter(waits).map(|(seq, _)| *seq).collect()
    }
}

/// A say of the outbox.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) say: NewSay,
    pub(super) parked: bool,
    /// Whose turn said it in which lane, if one did.
    spoken: Option<(PersonaId, Lane)>,
}

/// The whole store.
#[derive(Clone, Debug, Default)]
pub(super) struct Reference {
    pub(super) seen: BTreeMap<OwnedEventId, Millis>,
    pub(super) piles: BTreeMap<PersonaId, Pile>,
    pub(super) redacted: BTreeMap<(OwnedEventId, OwnedRoomId), Millis>,
    pub(super) edits: BTreeMap<OwnedEventId, Vec<OwnedEventId>>,
    pub(super) outbox: Vec<Queued>,
    pub(super) sent: BTreeMap<RequestId, (OwnedEventId, Millis)>,
    pub(super) ours: BTreeMap<OwnedEventId, OwnedUserId>,
    /// Events of ours that a turn said, with room and lane.
    spoken: BTreeMap<OwnedEventId, (OwnedRoomId, PersonaId, Lane)>,
    pub(super) once: BTreeSet<String>,
    pub(super) seats: BTreeMap<(OwnedRoomId, PersonaId), SeatRow>,
    pub(super) members: BTreeMap<(OwnedRoomId, OwnedUserId), (Option<String>, bool, Millis)>,
    pub(super) encrypted: BTreeSet<OwnedRoomId>,
}

impl Reference {
    pub(super) fn pile(&mut self, persona: &PersonaId) -> &mut Pile {
        self.piles.entry(persona.clone()).or_default()
    }

    pub(super) fn accept(&mut self, arrivals: &[Arrival], now: Millis) -> Vec<bool> {
        arrivals.iter().map(|arrival| self.arrive(arrival, now)).collect()
    }

    fn arrive(&mut self, arrival: &Arrival, now: Millis) -> bool {
        if self.seen.contains_key(&arrival.event) {
            return false;
        }
        self.seen.insert(arrival.event.clone(), now);
        for effect in &arrival.effects {
            self.take_effect(&arrival.event, effect, now);
        }
        true
    }

    fn take_effect(&mut self, event: &OwnedEventId, effect: &Effect, now: Millis) {
        match effect {
            Effect::Deliver(persona, delivery) => self.deliver(persona, delivery),
            Effect::Redact { redacts, notice } => self.redact(redacts, notice, now),
            Effect::DeliverEdit(persona, edits, delivery) => self.deliver_edit(persona, edits, delivery),
            Effect::Member { room, user, name, joined, at } => {
                let known = self.members.entry((room.clone(), user.clone())).or_default();
                if known.2 <= *at {
                    *known = (name.clone(), *joined, *at);
                }
            }
            Effect::Encrypted(room) => drop(self.encrypted.insert(room.clone())),
            Effect::Echo(request) => self.take_out(request, event, now),
            Effect::Seat(seat) => self.seat(seat),
            Effect::Unseat { persona, user, room } => drop(self.unseat(persona, user, room)),
            Effect::Once { key, says } => drop(self.say_once(key, says)),
            Effect::Ask(_)
            | Effect::Asks(..)
            | Effect::Described { .. }
            | Effect::Passed(..)
            | Effect::React(_)
            | Effect::Reworded(..)
            | Effect::Steer { .. }
            | Effect::Upgraded { .. } => unreachable!("none is drawn"),
        }
    }

    fn deliver(&mut self, persona: &PersonaId, delivery: &Delivery) {
        let redacted = self.redacted.contains_key(&(delivery.event.clone(), delivery.room.clone()));
        let pile = self.pile(persona);
        if redacted || pile.number(&delivery.event).is_some() {
            return;
        }
        let seq = pile.heard.len() as u64 + 1;
        let delivery = Delivery { seq, ..delivery.clone() };
        pile.heard.push(delivery.clone());
        pile.mail.insert(seq, delivery);
    }

    fn deliver_edit(&mut self, persona: &PersonaId, edits: &OwnedEventId, delivery: &Delivery) {
        let redacted = self.redacted.contains_key(&(edits.clone(), delivery.room.clone()));
        let heard = self.pile(persona).heard.iter().find(|heard| heard.event == *edits);
        let fits = heard.is_some_and(|heard| heard.room == delivery.room && heard.sender == delivery.sender);
        if fits && !redacted {
            self.edits.entry(edits.clone()).or_default().push(delivery.event.clone());
            self.deliver(persona, delivery);
        }
    }

    fn redact(&mut self, redacts: &OwnedEventId, notice: &Delivery, now: Millis) {
        if self.redacted.insert((redacts.clone(), notice.room.clone()), now).is_some() {
            return;
        }
        let edits = self.edits.get(redacts).cloned().unwrap_or_default();
        for persona in self.piles.keys().cloned().collect::<Vec<_>>() {
            let pile = self.pile(&persona);
            let Some(heard) = pile.heard.iter().find(|heard| heard.event == *redacts).cloned() else {
                continue;
            };
            if heard.room != notice.room {
                continue;
            }
            let copies = edits.iter().filter_map(|edit| pile.number(edit)).collect::<Vec<_>>();
            let fed =
                [heard.seq].into_iter().chain(copies).map(|seq| withdraw(pile, seq)).collect::<Vec<_>>();
            if fed.contains(&true) {
                self.deliver(&persona, &Delivery { lane: heard.lane, ..notice.clone() });
            }
        }
        if let Some((room, persona, lane)) = self.spoken.get(redacts).cloned()
            && room == notice.room
        {
            self.deliver(&persona, &Delivery { lane, ..notice.clone() });
        }
    }

    pub(super) fn write_turn(&mut self, persona: &PersonaId, turn: &OpenTurn, session: Option<&Session>) {
        let pile = self.pile(persona);
        pile.mail.retain(|seq, mail| mail.kind != DeliveryKind::Withdrawn || turn.seqs.contains(seq));
        pile.turn = Some(turn.clone());
        pile.session = session.cloned().or(pile.session.take());
    }

    pub(super) fn commit(&mut self, commit: &Commit) {
        let pile = self.pile(&commit.persona);
        let Some(turn) = pile.turn.take_if(|turn| turn.id == commit.turn) else { return };
        turn.seqs.iter().for_each(|seq| drop(pile.mail.remove(seq)));
        pile.session = Some(commit.session.clone());
        let spoken = Some((commit.persona.clone(), turn.lane));
        commit.says.iter().for_each(|say| self.say(say, spoken.clone()));
    }

    pub(super) fn hold(&mut self, persona: &PersonaId, turn: &OpenTurn, reason: &str) {
        let pile = self.pile(persona);
        for seq in &turn.seqs {
            if let Some(mail) = pile.mail.remove(seq)
                && mail.kind != DeliveryKind::Withdrawn
            {
                pile.held.insert(*seq, (mail, reason.to_owned()));
            }
        }
        pile.turn.take_if(|open| open.id == turn.id);
    }

    /// Puts held mail back and lets parked says go again; answers how many of each.
    pub(super) fn release(&mut self, persona: &PersonaId, user: &OwnedUserId) -> (u64, u64) {
        let pile = self.pile(persona);
        let held = std::mem::take(&mut pile.held).into_iter();
        let held = held.filter(|(_, (mail, _))| mail.kind != DeliveryKind::Withdrawn);
        let held: Vec<(u64, Delivery)> = held.map(|(seq, (mail, _))| (seq, mail)).collect();
        pile.released.extend(held.iter().map(|(seq, _)| *seq));
        let mail = held.len() as u64;
        pile.mail.extend(held);
        let parked = self.outbox.iter_mut().filter(|queued| queued.parked && queued.say.sender == *user);
        (mail, parked.map(|queued| queued.parked = false).count() as u64)
    }

    fn say(&mut self, say: &NewSay, spoken: Option<(PersonaId, Lane)>) {
        let known = self.sent.contains_key(&say.request)
            || self.outbox.iter().any(|queued| queued.say.request == say.request);
        if !known {
            self.outbox.push(Queued { say: say.clone(), parked: false, spoken });
        }
    }

    pub(super) fn say_once(&mut self, key: &str, says: &[NewSay]) -> bool {
        let new = self.once.insert(key.to_owned());
        if new {
            says.iter().for_each(|say| self.say(say, None));
        }
        new
    }

    /// A request became an event.
    pub(super) fn take_out(&mut self, request: &RequestId, event: &OwnedEventId, now: Millis) {
        let waits = |queued: &Queued| queued.say.request == *request;
        if let Some(place) = self.outbox.iter().position(waits) {
            let queued = self.outbox.remove(place);
            self.ours.insert(event.clone(), queued.say.sender);
            let room = queued.say.room;
            let spoken = queued.spoken.map(|(persona, lane)| (room, persona, lane));
            self.spoken.extend(spoken.map(|spoken| (event.clone(), spoken)));
        }
        self.sent.entry(request.clone()).or_insert((event.clone(), now));
    }

    pub(super) fn split(&mut self, request: &RequestId, parts: &[NewSay]) {
        let Some(place) = self.outbox.iter().position(|queued| queued.say.request == *request) else {
            return;
        };
        let spoken = self.outbox[place].spoken.clone();
        let parts =
            parts.iter().map(|say| Queued { say: say.clone(), parked: false, spoken: spoken.clone() });
        self.outbox.splice(place..=place, parts);
    }

    pub(super) fn park(&mut self, request: &RequestId) {
        let queued = self.outbox.iter_mut().find(|queued| queued.say.request == *request);
        queued.into_iter().for_each(|queued| queued.parked = true);
    }

    /// The first unparked say of each room, in order.
    pub(super) fn heads(&self) -> Vec<NewSay> {
        let mut rooms = BTreeSet::new();
        let unparked = self.outbox.iter().filter(|queued| !queued.parked);
        unparked.filter(|queued| rooms.insert(&queued.say.room)).map(|queued| queued.say.clone()).collect()
    }

    pub(super) fn seat(&mut self, seat: &SeatRow) {
        let known =
            self.seats.entry((seat.room.clone(), seat.persona.clone())).or_insert_with(|| seat.clone());
        let invite = known.invite.take().or(seat.invite.clone());
        *known = SeatRow { invite, ..seat.clone() };
    }

    pub(super) fn unseat(&mut self, persona: &PersonaId, user: &OwnedUserId, room: &OwnedRoomId) -> u64 {
        self.seats.remove(&(room.clone(), persona.clone()));
        let before = self.outbox.len();
        self.outbox.retain(|queued| queued.say.sender != *user || queued.say.room != *room);
        (before - self.outbox.len()) as u64
    }

    pub(super) fn prune(&mut self, before: Millis) -> u64 {
        let known = self.seen.len();
        self.seen.retain(|_, at| *at >= before);
        self.redacted.retain(|_, at| *at >= before);
        self.sent.retain(|_, (_, at)| *at >= before);
        (known - self.seen.len()) as u64
    }
}

/// Takes the words out of mail; answers whether she may have been fed them.
fn withdraw(pile: &mut Pile, seq: u64) -> bool {
    let open = pile.is_open(seq);
    let (mail, fed) = match (pile.mail.get_mut(&seq), pile.held.get_mut(&seq)) {
        (Some(mail), _) => (mail, open || pile.released.contains(&seq)),
        (None, Some((mail, _))) => (mail, true),
        (None, None) => return true,
    };
    let had = mail.kind != DeliveryKind::Withdrawn;
    mail.kind = DeliveryKind::Withdrawn;
    mail.text.clear();
    fed && had
}
