use super::*;
use crate::conversation::notices::News;

fn commit(id: u128, says: Vec<NewSay>) -> Commit {
    Commit { says, session: session(2), now: Millis(7), ..plain(TurnId(Uuid::from_u128(id))) }
}

fn with_mail() -> World {
    let world = World::new();
    world.accept(["a", "b", "c"].map(|name| heard_by(&eir(), name, &name.repeat(2_000))).to_vec());
    world
}

#[test]
fn an_open_turn_holds_its_mail() {
    let mut world = with_mail();
    block(world.store().write_turn(&eir(), turn(1, &[1, 3]), books(session(1)))).unwrap();
    world.look(|store| {
        assert_eq!(store.standing(&eir()).unwrap(), (Some(turn(1, &[1, 3])), Some(session(1))));
        assert_eq!(store.standing(&persona("bil")).unwrap(), (None, None));
    });
    assert_eq!(world.waiting(&eir()), [2]);
    block(world.store().write_turn(&eir(), turn(1, &[3]), Books::default())).unwrap();
    world.look(|store| assert_eq!(store.standing(&eir()).unwrap().1, Some(session(1))));
    assert_eq!(world.waiting(&eir()), [1, 2]);
}

#[test]
fn a_commit_does_all_of_it() {
    let mut world = with_mail();
    block(world.store().write_turn(&eir(), turn(1, &[1, 2]), books(session(1)))).unwrap();
    block(world.store().commit(commit(1, vec![say("q", "swarm"), say("p", "swarm")]))).unwrap();
    world.look(|store| {
        assert_eq!(store.standing(&eir()).unwrap(), (None, Some(session(2))));
        assert_eq!(store.deliveries(&eir(), &[1, 2, 3]).unwrap().len(), 1);
        let heads = store.outbox_heads().unwrap();
        assert_eq!((heads[0].say.clone(), heads[0].since), (say("q", "swarm"), Millis(7)));
        assert_eq!(store.counts().outbox, 2);
        let label = Heard {
            seq: 2,
            lane: lane(),
            room: room("swarm"),
            event: event("b"),
            sender: user("alice"),
            thread: Some(event("root")),
        };
        assert_eq!(store.heard(&eir(), 2).unwrap(), Some(label));
        assert_eq!(store.heard(&eir(), 3).unwrap().unwrap().event, event("c"));
        assert_eq!(store.heard(&eir(), 4).unwrap(), None);
        assert_eq!(store.number_of(&eir(), &event("b")).unwrap(), Some(2));
    });
    assert_eq!(world.waiting(&eir()), [3]);
}

#[test]
fn a_turn_is_committed_once() {
    let mut world = with_mail();
    block(world.store().write_turn(&eir(), turn(1, &[1]), Books::default())).unwrap();
    block(world.store().commit(commit(2, vec![say("p", "swarm")]))).unwrap();
    block(world.store().commit(commit(1, vec![say("q", "swarm")]))).unwrap();
    block(world.store().commit(commit(1, vec![say("r", "swarm")]))).unwrap();
    world.look(|store| assert_eq!(store.counts().outbox, 1));
    assert_eq!(world.waiting(&eir()), [2, 3]);
}

#[test]
fn what_is_to_be_shown_in_whole_is_mail_again() {
    let mut world = World::new();
    let passing = Delivery { addressed: false, wakes: false, ..mail("b", &"b".repeat(2_000)) };
    let passing = arrival("b", vec![Effect::Deliver(eir(), passing)]);
    world.accept(vec![heard_by(&eir(), "a", "a"), passing, heard_by(&eir(), "c", "c")]);
    block(world.store().write_turn(&eir(), turn(1, &[1, 2]), Books::default())).unwrap();
    block(world.store().commit(Commit { show: [2, 3].into(), ..commit(1, Vec::new()) })).unwrap();
    world.look(|store| {
        let whole = numbered(2, mail("b", &"b".repeat(2_000)));
        let again = Delivery { addressed: false, wakes: true, again: Some(2), heard: Millis(7), ..whole };
        assert_eq!(store.deliveries(&eir(), &[1, 2]).unwrap(), [again]);
        assert_eq!(store.whole(&eir(), &[1, 2, 3]).unwrap(), [2].into());
        let waiting = store.waiting(&eir()).unwrap();
        let heads: Vec<_> = waiting.iter().map(|head| (head.seq, head.wakes, head.whole)).collect();
        assert_eq!(heads, [(2, true, true), (3, true, false)]);
    });
}

#[test]
fn what_she_says_is_owed_to_the_people_who_woke_her_or_else_to_all_whom_she_heard() {
    let line = |name: &str, by: &str, wakes, hops| {
        let line = Delivery { sender: user(by), wakes, hops, ..mail(name, name) };
        arrival(name, vec![Effect::Deliver(eir(), line)])
    };
    let cases: [(&[u64], &[&str]); 5] = [
        (&[1, 3], &["alice"]),
        (&[2, 3], &["bob", "carol"]),
        (&[2, 4], &["bob"]),
        (&[1, 2, 4], &["alice", "bob"]),
        (&[4], &[]),
    ];
    for (seqs, expect) in cases {
        let world = World::new();
        world.accept(vec![
            line("a", "alice", true, None),
            line("b", "bob", false, None),
            line("c", "carol", false, None),
            line("d", "brage", true, Some(1)),
        ]);
        block(world.store().write_turn(&eir(), turn(1, seqs), Books::default())).unwrap();
        block(world.store().commit(commit(1, vec![say("q", "swarm")]))).unwrap();
        let owed = world.store().outbox_heads().unwrap().remove(0).owed_to;
        assert_eq!(owed, expect.iter().map(|name| user(name)).collect(), "{seqs:?}");
    }
}

#[test]
fn what_a_turn_told_is_told_also_where_it_is_held_or_put_back() {
    let news = || News { generation: 3, ..News::default() };
    let ends: [fn(&World, OpenTurn); 2] = [
        |world, turn| {
            block(world.store().hold(&eir(), turn, "no".to_owned(), NOW, Books::default())).unwrap();
        },
        |world, turn| block(world.store().put_back(&eir(), turn, Books::default())).unwrap(),
    ];
    for end in ends {
        for (news, is_told) in [(None, false), (Some(news()), true)] {
            let world = with_mail();
            let open = OpenTurn { news, ..turn(1, &[1]) };
            block(world.store().write_turn(&eir(), open.clone(), Books::default())).unwrap();
            end(&world, open);
            assert_eq!(world.store().told(&eir(), &lane(), 3).unwrap().common.is_some(), is_told);
        }
    }
}

#[test]
fn held_mail_is_put_aside_with_its_reason() {
    let mut world = with_mail();
    block(world.store().write_turn(&eir(), turn(1, &[1, 2]), Books::default())).unwrap();
    block(world.store().hold(&eir(), turn(1, &[1, 2]), "refused".to_owned(), Millis(8), Books::default()))
        .unwrap();
    world.look(|store| {
        assert_eq!(store.held(&eir()).unwrap(), 2);
        assert_eq!(store.held(&persona("bil")).unwrap(), 0);
        let row = store.held_mail(&eir()).unwrap().remove(1);
        assert_eq!(row.delivery, numbered(2, mail("b", &"b".repeat(2_000))));
        assert_eq!((row.turn, row.reason.as_str(), row.at), (turn(1, &[]).id, "refused", Millis(8)));
        assert_eq!(store.standing(&eir()).unwrap().0, None);
        assert_eq!(store.heard(&eir(), 1).unwrap().unwrap().event, event("a"));
    });
    assert_eq!(world.waiting(&eir()), [3]);
}

#[test]
fn released_mail_waits_again_with_its_words_and_she_is_told_when_it_is_taken_back() {
    let mut world = with_mail();
    block(world.store().write_turn(&eir(), turn(1, &[1, 2]), Books::default())).unwrap();
    block(world.store().hold(&eir(), turn(1, &[1, 2]), "refused".to_owned(), NOW, Books::default())).unwrap();
    assert_eq!(block(world.store().release_mail(Some(persona("bil")))).unwrap(), 0);
    assert_eq!(block(world.store().release_mail(Some(eir()))).unwrap(), 2);
    assert_eq!(block(world.store().release_mail(None)).unwrap(), 0);
    world.look(|store| {
        assert_eq!(store.held(&eir()).unwrap(), 0);
        let whole = numbered(2, mail("b", &"b".repeat(2_000)));
        assert_eq!(store.deliveries(&eir(), &[2]).unwrap(), [whole]);
        assert_eq!(store.heard(&eir(), 1).unwrap().unwrap().event, event("a"));
    });
    assert_eq!(world.waiting(&eir()), [1, 2, 3]);
    let notice = mail("gone", "taken back");
    world.accept(vec![arrival("gone", vec![Effect::Redact { redacts: event("a"), notice }])]);
    assert_eq!(world.waiting(&eir()), [2, 3, 4], "an earlier turn may have fed it");
}

#[test]
fn counts_tell_how_much_there_is() {
    let mut world = with_mail();
    block(world.store().write_turn(&eir(), turn(1, &[1]), Books::default())).unwrap();
    block(world.store().hold(&eir(), turn(1, &[1]), "refused".to_owned(), NOW, Books::default())).unwrap();
    block(world.store().say_once("k".to_owned(), vec![say("q", "a"), say("p", "b")], NOW)).unwrap();
    let seq = world.store().outbox_heads().unwrap()[0].seq;
    block(world.store().park(seq, refused("muted"))).unwrap();
    world.look(|store| {
        let counts = Counts { waiting: 2, held: 1, outbox: 2, parked: 1, quarantined: 0 };
        assert_eq!(store.counts(), counts);
    });
}
