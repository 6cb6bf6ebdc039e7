//! Random verbs against a reference of plain maps, opened again at random points.

mod reference;

use std::collections::BTreeSet;

use persona_bridge::conversation::{
    Delivery, DeliveryKind, Lane, Millis, PersonaId, RegisterName, RequestId, TurnId,
};
use persona_bridge::persona::lanes::{Mail, lane_mail};
use persona_bridge::persona::session::{Account, Fingerprint, Session};
use persona_bridge::persona::{OpenTurn, Troubles};
use persona_bridge::store::{
    Arrival, Books, Commit, Config, Effect, NewSay, Opening, Owner, Parking, Remembering, SeatRow, Store,
};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngSeed};
use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use tempfile::TempDir;
use uuid::Uuid;

use crate::tools::{aloud, scale};
use reference::Reference;

/// One step; numbers are picked out of what there is.
#[derive(Clone, Debug)]
enum Verb {
    Accept(Vec<(u8, Vec<Part>)>),
    WriteTurn(u8, u8),
    Commit(u8, u8),
    Hold(u8),
    SayOnce(u8, u8),
    Sent(u8),
    Split(u8, u8),
    Park(u8),
    Release(u8),
    Seat(u8, u8, bool),
    Unseat(u8, u8),
    Prune(u8),
    Reopen,
}

#[derive(Clone, Debug)]
enum Part {
    Deliver(u8),
    Edit(u8, u8),
    Redact(u8),
    Echo(u8),
    Once(u8),
    Member(u8, bool, u8),
    Seat(u8, u8),
    Unseat(u8, u8),
    Encrypted(u8),
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => any::<u8>().prop_map(Part::Deliver),
        2 => any::<(u8, u8)>().prop_map(|(persona, edits)| Part::Edit(persona, edits)),
        2 => any::<u8>().prop_map(Part::Redact),
        1 => any::<u8>().prop_map(Part::Echo),
        1 => any::<u8>().prop_map(Part::Once),
        1 => any::<(u8, bool, u8)>().prop_map(|(user, joined, at)| Part::Member(user, joined, at)),
        1 => any::<(u8, u8)>().prop_map(|(persona, room)| Part::Seat(persona, room)),
        1 => any::<(u8, u8)>().prop_map(|(persona, room)| Part::Unseat(persona, room)),
        1 => any::<u8>().prop_map(Part::Encrypted),
    ]
}

fn verb() -> impl Strategy<Value = Verb> {
    let arrivals = prop::collection::vec((any::<u8>(), prop::collection::vec(part(), 0..4)), 0..5);
    prop_oneof![
        8 => arrivals.prop_map(Verb::Accept),
        3 => any::<(u8, u8)>().prop_map(|(persona, take)| Verb::WriteTurn(persona, take)),
        2 => any::<(u8, u8)>().prop_map(|(persona, says)| Verb::Commit(persona, says)),
        1 => any::<u8>().prop_map(Verb::Hold),
        1 => any::<(u8, u8)>().prop_map(|(key, says)| Verb::SayOnce(key, says)),
        2 => any::<u8>().prop_map(Verb::Sent),
        1 => any::<(u8, u8)>().prop_map(|(head, parts)| Verb::Split(head, parts)),
        1 => any::<u8>().prop_map(Verb::Park),
        1 => any::<u8>().prop_map(Verb::Release),
        1 => any::<(u8, u8, bool)>().prop_map(|(persona, room, invited)| Verb::Seat(persona, room, invited)),
        1 => any::<(u8, u8)>().prop_map(|(persona, room)| Verb::Unseat(persona, room)),
        1 => any::<u8>().prop_map(Verb::Prune),
        2 => Just(Verb::Reopen),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_store_does_what_its_reference_does(verbs in prop::collection::vec(verb(), 1..60)) {
        let mut world = World::new();
        for verb in verbs {
            world.step(&verb);
            world.compare(&verb);
        }
        world.step(&Verb::Reopen);
        world.compare(&Verb::Reopen);
    }
}

/// At scale 1 the same cases in every run; beyond it others each time, by a seed that is said.
fn cases() -> Cases {
    let seed = if scale() == 1 { 347 } else { Uuid::new_v4().as_u64_pair().0 };
    aloud(&format!("the_store_does_what_its_reference_does: {} cases, seed {seed}", 40 * scale()));
    Cases { rng_seed: RngSeed::Fixed(seed), max_shrink_iters: 300, ..Cases::with_cases(40 * scale()) }
}

const NAMES: [&str; 3] = ["bil", "eir", "oda"];

fn persona(pick: u8) -> PersonaId {
    PersonaId(NAMES[usize::from(pick) % NAMES.len()].to_owned())
}

fn user(name: &str) -> OwnedUserId {
    format!("@{name}:x.org").try_into().unwrap()
}

fn room(pick: u8) -> OwnedRoomId {
    format!("!{}:x.org", ["swarm", "burn"][usize::from(pick) % 2]).try_into().unwrap()
}

/// Few enough that they come again.
fn event(pick: u8) -> OwnedEventId {
    format!("${}", pick % 40).try_into().unwrap()
}

fn lane(pick: u8) -> Lane {
    if pick.is_multiple_of(5) {
        Lane::Direct(room(pick))
    } else {
        Lane::Register(RegisterName("public".to_owned()))
    }
}

fn delivery(pick: u8, kind: DeliveryKind) -> Delivery {
    Delivery {
        seq: 0,
        lane: lane(pick),
        room: room(pick),
        sender: user(["alice", "bob"][usize::from(pick / 2) % 2]),
        sender_name: None,
        event: event(pick),
        text: pick.to_string().repeat(if pick.is_multiple_of(4) { 3_000 } else { 3 }),
        kind,
        thread: None,
        reply_to: None,
        addressed: pick.is_multiple_of(2),
        wakes: pick.is_multiple_of(3),
        hops: pick.is_multiple_of(7).then(|| u32::from(pick)),
        again: None,
        late: false,
        said: Millis(u64::from(pick)),
        heard: Millis(1),
    }
}

fn says(cause: &str, count: u8) -> Vec<NewSay> {
    let say = |part: u8| NewSay {
        sender: user(NAMES[usize::from(part) % 2]),
        room: room(part / 2),
        request: RequestId(format!("{cause}/{part}")),
        kind: "m.room.message".to_owned(),
        body: cause.repeat(if part == 1 { 2_000 } else { 1 }),
        cause: cause.to_owned(),
        part: part.to_string(),
    };
    (0..count % 4).map(say).collect()
}

fn session(generation: u32) -> Session {
    Session {
        generation,
        id: Uuid::from_u128(u128::from(generation)),
        fingerprint: Fingerprint::default(),
        begun: Millis(1),
        last_committed: None,
        seeded: false,
        account: Account::default(),
    }
}

/// The store and its reference, and a clock that ticks with every step.
struct World {
    folder: TempDir,
    runtime: tokio::runtime::Runtime,
    store: Option<Store>,
    reference: Reference,
    now: Millis,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut world =
            Self { folder, runtime, store: None, reference: Reference::default(), now: Millis(0) };
        world.reopen();
        world
    }

    fn reopen(&mut self) {
        drop(self.store.take());
        let config = Config { path: self.folder.path().join("store"), min_free: 0 };
        let owner = Owner { server_name: "x.org".to_owned(), appservice: "bridge".to_owned() };
        let opening = Opening { owner, epoch: Uuid::nil(), now: self.now };
        self.store = Some(Store::open(&config, opening).unwrap());
    }

    fn step(&mut self, verb: &Verb) {
        self.now.0 += 1;
        let (now, store) = (self.now, self.store.clone().unwrap());
        match verb {
            Verb::Accept(arrivals) => self.accept(&store, arrivals),
            Verb::WriteTurn(pick, take) => self.write_turn(&store, &persona(*pick), *take),
            Verb::Commit(pick, count) => self.commit(&store, persona(*pick), *count),
            Verb::Hold(pick) => {
                let persona = persona(*pick);
                let Some(turn) = self.reference.pile(&persona).turn.clone() else { return };
                self.reference.hold(&persona, &turn, "refused");
                let held = store.hold(&persona, turn, "refused".to_owned(), now, Books::default());
                self.runtime.block_on(held).unwrap();
            }
            Verb::SayOnce(pick, count) => {
                let (key, says) = (format!("k{}", pick % 8), says(&format!("k{pick}"), *count));
                let wanted = self.reference.say_once(&key, &says);
                assert_eq!(self.runtime.block_on(store.say_once(key, says, now)).unwrap(), wanted);
            }
            Verb::Sent(_) | Verb::Split(..) | Verb::Park(_) => self.deliver(&store, verb),
            Verb::Release(pick) => {
                let (persona, user) = (persona(*pick), user(persona(*pick).as_str()));
                let wanted = self.reference.release(&persona, &user);
                let released =
                    async { (store.release_mail(Some(persona)).await, store.release_says(Some(user)).await) };
                let (mail, says) = self.runtime.block_on(released);
                assert_eq!((mail.unwrap(), says.unwrap()), wanted);
            }
            Verb::Seat(pick, place, invited) => {
                let seat = seat(*pick, *place, *invited);
                self.reference.seat(&seat);
                self.runtime.block_on(store.seat(seat, None)).unwrap();
            }
            Verb::Unseat(pick, place) => {
                let (persona, room) = (persona(*pick), room(*place));
                let user = user(persona.as_str());
                let wanted = self.reference.unseat(&persona, &user, &room);
                assert_eq!(self.runtime.block_on(store.unseat(&persona, user, room)).unwrap(), wanted);
            }
            Verb::Prune(ago) => {
                let before = Millis(now.0.saturating_sub(u64::from(ago % 40)));
                let wanted = self.reference.prune(before);
                assert_eq!(self.runtime.block_on(store.prune(before)).unwrap(), wanted);
            }
            Verb::Reopen => {
                drop(store);
                self.reopen();
            }
        }
    }

    fn accept(&mut self, store: &Store, arrivals: &[(u8, Vec<Part>)]) {
        let arrivals: Vec<Arrival> =
            arrivals.iter().map(|(pick, parts)| self.arrival(*pick, parts)).collect();
        let wanted = self.reference.accept(&arrivals, self.now);
        let accepted = self.runtime.block_on(store.accept(arrivals, Vec::new(), None, self.now));
        assert_eq!(accepted.unwrap(), wanted);
    }

    fn arrival(&self, pick: u8, parts: &[Part]) -> Arrival {
        let effects = parts.iter().map(|part| match part {
            Part::Deliver(who) => Effect::Deliver(persona(*who), delivery(pick, DeliveryKind::Text)),
            Part::Edit(who, edits) => {
                let edit = delivery(pick, DeliveryKind::Edit(event(*edits)));
                Effect::DeliverEdit(persona(*who), event(*edits), edit)
            }
            Part::Redact(redacts) => {
                let redacts = event(*redacts);
                let notice = delivery(pick, DeliveryKind::Redaction(redacts.clone()));
                Effect::Redact { redacts, notice }
            }
            Part::Echo(which) => {
                let waiting = &self.reference.outbox;
                let queued = waiting.get(usize::from(*which) % (waiting.len() + 1));
                let unknown = || RequestId(format!("unknown{which}"));
                Effect::Echo(queued.map_or_else(unknown, |queued| queued.say.request.clone()))
            }
            Part::Once(key) => {
                Effect::Once { key: format!("k{}", key % 8), says: says(&format!("once{pick}/{key}"), *key) }
            }
            Part::Member(who, joined, at) => {
                let (user, at) = (user(NAMES[usize::from(*who) % 3]), Millis(u64::from(*at)));
                Effect::Member { room: room(pick), user, name: Some(at.0.to_string()), joined: *joined, at }
            }
            Part::Seat(who, place) => Effect::Seat(seat(*who, *place, pick.is_multiple_of(2))),
            Part::Unseat(who, place) => {
                let persona = persona(*who);
                Effect::Unseat { user: user(persona.as_str()), persona, room: room(*place) }
            }
            Part::Encrypted(place) => Effect::Encrypted(room(*place)),
        });
        Arrival { event: event(pick), effects: effects.collect() }
    }

    fn write_turn(&mut self, store: &Store, persona: &PersonaId, take: u8) {
        let now = self.now;
        let waiting = self.reference.pile(persona).waiting();
        let turn = OpenTurn {
            wake: persona_bridge::persona::Wake::Mail,
            id: TurnId(Uuid::from_u128(u128::from(now.0))),
            lane: lane(take),
            seqs: waiting.into_iter().take(usize::from(take % 8)).collect(),
            attempt: u32::from(take),
            not_before: now,
            as_of: now,
            spent: persona_bridge::persona::session::Usd::default(),
            flush: None,
            reminders: Vec::new(),
            news: None,
            troubles: Troubles::default(),
        };
        let session = take.is_multiple_of(2).then(|| session(u32::from(take)));
        self.reference.write_turn(persona, &turn, session.as_ref());
        let books = Books { session, ledger: Vec::new() };
        self.runtime.block_on(store.write_turn(persona, turn, books)).unwrap();
    }

    fn commit(&mut self, store: &Store, persona: PersonaId, count: u8) {
        let open = self.reference.pile(&persona).turn.as_ref().map(|turn| turn.id);
        let turn = open.unwrap_or(TurnId(Uuid::nil()));
        let says = says(&turn.to_string(), count);
        let commit = Commit {
            pulse: None,
            reminders: Default::default(),
            persona,
            turn,
            hops: 1,
            says,
            guard: Default::default(),
            session: session(1_000),
            ledger: Vec::new(),
            memory: Remembering::default(),
            show: BTreeSet::new(),
            said: None,
            now: self.now,
        };
        self.reference.commit(&commit);
        self.runtime.block_on(store.commit(commit)).unwrap();
    }

    /// What is done to the head of some room.
    fn deliver(&mut self, store: &Store, verb: &Verb) {
        let now = self.now;
        let heads = store.outbox_heads().unwrap();
        let (Verb::Sent(pick) | Verb::Split(pick, _) | Verb::Park(pick)) = verb else { return };
        let Some(head) = heads.get(usize::from(*pick) % heads.len().max(1)) else { return };
        let request = &head.say.request;
        if let Verb::Split(_, count) = verb {
            let parts: Vec<NewSay> = says(&format!("{}/{}", request.as_str(), now.0), count | 2);
            let parts: Vec<NewSay> =
                parts.into_iter().map(|part| NewSay { room: head.say.room.clone(), ..part }).collect();
            self.reference.split(request, &parts);
            self.runtime.block_on(store.split(head.seq, parts, now)).unwrap();
        } else if let Verb::Park(_) = verb {
            self.reference.park(request);
            self.runtime.block_on(store.park(head.seq, Parking::Refused("muted".to_owned()))).unwrap();
        } else {
            let event: OwnedEventId = format!("$sent{}", now.0).try_into().unwrap();
            self.reference.take_out(request, &event, now);
            self.runtime.block_on(store.sent(head.seq, event, now)).unwrap();
        }
    }

    fn compare(&mut self, verb: &Verb) {
        let store = self.store.as_ref().unwrap();
        for name in 0..3 {
            self.compare_persona(store, &persona(name), verb);
        }
        let heads: Vec<NewSay> = store.outbox_heads().unwrap().into_iter().map(|say| say.say).collect();
        assert_eq!(heads, self.reference.heads(), "after {verb:?}");
        assert_eq!(store.counts().outbox, self.reference.outbox.len() as u64, "after {verb:?}");
        for pick in 0..40 {
            let known = self.reference.seen.contains_key(&event(pick));
            assert_eq!(store.knows(&event(pick)).unwrap(), known, "{pick} after {verb:?}");
        }
        for (request, (event, _)) in &self.reference.sent {
            assert_eq!(store.sent_event(request).unwrap().as_ref(), Some(event), "after {verb:?}");
            let sender = self.reference.ours.get(event);
            assert_eq!(store.sent_by(event).unwrap().as_ref(), sender, "after {verb:?}");
        }
        for row in store.rooms().unwrap() {
            let of_room = self.reference.seats.values().filter(|seat| seat.room == row.room);
            assert_eq!(row.seats, of_room.cloned().collect::<Vec<_>>(), "after {verb:?}");
            assert_eq!(row.encrypted, self.reference.encrypted.contains(&row.room), "after {verb:?}");
            let members = self.reference.members.iter().filter(|((room, _), _)| *room == row.room);
            let joined = members.filter(|(_, (_, joined, _))| *joined);
            let joined: Vec<_> = joined.map(|((_, user), (name, ..))| (user.clone(), name.clone())).collect();
            assert_eq!(row.members, joined, "after {verb:?}");
        }
    }

    fn compare_persona(&self, store: &Store, persona: &PersonaId, verb: &Verb) {
        let pile = self.reference.piles.get(persona).cloned().unwrap_or_default();
        let heads = store.waiting(persona).unwrap();
        let mail = heads.iter().map(|head| Mail {
            lane: &head.lane,
            room: &head.room,
            sender: &head.sender,
            unheard: head.unheard,
            hops: head.hops,
            wakes: head.wakes,
            heard: head.heard,
        });
        let lanes = store.lanes(persona, 3, |_| true).unwrap();
        assert_eq!(lanes, lane_mail(mail, 3), "{persona} after {verb:?}");
        let waiting: Vec<u64> = heads.into_iter().map(|head| head.seq).collect();
        assert_eq!(waiting, pile.waiting(), "{persona} after {verb:?}");
        let standing = store.standing(persona).unwrap();
        assert_eq!(standing, (pile.turn.clone(), pile.session.clone()), "{persona} after {verb:?}");
        let all: Vec<u64> = (1..=pile.heard.len() as u64 + 1).collect();
        let mail: Vec<Delivery> = pile.mail.values().cloned().collect();
        assert_eq!(store.deliveries(persona, &all).unwrap(), mail, "{persona} after {verb:?}");
        let held = store.held_mail(persona).unwrap().into_iter().map(|row| (row.delivery, row.reason));
        assert_eq!(
            held.collect::<Vec<_>>(),
            pile.held.values().cloned().collect::<Vec<_>>(),
            "after {verb:?}"
        );
        let mut heard = BTreeSet::new();
        for seq in all {
            let label = store.heard(persona, seq).unwrap();
            let wanted = usize::try_from(seq - 1).ok().and_then(|place| pile.heard.get(place));
            assert_eq!(
                label.as_ref().map(|label| &label.event),
                wanted.map(|mail| &mail.event),
                "after {verb:?}"
            );
            let Some(label) = label else { continue };
            assert_eq!(store.number_of(persona, &label.event).unwrap(), Some(seq), "after {verb:?}");
            assert!(heard.insert(label.event), "{persona} heard an event twice, after {verb:?}");
        }
    }
}

fn seat(pick: u8, place: u8, invited: bool) -> SeatRow {
    let invite = invited.then(|| event(pick));
    SeatRow { persona: persona(pick), room: room(place), lane: lane(place), invite, line: None }
}
