use super::*;

#[test]
fn mail_is_numbered_for_each_persona() {
    let mut world = World::new();
    let bil = persona("bil");
    let both = vec![Effect::Deliver(eir(), mail("b", "two")), Effect::Deliver(bil.clone(), mail("b", "two"))];
    assert_eq!(world.accept(vec![heard_by(&eir(), "a", "one"), arrival("b", both)]), [true, true]);
    world.look(|store| {
        let found = store.deliveries(&eir(), &[2, 1, 3]).unwrap();
        assert_eq!(found, [numbered(2, mail("b", "two")), numbered(1, mail("a", "one"))]);
        assert_eq!(store.deliveries(&bil, &[1]).unwrap(), [numbered(1, mail("b", "two"))]);
        let head = store.waiting(&eir()).unwrap().remove(0);
        let (lane, room, sender) = (lane(), room("swarm"), mail("b", "two").sender);
        assert_eq!(
            head,
            Waiting {
                seq: 1,
                lane,
                room,
                sender,
                wakes: true,
                unheard: true,
                hops: None,
                whole: false,
                heard: NOW
            }
        );
        assert_eq!(store.number_of(&eir(), &event("b")).unwrap(), Some(2));
        assert_eq!(store.number_of(&bil, &event("a")).unwrap(), None);
    });
}

#[test]
fn numbers_go_on_after_opening_again() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    world.reopen();
    world.accept(vec![heard_by(&eir(), "b", "two")]);
    assert_eq!(world.waiting(&eir()), [1, 2]);
}

#[test]
fn an_event_seen_before_has_no_effect() {
    let mut world = World::new();
    assert_eq!(
        world.accept(vec![heard_by(&eir(), "a", "one"), heard_by(&eir(), "a", "again")]),
        [true, false]
    );
    world.reopen();
    let once = Effect::Once { key: "k".to_owned(), says: vec![say("q", "swarm")] };
    assert_eq!(world.accept(vec![arrival("a", vec![once])]), [false]);
    world.look(|store| {
        assert_eq!(store.deliveries(&eir(), &[1, 2]).unwrap(), [numbered(1, mail("a", "one"))]);
        assert_eq!(store.counts().outbox, 0);
        assert!(store.knows(&event("a")).unwrap());
        assert!(!store.knows(&event("b")).unwrap());
    });
}

#[test]
fn whom_a_thread_asks_is_kept_with_its_root_until_that_is_forgotten() {
    let mut world = World::new();
    let asks = |root: &str, whom: &[&str]| {
        Effect::Asks(event(root), whom.iter().map(|name| persona(name)).collect())
    };
    let of = |store: &Store, root: &str| {
        let asked = store.asked(&event(root)).unwrap();
        asked.into_iter().flatten().map(|persona| persona.0).collect::<Vec<_>>()
    };
    let begun = vec![Effect::Deliver(eir(), mail("root", "eir?")), asks("root", &["eir"])];
    world.accept(vec![arrival("root", begun), arrival("b", vec![asks("unheard", &["bil"])])]);
    world.look(|store| {
        assert_eq!(of(store, "root"), ["eir"]);
        assert_eq!(of(store, "unheard"), [""; 0], "only with a root that came in");
        assert_eq!(store.number_of(&eir(), &event("root")).unwrap(), Some(1));
        assert_eq!(of(store, "b"), [""; 0]);
    });
    world.accept(vec![arrival("c", vec![asks("root", &[])]), arrival("d", vec![asks("root", &["bil"])])]);
    world.reopen();
    world.look(|store| assert_eq!(of(store, "root"), ["bil"]));
    block(world.store().prune(Millis(NOW.0 + 1))).unwrap();
    world.look(|store| assert_eq!(of(store, "root"), [""; 0]));
}

#[test]
fn long_words_come_back_whole() {
    let mut world = World::new();
    for (name, length) in [("a", 1_024), ("b", 1_025), ("c", 6_001), ("d", 60_000), ("e", 1_000_000)] {
        let text: String = "å∫ç".chars().cycle().take(length).collect();
        world.accept(vec![heard_by(&eir(), name, &text)]);
        let seq = world.store().number_of(&eir(), &event(name)).unwrap().unwrap();
        world.look(|store| {
            assert_eq!(store.deliveries(&eir(), &[seq]).unwrap(), [numbered(seq, mail(name, &text))]);
        });
    }
}

#[test]
fn no_row_is_longer_than_it_may_be() {
    let world = World::new();
    let long = "x".repeat(100_000);
    world.accept(vec![heard_by(&eir(), "a", &long)]);
    block(world.store().write_turn(&eir(), turn(1, &(0..50_000).collect::<Vec<_>>()), Books::default()))
        .unwrap();
    assert_eq!(world.store().standing(&eir()).unwrap().0.unwrap().seqs.len(), 50_000);
    let longest = world.store().longest_row();
    assert!((5_000..=8_192).contains(&longest), "{longest}");
    block(world.store().write_turn(&eir(), turn(2, &[1]), Books::default())).unwrap();
    let commit = plain(turn(2, &[]).id);
    block(world.store().commit(commit)).unwrap();
    assert!(world.store().longest_row() < 1_000, "chunks go with their value");
}

#[test]
fn only_mail_that_may_wake_is_addressed() {
    let world = World::new();
    let kinds = [
        (DeliveryKind::Text, true),
        (DeliveryKind::Emote, true),
        (DeliveryKind::Media, true),
        (DeliveryKind::Edit(event("o")), true),
        (DeliveryKind::Notice, false),
        (DeliveryKind::Redaction(event("o")), false),
    ];
    for (place, (kind, _)) in kinds.iter().enumerate() {
        let name = format!("k{place}");
        let delivery = Delivery { kind: kind.clone(), ..mail(&name, "x") };
        world.accept(vec![arrival(&name, vec![Effect::Deliver(eir(), delivery)])]);
    }
    let addressed: Vec<bool> = world.store().waiting(&eir()).unwrap().iter().map(|head| head.wakes).collect();
    assert_eq!(addressed, kinds.map(|(_, wakes)| wakes));
}

#[test]
fn an_edit_is_heard_by_those_who_heard_what_it_edits() {
    let mut world = World::new();
    let bil = persona("bil");
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    let edit = |name: &str| Delivery { kind: DeliveryKind::Edit(event("a")), ..mail(name, "new") };
    let elsewhere = Delivery { room: room("burn"), ..edit("f") };
    let forged = Delivery { sender: user("mallory"), ..edit("g") };
    world.accept(vec![
        arrival(
            "e",
            vec![
                Effect::DeliverEdit(eir(), event("a"), edit("e")),
                Effect::DeliverEdit(bil.clone(), event("a"), edit("e")),
            ],
        ),
        arrival("f", vec![Effect::DeliverEdit(eir(), event("a"), elsewhere)]),
        arrival("g", vec![Effect::DeliverEdit(eir(), event("a"), forged)]),
    ]);
    world.look(|store| {
        assert_eq!(store.deliveries(&eir(), &[1, 2, 3]).unwrap().len(), 2);
        assert_eq!(store.deliveries(&eir(), &[2]).unwrap(), [numbered(2, edit("e"))]);
        assert_eq!(store.waiting(&bil).unwrap(), []);
    });
}

#[test]
fn unreadable_events_are_kept_up_to_a_thousand() {
    let mut world = World::new();
    let unreadable =
        |n: u32| Unreadable { raw: format!("{n}{}", "é".repeat(40_000)), reason: "odd".to_owned() };
    block(world.store().accept(Vec::new(), vec![unreadable(0)], None, NOW)).unwrap();
    world.look(|store| assert_eq!(store.quarantined(), 1));
    let small = |n: u32| Unreadable { raw: n.to_string(), reason: "odd".to_owned() };
    block(world.store().accept(Vec::new(), (1..1_050).map(small).collect(), None, NOW)).unwrap();
    world.look(|store| assert_eq!(store.quarantined(), 1_000));
}

#[test]
fn a_mark_moves_with_what_it_stands_for() {
    let mut world = World::new();
    let mark = Some(Mark { room: room("swarm"), event: event("a"), lines: Vec::new() });
    block(world.store().accept(vec![heard_by(&eir(), "a", "one")], Vec::new(), mark, NOW)).unwrap();
    world.look(|store| {
        assert_eq!(store.mark(&room("swarm")).unwrap(), Some(event("a")));
        assert_eq!(store.mark(&room("other")).unwrap(), None);
        assert!(store.knows(&event("a")).unwrap());
    });
}

#[test]
fn old_event_ids_are_forgotten_but_what_was_heard_is_not() {
    let mut world = World::new();
    let bare = |name: &str| arrival(name, Vec::new());
    block(world.store().accept(
        vec![bare("old"), heard_by(&eir(), "heard", "x")],
        Vec::new(),
        None,
        Millis(10),
    ))
    .unwrap();
    block(world.store().accept(vec![bare("new")], Vec::new(), None, Millis(20))).unwrap();
    block(world.store().say_once("k".to_owned(), vec![say("q", "swarm")], Millis(5))).unwrap();
    let head = world.store().outbox_heads().unwrap().remove(0);
    block(world.store().sent(head.seq, event("sent"), Millis(10))).unwrap();
    assert_eq!(block(world.store().prune(Millis(20))).unwrap(), 2);
    assert_eq!(block(world.store().prune(Millis(20))).unwrap(), 0);
    world.look(|store| {
        assert!(!store.knows(&event("old")).unwrap());
        assert!(!store.knows(&event("heard")).unwrap());
        assert!(store.knows(&event("new")).unwrap());
        assert_eq!(store.number_of(&eir(), &event("heard")).unwrap(), Some(1));
        assert_eq!(store.sent_event(&RequestId("q".to_owned())).unwrap(), None);
        assert!(store.sent_by(&event("sent")).unwrap().is_some());
    });
    assert_eq!(world.accept(vec![heard_by(&eir(), "heard", "again")]), [true]);
    assert_eq!(world.waiting(&eir()), [1], "never delivered twice, even when it is as good as new");
}

#[test]
fn forgetting_goes_through_all_of_a_large_tree() {
    let world = World::new();
    let arrivals = (0..25_000).map(|n| arrival(&format!("e{n}"), Vec::new())).collect();
    block(world.store().accept(arrivals, Vec::new(), None, Millis(1))).unwrap();
    assert_eq!(block(world.store().prune(Millis(2))).unwrap(), 25_000);
    assert!(!world.store().knows(&event("e24999")).unwrap());
}
