use super::*;

fn put(world: &World, says: &[(&str, &str)]) {
    let says = says.iter().map(|(request, to)| say(request, to)).collect::<Vec<_>>();
    let key = format!("{says:?}");
    assert!(block(world.store().say_once(key, says, NOW)).unwrap());
}

fn heads(store: &Store) -> Vec<String> {
    store.outbox_heads().unwrap().into_iter().map(|say| say.say.request.0).collect()
}

fn place(world: &World, request: &str) -> u64 {
    let heads = world.store().outbox_heads().unwrap();
    heads.into_iter().find(|say| say.say.request.as_str() == request).unwrap().seq
}

/// Sends everything, a head of every room at a time, and tells in which order.
fn drain(world: &World) -> Vec<String> {
    let mut order = Vec::new();
    while let Some(head) = world.store().outbox_heads().unwrap().first().cloned() {
        block(world.store().sent(head.seq, event(head.say.request.as_str()), NOW)).unwrap();
        order.push(head.say.request.0);
    }
    order
}

#[test]
fn each_room_shows_its_oldest_say() {
    let mut world = World::new();
    put(&world, &[("1", "b"), ("2", "a"), ("3", "b"), ("4", "a")]);
    world.look(|store| assert_eq!(heads(store), ["1", "2"]));
    block(world.store().sent(place(&world, "1"), event("e1"), NOW)).unwrap();
    world.look(|store| {
        assert_eq!(heads(store), ["2", "3"]);
        assert_eq!(store.counts().outbox, 3);
        assert_eq!(store.sent_event(&RequestId("1".to_owned())).unwrap(), Some(event("e1")));
        assert_eq!(store.sent_event(&RequestId("2".to_owned())).unwrap(), None);
        assert_eq!(store.sent_by(&event("e1")).unwrap(), Some(user("eir")));
        assert_eq!(store.sent_by(&event("e2")).unwrap(), None);
    });
}

#[test]
fn what_is_owed_once_is_put_in_once() {
    let mut world = World::new();
    let once =
        |name: &str| arrival(name, vec![Effect::Once { key: "k".to_owned(), says: vec![say(name, "a")] }]);
    world.accept(vec![once("1"), once("2")]);
    assert!(!block(world.store().say_once("k".to_owned(), vec![say("3", "a")], NOW)).unwrap());
    assert_eq!(drain(&world), ["1"]);
    world.reopen();
    assert!(!block(world.store().say_once("k".to_owned(), vec![say("4", "a")], NOW)).unwrap());
    world.look(|store| assert_eq!(store.counts().outbox, 0));
}

#[test]
fn one_request_waits_or_was_sent_but_never_again() {
    let world = World::new();
    put(&world, &[("1", "a"), ("1", "a")]);
    assert_eq!(drain(&world), ["1"]);
    put(&world, &[("1", "a"), ("2", "a")]);
    assert_eq!(drain(&world), ["2"]);
}

#[test]
fn an_echo_settles_what_waits() {
    let mut world = World::new();
    put(&world, &[("1", "a"), ("2", "a")]);
    let late = place(&world, "1");
    world.accept(vec![arrival("e1", vec![Effect::Echo(RequestId("1".to_owned()))])]);
    world.look(|store| {
        assert_eq!(heads(store), ["2"]);
        assert_eq!(store.sent_event(&RequestId("1".to_owned())).unwrap(), Some(event("e1")));
        assert_eq!(store.sent_by(&event("e1")).unwrap(), Some(user("eir")));
    });
    block(world.store().sent(late, event("e1"), NOW)).unwrap();
    put(&world, &[("3", "a")]);
    block(world.store().sent(late, event("e1"), NOW)).unwrap();
    assert_eq!(drain(&world), ["2", "3"], "a place is never given twice");
}

#[test]
fn a_split_keeps_the_place() {
    let mut world = World::new();
    put(&world, &[("1", "a"), ("2", "a"), ("3", "a")]);
    block(world.store().sent(place(&world, "1"), event("e1"), NOW)).unwrap();
    let parts = |names: &[&str]| names.iter().map(|name| say(name, "a")).collect::<Vec<_>>();
    block(world.store().split(place(&world, "2"), parts(&["2.1", "2.2", "2.3"]), NOW)).unwrap();
    world.look(|store| assert_eq!(heads(store), ["2.1"]));
    block(world.store().split(place(&world, "2.1"), parts(&["2.1.1", "2.1.2"]), NOW)).unwrap();
    world.reopen();
    put(&world, &[("4", "a")]);
    assert_eq!(drain(&world), ["2.1.1", "2.1.2", "2.2", "2.3", "3", "4"]);
}

#[test]
fn a_say_can_be_halved_till_nothing_is_left_of_it() {
    let world = World::new();
    put(&world, &[("x", "a"), ("end", "a")]);
    let mut order = Vec::new();
    for depth in 0..16 {
        let seq = world.store().outbox_heads().unwrap()[0].seq;
        let halves = ["l", "r"].map(|half| say(&format!("{half}{depth}"), "a")).to_vec();
        block(world.store().split(seq, halves, NOW)).unwrap();
        order.insert(0, format!("r{depth}"));
    }
    let order: Vec<String> = ["l15".to_owned()].into_iter().chain(order).chain(["end".to_owned()]).collect();
    assert_eq!(drain(&world), order);
}

#[test]
fn what_is_gone_is_not_split() {
    let world = World::new();
    put(&world, &[("1", "a")]);
    let seq = place(&world, "1");
    drain(&world);
    block(world.store().split(seq, vec![say("1.1", "a")], NOW)).unwrap();
    block(world.store().park(seq, refused("muted"))).unwrap();
    assert_eq!(world.store().counts().outbox, 0);
}

#[test]
fn a_parked_say_is_kept_and_in_nobodys_way() {
    let mut world = World::new();
    put(&world, &[("1", "a"), ("2", "a")]);
    block(world.store().park(place(&world, "1"), refused("muted"))).unwrap();
    world.look(|store| {
        assert_eq!(heads(store), ["2"]);
        assert_eq!(store.counts().outbox, 2);
    });
}

#[test]
fn a_parked_say_goes_again_at_its_place_when_it_is_released() {
    let mut world = World::new();
    put(&world, &[("1", "a"), ("2", "b"), ("3", "a")]);
    let other = NewSay { sender: user("bil"), ..say("4", "c") };
    block(world.store().say_once("k".to_owned(), vec![other], NOW)).unwrap();
    for request in ["1", "2", "4"] {
        block(world.store().park(place(&world, request), refused("muted"))).unwrap();
    }
    world.look(|store| assert_eq!(heads(store), ["3"]));
    assert_eq!(block(world.store().release_says(Some(user("bil")))).unwrap(), 1);
    world.look(|store| assert_eq!(heads(store), ["3", "4"]));
    assert_eq!(block(world.store().release_says(None)).unwrap(), 2);
    assert_eq!(drain(&world), ["1", "2", "3", "4"]);
}

#[test]
fn what_the_homeserver_failed_on_is_shown_once_a_room() {
    let mut world = World::new();
    put(&world, &[("1", "a"), ("2", "a"), ("3", "b"), ("4", "c")]);
    for request in ["1", "2", "3"] {
        let failed = Parking::Failed("500".to_owned());
        block(world.store().park(place(&world, request), failed)).unwrap();
    }
    block(world.store().park(place(&world, "4"), refused("muted"))).unwrap();
    let of = |store: &Store| {
        let says = store.says(&store.failed_heads()).unwrap();
        says.into_iter().map(|say| say.say.request.0).collect::<Vec<_>>()
    };
    world.look(|store| assert_eq!(of(store), ["1", "3"]));
    block(world.store().unpark(world.store().failed_heads())).unwrap();
    world.look(|store| {
        assert_eq!((of(store), heads(store)), (vec!["2".to_owned()], vec!["1".to_owned(), "3".to_owned()]))
    });
}

#[test]
fn long_bodies_come_back_whole() {
    let mut world = World::new();
    let long = NewSay { body: "ü".repeat(30_000), ..say("1", "a") };
    block(world.store().say_once("k".to_owned(), vec![long.clone()], NOW)).unwrap();
    world.look(|store| assert_eq!(store.outbox_heads().unwrap()[0].say, long));
    drain(&world);
    assert!(world.store().longest_row() < 1_000);
}

#[test]
fn losing_a_seat_drops_what_waits_there() {
    let mut world = World::new();
    let seat = SeatRow { persona: eir(), room: room("a"), lane: lane(), invite: None, line: None };
    block(world.store().seat(seat, None)).unwrap();
    put(&world, &[("1", "a"), ("2", "b"), ("3", "a")]);
    let other = NewSay { sender: user("bil"), ..say("4", "a") };
    block(world.store().say_once("k".to_owned(), vec![other], NOW)).unwrap();
    block(world.store().park(place(&world, "1"), refused("muted"))).unwrap();
    assert_eq!(block(world.store().unseat(&eir(), user("eir"), room("a"))).unwrap(), 2);
    world.look(|store| {
        assert_eq!(heads(store), ["2", "4"]);
        assert_eq!(store.room(&room("a")).unwrap().unwrap().seats, []);
    });
    let unseat = Effect::Unseat { persona: persona("bil"), user: user("bil"), room: room("a") };
    world.accept(vec![arrival("left", vec![unseat])]);
    world.look(|store| assert_eq!(heads(store), ["2"]));
}

#[test]
fn who_sent_what_is_forgotten_after_a_time() {
    let mut world = World::new();
    for (number, at) in [(1, 10), (2, 20)] {
        let id = format!("r{number}");
        block(world.store().say_once(id.clone(), vec![say(&id, "a")], NOW)).unwrap();
        let seq = world.store().outbox_heads().unwrap()[0].seq;
        block(world.store().sent(seq, event(&id), Millis(at))).unwrap();
    }
    assert_eq!(block(world.store().prune_ours(Millis(20))).unwrap(), 1);
    world.look(|store| {
        assert_eq!(store.sent_by(&event("r1")).unwrap(), None);
        assert!(store.sent_by(&event("r2")).unwrap().is_some());
    });
}
