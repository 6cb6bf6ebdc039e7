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
    let commit = Commit {
        persona: eir(),
        turn: turn(id, &[]).id,
        says: Vec::new(),
        session: session(1),
        ledger: Vec::new(),
        memory: Remembering::default(),
        show: BTreeSet::new(),
        said: None,
        now: NOW,
    };
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
