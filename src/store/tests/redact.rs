use super::*;

fn notice(name: &str, redacts: &str) -> Delivery {
    Delivery {
        kind: DeliveryKind::Redaction(event(redacts)),
        addressed: false,
        wakes: false,
        lane: Lane::Direct(room("nowhere")),
        ..mail(name, "")
    }
}

fn redaction(name: &str, redacts: &str) -> Arrival {
    let effect = Effect::Redact { redacts: event(redacts), notice: notice(name, redacts) };
    arrival(name, vec![effect])
}

fn withdrawn(seq: u64, name: &str) -> Delivery {
    numbered(seq, Delivery { kind: DeliveryKind::Withdrawn, ..mail(name, "") })
}

fn commit(world: &World, id: u128) {
    let commit = plain(turn(id, &[]).id);
    block(world.store().commit(commit)).unwrap();
}

#[test]
fn mail_not_yet_fed_is_withdrawn_without_a_word() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", &"secret".repeat(1_000)), redaction("r", "a")]);
    world.look(|store| {
        assert_eq!(store.waiting(&eir()).unwrap(), []);
        assert_eq!(store.deliveries(&eir(), &[1, 2]).unwrap(), [withdrawn(1, "a")]);
        assert!(store.longest_row() < 1_000);
    });
}

#[test]
fn mail_in_an_open_turn_is_withdrawn_and_told() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "secret"), heard_by(&eir(), "b", "two")]);
    block(world.store().write_turn(&eir(), turn(1, &[1, 2]), Books::default())).unwrap();
    world.accept(vec![redaction("r", "a")]);
    world.look(|store| {
        let told = numbered(3, Delivery { lane: lane(), ..notice("r", "a") });
        assert_eq!(store.deliveries(&eir(), &[1, 3]).unwrap(), [withdrawn(1, "a"), told]);
    });
    assert_eq!(world.waiting(&eir()), [3]);
}

#[test]
fn mail_that_was_fed_is_told_once() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "secret")]);
    block(world.store().write_turn(&eir(), turn(1, &[1]), Books::default())).unwrap();
    commit(&world, 1);
    world.accept(vec![redaction("r", "a"), redaction("again", "a")]);
    assert_eq!(world.waiting(&eir()), [2]);
    world.reopen();
    assert_eq!(world.waiting(&eir()), [2]);
}

#[test]
fn mail_put_aside_loses_its_words_and_is_told() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", &"secret".repeat(1_000))]);
    block(world.store().hold(&eir(), turn(1, &[1]), "refused".to_owned(), NOW, Books::default())).unwrap();
    world.accept(vec![redaction("r", "a")]);
    world.look(|store| {
        assert_eq!(store.held_mail(&eir()).unwrap()[0].delivery, withdrawn(1, "a"));
        assert!(store.longest_row() < 1_000);
    });
    assert_eq!(world.waiting(&eir()), [2]);
}

#[test]
fn edits_of_what_is_taken_back_go_with_it() {
    let mut world = World::new();
    let edit = Delivery { kind: DeliveryKind::Edit(event("a")), ..mail("e", "secret too") };
    let late = Delivery { kind: DeliveryKind::Edit(event("a")), ..mail("f", "secret still") };
    world.accept(vec![
        heard_by(&eir(), "a", "secret"),
        arrival("e", vec![Effect::DeliverEdit(eir(), event("a"), edit)]),
        redaction("r", "a"),
        arrival("f", vec![Effect::DeliverEdit(eir(), event("a"), late)]),
    ]);
    world.look(|store| {
        assert_eq!(store.waiting(&eir()).unwrap(), []);
        assert_eq!(store.deliveries(&eir(), &[2, 3]).unwrap()[0].text, "");
    });
}

#[test]
fn an_event_later_than_its_redaction_is_never_mail() {
    let world = World::new();
    world.accept(vec![redaction("r", "a")]);
    assert_eq!(world.accept(vec![heard_by(&eir(), "a", "secret")]), [true]);
    assert!(world.waiting(&eir()).is_empty());
}

#[test]
fn a_redaction_counts_only_in_its_own_room() {
    let world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "here")]);
    let elsewhere = Delivery { room: room("burn"), ..notice("r", "a") };
    world.accept(vec![arrival("r", vec![Effect::Redact { redacts: event("a"), notice: elsewhere.clone() }])]);
    assert_eq!(world.store().deliveries(&eir(), &[1]).unwrap()[0].text, "here");
    let early = Delivery { event: event("s"), ..elsewhere };
    world.accept(vec![
        arrival("s", vec![Effect::Redact { redacts: event("b"), notice: early }]),
        heard_by(&eir(), "b", "here too"),
    ]);
    assert_eq!(world.waiting(&eir()), [1, 2]);
}

#[test]
fn withdrawn_mail_goes_with_the_next_turn() {
    let mut world = World::new();
    world.accept(vec![
        heard_by(&eir(), "a", "x"),
        heard_by(&eir(), "b", "y"),
        redaction("r", "a"),
        redaction("s", "b"),
    ]);
    block(world.store().write_turn(&eir(), turn(1, &[2]), Books::default())).unwrap();
    world.look(|store| {
        assert_eq!(
            store.deliveries(&eir(), &[1, 2]).unwrap(),
            [withdrawn(2, "b")],
            "one may stand in the turn"
        );
        assert_eq!(store.heard(&eir(), 1).unwrap().unwrap().event, event("a"));
    });
}

/// Ends a turn in which she said something in two rooms, and answers where the first waits in the outbox.
fn speak(world: &World) -> u64 {
    world.accept(vec![heard_by(&eir(), "a", "a question")]);
    block(world.store().write_turn(&eir(), turn(1, &[1]), Books::default())).unwrap();
    let commit = Commit {
        says: vec![say("q", "swarm"), say("p", "burn")],
        session: session(4),
        said: Some(vec![(room("swarm"), "oops".to_owned()), (room("burn"), "fine".to_owned())]),
        ..plain(turn(1, &[]).id)
    };
    block(world.store().commit(commit)).unwrap();
    world.store().outbox_heads().unwrap()[0].seq
}

fn taken_down(store: &Store) -> Vec<String> {
    let turns = store.past(&eir(), &lane(), Millis(0)).unwrap().into_iter();
    turns.flat_map(|turn| turn.lines).map(|line| line.text).collect()
}

#[test]
fn what_she_said_herself_leaves_the_record_taints_her_session_and_is_told() {
    let mut world = World::new();
    let seq = speak(&world);
    block(world.store().sent(seq, event("mine"), NOW)).unwrap();
    let elsewhere = Delivery { room: room("burn"), ..notice("other", "mine") };
    world.accept(vec![arrival("other", vec![Effect::Redact { redacts: event("mine"), notice: elsewhere }])]);
    assert_eq!(world.store().tainted(&eir()).unwrap(), None, "it counts in its own room only");
    world.accept(vec![redaction("r", "mine"), redaction("again", "mine")]);
    world.look(|store| {
        assert_eq!(taken_down(store), ["a question", "fine"]);
        assert_eq!(store.tainted(&eir()).unwrap(), Some(4));
        let told = numbered(2, Delivery { lane: lane(), ..notice("r", "mine") });
        assert_eq!(store.deliveries(&eir(), &[2, 3]).unwrap(), [told]);
    });
}

#[test]
fn what_she_said_may_be_taken_back_before_it_is_known_to_be_hers() {
    let mut world = World::new();
    let seq = speak(&world);
    let halves = ["h1", "h2"].map(|half| say(half, "swarm")).to_vec();
    block(world.store().split(seq, halves, NOW)).unwrap();
    world.accept(vec![redaction("r", "mine")]);
    assert_eq!(world.store().tainted(&eir()).unwrap(), None);
    world.accept(vec![arrival("mine", vec![Effect::Echo(RequestId("h2".to_owned()))])]);
    world.look(|store| {
        assert_eq!(taken_down(store), ["a question", "fine"]);
        assert_eq!(store.tainted(&eir()).unwrap(), Some(4));
    });
}

#[test]
fn what_the_bridge_says_of_itself_taints_nobody() {
    let world = World::new();
    block(world.store().book(&eir(), books(session(4)))).unwrap();
    assert!(block(world.store().say_once("k".to_owned(), vec![say("q", "swarm")], NOW)).unwrap());
    let seq = world.store().outbox_heads().unwrap()[0].seq;
    block(world.store().sent(seq, event("mine"), NOW)).unwrap();
    world.accept(vec![redaction("r", "mine")]);
    assert_eq!(world.store().tainted(&eir()).unwrap(), None);
    assert!(world.waiting(&eir()).is_empty());
}
