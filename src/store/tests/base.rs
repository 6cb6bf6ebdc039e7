use super::*;

/// A text of which a few make up all that is kept above the tree.
fn long() -> String {
    String::from_utf8(journal::noise(200_000)).unwrap()
}

#[test]
fn what_has_sunk_and_what_has_not_is_read_as_one() {
    let mut world = World::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"] {
        world.accept(vec![heard_by(&eir(), name, &long())]);
    }
    world.look(|store| {
        assert_eq!(store.waiting(&eir()).unwrap().len(), 13);
        let deliveries = store.deliveries(&eir(), &(1..=13).collect::<Vec<_>>()).unwrap();
        assert!(deliveries.iter().all(|delivery| delivery.text == long()));
        assert!(store.knows(&event("a")).unwrap() && store.knows(&event("m")).unwrap());
    });
}

#[test]
fn what_was_learnt_of_many_events_denies_none_of_them() {
    let mut world = World::new();
    let names: Vec<String> = (0..1_700).map(|number| format!("e{number}")).collect();
    for names in names.chunks(400) {
        world.accept(names.iter().map(|name| heard_by(&eir(), name, "x")).collect());
    }
    world.store().sink_and_learn();
    world.reopen();
    let known = |store: &Store| names.iter().filter(|name| store.knows(&event(name)).unwrap()).count();
    assert_eq!(known(world.store()), 1_700, "while it learns");
    world.store().sink_and_learn();
    world.accept(vec![heard_by(&eir(), "later", "x")]);
    world.store().sink_and_learn();
    assert_eq!(known(world.store()), 1_700, "when all is learnt");
    assert!(world.store().knows(&event("later")).unwrap());
    assert!(!world.store().knows(&event("other")).unwrap());
}

#[test]
fn the_journal_does_not_grow_for_ever() {
    let mut world = World::new();
    let mut longest = 0;
    for round in 0..30 {
        world.accept(vec![heard_by(&eir(), &format!("e{round}"), &long())]);
        longest = longest.max(world.store().journal());
        if round % 10 == 9 {
            world.reopen();
        }
    }
    assert!(longest < 20 * 200_000 / 6_000, "{longest} rows");
}

#[test]
fn an_entry_cut_short_is_forgotten_and_written_over() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    let whole = world.store().journal();
    world.store().tear_journal();
    assert_eq!(world.store().journal(), whole + 2);
    world.reopen();
    assert_eq!(world.store().journal(), whole);
    world.accept(vec![heard_by(&eir(), "b", "two")]);
    world.look(|store| assert_eq!(store.waiting(&eir()).unwrap().len(), 2));
}

#[test]
fn an_entry_that_was_being_removed_is_not_missed() {
    for cut in [1, 20, 33] {
        let mut world = World::new();
        world.accept(vec![heard_by(&eir(), "a", &long())]);
        world.store().sink_and_cut_journal(cut);
        world.reopen();
        world.accept(vec![heard_by(&eir(), "b", "two")]);
        world.look(|store| {
            let texts = store.deliveries(&eir(), &[1, 2]).unwrap().into_iter().map(|mail| mail.text);
            assert_eq!(texts.collect::<Vec<_>>(), [long(), "two".to_owned()]);
        });
        world.store().sink_and_cut_journal(0);
        world.store().sink_and_cut_journal(0);
        assert_eq!(world.store().journal(), 0, "what is left of it goes as well");
    }
}

#[test]
fn what_is_removed_above_is_gone_from_below() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    for name in ["b", "c", "d", "e", "f", "g"] {
        world.accept(vec![heard_by(&persona("bil"), name, &long())]);
    }
    block(world.store().write_turn(&eir(), turn(1, &[1]), Books::default())).unwrap();
    let commit = plain(turn(1, &[1]).id);
    block(world.store().commit(commit)).unwrap();
    world.look(|store| {
        assert_eq!(store.deliveries(&eir(), &[1]).unwrap(), []);
        assert_eq!(store.counts().waiting, 6);
    });
}
