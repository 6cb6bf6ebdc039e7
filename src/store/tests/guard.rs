use super::*;
use crate::persona::Limit;
use crate::store::{Guarding, Mutual, Pace};

const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);

/// Eir ends a turn at a time, in which bil woke her in the swarm, and says something there.
fn ends_turn(world: &World, id: u128, says: &[&str], now: u64) {
    let most = |most| Some(Limit { most, within: MINUTE });
    let notice = Some((format!("notice {id}"), vec![say(&format!("notice {id}"), "control")]));
    let mutual = vec![Mutual { room: room("swarm"), other: persona("bil"), notice }];
    let commit = Commit {
        says: says.iter().map(|request| say(request, "swarm")).collect(),
        guard: Guarding { mutual, pair: most(2), room: most(3) },
        now: Millis(now),
        ..plain(TurnId(Uuid::from_u128(id)))
    };
    block(world.store().write_turn(&eir(), turn(id, &[]), books(session(1)))).unwrap();
    block(world.store().commit(commit)).unwrap();
}

/// What a person says to somebody, or passing by.
fn says_to(whom: &str, name: &str, addressed: bool) -> Arrival {
    let said = Delivery { addressed, wakes: addressed, ..mail(name, "hi") };
    arrival(name, vec![Effect::Deliver(persona(whom), said)])
}

/// Somebody answers what she heard under a number.
fn answers(world: &World, who: &str, id: u128, seq: u64) {
    block(world.store().write_turn(&persona(who), turn(id, &[seq]), books(session(1)))).unwrap();
    let commit = Commit { persona: persona(who), ..plain(TurnId(Uuid::from_u128(id))) };
    block(world.store().commit(commit)).unwrap();
}

fn held(store: &Store) -> Vec<&'static str> {
    ["bil", "eir", "rune"]
        .into_iter()
        .filter(|who| store.held_in(&persona(who)).contains(&room("swarm")))
        .collect()
}

#[test]
fn one_turn_too_many_holds_both_until_a_person_addresses_either() {
    let mut world = World::new();
    for (id, now) in [(1, 0), (2, 1), (3, 2)] {
        world.look(|store| assert_eq!(held(store), [""; 0]));
        ends_turn(&world, id, &[], now);
    }
    world.look(|store| assert_eq!(held(store), ["bil", "eir"]));
    ends_turn(&world, 4, &[], 3);
    let told = |store: &Store| store.counts().outbox;
    world.look(|store| assert_eq!(told(store), 1, "told once a hold"));

    let of_persona = Delivery { hops: Some(1), ..mail("p", "hi") };
    world.accept(vec![
        says_to("bil", "passing", false),
        arrival("p", vec![Effect::Deliver(persona("bil"), of_persona)]),
        says_to("rune", "third", true),
    ]);
    world.look(|store| assert_eq!(held(store), ["bil", "eir"], "that lets nobody go"));
    world.accept(vec![says_to("bil", "asked", true)]);
    world.look(|store| assert_eq!(held(store), [""; 0]));
    answers(&world, "bil", 9, 3);
    for (id, now) in [(5, 4), (6, 5)] {
        ends_turn(&world, id, &[], now);
    }
    world.look(|store| assert_eq!(held(store), [""; 0], "counted from nothing"));
    ends_turn(&world, 7, &[], 6);
    world.look(|store| assert_eq!((held(store), told(store)), (vec!["bil", "eir"], 2)));
}

#[test]
fn neither_is_held_while_a_person_waits_for_one_of_them() {
    for whom in ["eir", "bil"] {
        let mut world = World::new();
        [1, 2].into_iter().for_each(|id| ends_turn(&world, id, &[], 0));
        world.accept(vec![says_to(whom, "asked", true)]);
        ends_turn(&world, 3, &[], 1);
        world.look(|store| assert_eq!((held(store), store.counts().outbox), (vec![], 0), "{whom}"));
        answers(&world, whom, 4, 1);
        [5, 6].into_iter().for_each(|id| ends_turn(&world, id, &[], 2));
        world.look(|store| assert_eq!(held(store), [""; 0], "{whom}: counted from nothing"));
        ends_turn(&world, 7, &[], 3);
        world.look(|store| assert_eq!(held(store), ["bil", "eir"], "{whom}"));
    }
}

#[test]
fn nobody_who_is_not_a_person_lets_them_go() {
    let mut world = World::new();
    [1, 2, 3].into_iter().for_each(|id| ends_turn(&world, id, &[], 0));
    let of_bot = Delivery { addressed: true, wakes: false, ..mail("bot", "hi") };
    world.accept(vec![arrival("bot", vec![Effect::Deliver(persona("bil"), of_bot)])]);
    world.look(|store| assert_eq!(held(store), ["bil", "eir"]));
}

#[test]
fn mail_of_a_person_that_was_put_aside_lets_them_go_when_it_is_released() {
    let mut world = World::new();
    world.accept(vec![says_to("eir", "asked", true)]);
    let asked = turn(1, &[1]);
    block(world.store().write_turn(&eir(), asked.clone(), books(session(1)))).unwrap();
    block(world.store().hold(&eir(), asked, "no answer".to_owned(), NOW, books(session(1)))).unwrap();
    [2, 3, 4].into_iter().for_each(|id| ends_turn(&world, id, &[], 0));
    world.look(|store| assert_eq!(held(store), ["bil", "eir"]));
    block(world.store().release_mail(Some(eir()))).unwrap();
    world.look(|store| assert_eq!(held(store), [""; 0]));
}

#[test]
fn what_personas_say_is_counted_in_its_room_when_it_is_sent_and_once() {
    let mut world = World::new();
    ends_turn(&world, 1, &["a", "b", "c", "d", "e"], 5);
    let pace = |sent: &[u64], waiting| {
        let sent = sent.iter().map(|at| Millis(*at)).collect();
        Some(Pace { sent, waiting, full: false })
    };
    world.look(|store| {
        assert_eq!(store.pace(&room("swarm"), |_, _| true), pace(&[], 5));
        assert_eq!(store.pace(&room("swarm"), |_, _| false), pace(&[], 0), "who may not speak fills no room");
    });
    let first = world.store().outbox_heads().unwrap()[0].seq;
    for now in [10, 11] {
        block(world.store().sent(first, event("a"), Millis(now))).unwrap();
    }
    let echo = arrival("b", vec![Effect::Echo(RequestId("b".to_owned()))]);
    world.accept(vec![echo.clone(), echo]);
    world.look(|store| assert_eq!(store.pace(&room("swarm"), |_, _| true), pace(&[10, NOW.0], 3)));
    for (request, now) in [("c", NOW.0 + 1), ("d", NOW.0 + 2)] {
        let head = world.store().outbox_heads().unwrap()[0].seq;
        block(world.store().sent(head, event(request), Millis(now))).unwrap();
    }
    let newest = [NOW.0, NOW.0 + 1, NOW.0 + 2];
    world.look(|store| {
        assert_eq!(store.pace(&room("swarm"), |_, _| true), pace(&newest, 1), "no more are kept than count")
    });
    world.look(|store| assert_eq!(store.pace(&room("burn"), |_, _| true), None));
}

#[test]
fn another_limit_is_kept_from_the_start_on_also_for_what_waits_already() {
    let mut world = World::new();
    ends_turn(&world, 1, &["a", "b", "c", "d", "e", "f"], 5);
    let send = |world: &World, count: u64| {
        for now in 0..count {
            let head = world.store().outbox_heads().unwrap()[0].seq;
            block(world.store().sent(head, event(&format!("{count}-{now}")), Millis(now))).unwrap();
        }
    };
    let sent =
        |store: &Store| store.pace(&room("swarm"), |_, _| true).map(|pace| (pace.sent.len(), pace.waiting));
    send(&world, 2);
    block(world.store().bear(Some(4))).unwrap();
    send(&world, 3);
    world.look(|store| assert_eq!(sent(store), Some((4, 1))));
    block(world.store().bear(None)).unwrap();
    world.look(|store| assert_eq!(sent(store), None));
    block(world.store().bear(Some(4))).unwrap();
    world.look(|store| assert_eq!(sent(store), Some((0, 1)), "what waits is counted"));
}

#[test]
fn that_a_room_is_full_is_told_once_until_it_is_calm() {
    let mut world = World::new();
    ends_turn(&world, 1, &["a"], 5);
    let tell = |world: &World, key: &str| {
        let notice = Some((key.to_owned(), vec![say(key, "control")]));
        block(world.store().tell_full(room("swarm"), notice, NOW)).unwrap();
    };
    tell(&world, "1");
    tell(&world, "2");
    world.look(|store| assert_eq!((store.full_rooms(), store.counts().outbox), (vec![room("swarm")], 2)));
    block(world.store().is_calm(room("swarm"))).unwrap();
    world.look(|store| assert!(store.full_rooms().is_empty()));
    tell(&world, "3");
    world.look(|store| assert_eq!(store.counts().outbox, 3));
}
