use super::*;
use crate::conversation::steer::{Steer, Word};
use crate::conversation::{Remind, ReminderNumber};
use crate::persona::Limit;
use crate::store::{Mutual, Steered};

fn direct(name: &str) -> Lane {
    Lane::Direct(room(name))
}

/// Eir follows from a room to the next, in the lane in which she hears that.
fn follows(world: &World, lane: Lane, from: &str, to: &str) {
    let row = SeatRow { persona: eir(), room: room(to), lane, invite: None, line: None };
    block(world.store().carry_over(row, None, user("eir"), room(from))).unwrap();
}

/// Eir ends a turn of a lane in which bil woke her in the old room, and which sets a reminder.
fn ends_turn(world: &World, id: u128, lane: Lane, about: Option<&str>) {
    let remind = Remind { due: Millis(5), text: format!("text {id}"), room: about.map(room), hops: 1 };
    let pair = Some(Limit { most: 0, within: std::time::Duration::from_secs(60) });
    let open = OpenTurn { lane, ..turn(id, &[]) };
    let commit = Commit {
        says: vec![say(&format!("said {id}"), "old")],
        said: Some(vec![(room("old"), format!("said {id}"))]),
        reminders: Reminding { remind: vec![remind], ..Reminding::default() },
        guard: Guarding {
            mutual: vec![Mutual { room: room("old"), other: persona("bil"), notice: None }],
            pair,
            room: None,
        },
        ..plain(open.id)
    };
    block(world.store().write_turn(&eir(), open, Books::default())).unwrap();
    block(world.store().commit(commit)).unwrap();
    let seq = world.store().outbox_heads().unwrap()[0].seq;
    block(world.store().sent(seq, event(&format!("said{id}")), NOW)).unwrap();
}

fn reacts(name: &str, to: &str, lane: Lane) -> Arrival {
    let reacted =
        Reacted { room: room("old"), to: event(to), key: format!("k{name}"), seats: vec![(eir(), lane)] };
    arrival(name, vec![Effect::React(reacted)])
}

fn taken_back(name: &str, what: &str) -> Arrival {
    let notice = Delivery { kind: DeliveryKind::Redaction(event(what)), room: room("old"), ..mail(name, "") };
    arrival(name, vec![Effect::Redact { redacts: event(what), notice }])
}

fn reminders(store: &Store) -> Vec<(ReminderNumber, Lane, Option<OwnedRoomId>)> {
    let open = store.reminders(&eir()).unwrap().into_iter();
    open.map(|reminder| (reminder.number, reminder.lane, reminder.remind.room)).collect()
}

fn said(store: &Store, lane: &Lane) -> Vec<String> {
    let turns = store.past(&eir(), lane, Millis(0)).unwrap().into_iter();
    turns.flat_map(|turn| turn.lines).map(|line| line.text).collect()
}

#[test]
fn what_belongs_to_a_direct_room_goes_on_in_the_next() {
    let mut world = World::new();
    let (old, new) = (direct("old"), direct("new"));
    ends_turn(&world, 1, old.clone(), None);
    ends_turn(&world, 2, old.clone(), None);
    world.accept(vec![reacts("a", "said1", old.clone()), reacts("b", "said2", old.clone())]);
    follows(&world, new.clone(), "old", "new");
    world.look(|store| {
        let numbered = |number| (ReminderNumber(number), new.clone(), None);
        assert_eq!(reminders(store), [numbered(1), numbered(2)]);
        assert_eq!(said(store, &new), ["said 1", "said 2"]);
        assert_eq!(said(store, &old), [""; 0]);
        assert_eq!(store.reactions(&eir(), &new).unwrap().gathered.len(), 2);
        assert!(store.reactions(&eir(), &old).unwrap().gathered.is_empty());
    });
    world.accept(vec![taken_back("r", "a"), taken_back("s", "said2")]);
    world.look(|store| {
        assert_eq!(said(store, &new), ["said 1"], "what is taken back goes where it stands by now");
        assert!(store.reactions(&eir(), &new).unwrap().gathered.is_empty());
    });
}

#[test]
fn what_is_about_a_room_and_whom_it_holds_or_stops_goes_on_in_the_next() {
    let mut world = World::new();
    ends_turn(&world, 1, lane(), Some("old"));
    ends_turn(&world, 2, lane(), Some("other"));
    let steer = Steer { room: room("old"), whom: Some(eir()), word: Word::Stop, at: Millis(7) };
    world.accept(vec![arrival("stop", vec![Effect::Steer { steer, telling: Steered::default() }])]);
    world.look(|store| assert_eq!(store.held_in(&eir()), [room("old")].into()));
    follows(&world, lane(), "old", "new");
    world.look(|store| {
        let about = |number, name| (ReminderNumber(number), lane(), Some(room(name)));
        assert_eq!(reminders(store), [about(1, "new"), about(2, "other")]);
        assert_eq!(said(store, &lane()), ["said 1", "said 2"], "a register's lane is the same");
        let held = [eir(), persona("bil")].map(|who| store.held_in(&who));
        assert_eq!(held, [[room("new")].into(), [room("new")].into()]);
        assert!(store.brake().unwrap().stops(&eir(), &room("new")));
        assert!(!store.brake().unwrap().stops(&persona("bil"), &room("new")));
    });
    let asked = Delivery { room: room("new"), ..mail("asked", "hi") };
    world.accept(vec![arrival("asked", vec![Effect::Deliver(eir(), asked)])]);
    let row = SeatRow { persona: persona("bil"), room: room("new"), lane: lane(), invite: None, line: None };
    block(world.store().carry_over(row, None, user("bil"), room("old"))).unwrap();
    world.look(|store| assert!(store.held_in(&eir()).is_empty(), "who follows later holds nobody anew"));
}
