use super::*;
use crate::conversation::memory::Confided;
use crate::conversation::{Kept, Memory, Origin};
use crate::persona::memory::{MOST, Recalled, Seen};

fn kept(text: &str) -> Kept {
    Kept { text: text.to_owned(), people: [user("alice")].into(), ..Kept::default() }
}

/// Ends a turn over mail of these numbers that heard the reply so.
fn end(world: &World, open: OpenTurn, memory: Remembering) {
    let (id, session) = (open.id, session(3));
    block(world.store().write_turn(&eir(), open, Books::default())).unwrap();
    commit(world, id, session, memory);
}

fn commit(world: &World, turn: TurnId, session: Session, memory: Remembering) {
    let commit = Commit { session, memory, ..plain(turn) };
    block(world.store().commit(commit)).unwrap();
}

fn remember(texts: &[&str]) -> Remembering {
    Remembering { remember: texts.iter().map(|text| kept(text)).collect(), ..Remembering::default() }
}

fn all(store: &Store) -> Vec<Memory> {
    store.memories(&eir(), |memories| memories.all().cloned().collect())
}

fn texts(store: &Store) -> Vec<String> {
    all(store).into_iter().map(|memory| memory.kept.text).collect()
}

#[test]
fn what_a_turn_words_is_kept_with_where_it_comes_from_and_once() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one"), heard_by(&eir(), "b", "two")]);
    end(&world, turn(1, &[1, 2]), remember(&["first", "second"]));
    commit(&world, turn(1, &[]).id, session(3), remember(&["again"]));
    world.look(|store| {
        let origin = Origin {
            lane: lane(),
            confided: Confided::new(),
            events: [event("a"), event("b")].into(),
            at: NOW,
            generation: 3,
        };
        let memory = |number, text| Memory {
            number: MemoryNumber(number),
            kept: kept(text),
            origin: origin.clone(),
            uses: 0,
            used: NOW,
        };
        assert_eq!(all(store), [memory(1, "first"), memory(2, "second")]);
        store.memories(&persona("bil"), |memories| assert_eq!(memories.all().count(), 0));
    });
}

#[test]
fn what_is_worded_in_a_direct_room_and_after_its_memories_is_confided() {
    let mut world = World::new();
    let dm = Lane::Direct(room("dm"));
    let told = Delivery { lane: dm.clone(), room: room("dm"), ..mail("a", "hush") };
    world.accept(vec![
        arrival("a", vec![Effect::Deliver(eir(), told)]),
        heard_by(&eir(), "b", "what do you know?"),
    ]);
    end(&world, OpenTurn { lane: dm, ..turn(1, &[1]) }, remember(&["hush"]));
    let number = vec![MemoryNumber(1)];
    let recalled = Recalled { shown: number.clone(), used: number, ..Recalled::default() };
    end(&world, turn(2, &[2]), Remembering { recalled, ..remember(&["she said hush"]) });
    world.look(|store| {
        let confided = Confided::from([(room("dm"), [user("alice")].into())]);
        let of =
            all(store).into_iter().map(|memory| (memory.uses, memory.origin.confided)).collect::<Vec<_>>();
        assert_eq!(of, [(1, confided.clone()), (0, confided)]);
    });
}

#[test]
fn what_she_forgets_is_gone() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one"), heard_by(&eir(), "b", "two")]);
    end(&world, turn(1, &[1]), remember(&["first", "second", "third"]));
    end(&world, turn(2, &[2]), Remembering { forget: vec![MemoryNumber(2)], ..Remembering::default() });
    world.look(|store| assert_eq!(texts(store), ["first", "third"]));
    let gone = block(world.store().forget_memories(&eir(), [MemoryNumber(1), MemoryNumber(2)].into()));
    assert_eq!(gone.unwrap(), 1);
    world.look(|store| assert_eq!(texts(store), ["third"]));
}

#[test]
fn what_a_session_has_seen_is_kept() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    let met = [(lane(), [user("alice")].into())].into();
    let seen = Seen { generation: 3, memories: [MemoryNumber(4)].into(), people: met, ..Seen::default() };
    end(&world, turn(1, &[1]), Remembering { seen: Some(seen.clone()), ..Remembering::default() });
    world.look(|store| {
        assert_eq!(store.seen(&eir()).unwrap(), Some(seen.clone()));
        assert_eq!(store.seen(&persona("bil")).unwrap(), None);
    });
}

#[test]
fn what_was_shown_as_said_before_taints_also_where_it_was_taken_back_while_she_thought() {
    for (at, generation) in [("swarm", Some(3)), ("burn", None)] {
        let world = World::new();
        world.accept(vec![heard_by(&eir(), "a", "one")]);
        let books = Books { session: Some(session(3)), ledger: Vec::new() };
        block(world.store().write_turn(&eir(), turn(1, &[1]), books)).unwrap();
        taken_back(&world, "r", "old", at);
        let earlier = [(room("swarm"), [event("old")].into())].into();
        let seen = Some(Seen { generation: 3, earlier, ..Seen::default() });
        commit(&world, turn(1, &[1]).id, session(3), Remembering { seen, ..Remembering::default() });
        assert_eq!(world.store().tainted(&eir()).unwrap(), generation, "{at}");
    }
}

#[test]
fn what_was_shown_as_said_before_taints_by_its_own_event_in_its_own_room_and_session_alone() {
    let world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one")]);
    let earlier = [(room("swarm"), [event("old")].into())].into();
    let seen = Some(Seen { generation: 3, earlier, ..Seen::default() });
    end(&world, turn(1, &[1]), Remembering { seen, ..Remembering::default() });
    let tainted = || world.store().tainted(&eir()).unwrap();
    taken_back(&world, "r1", "other", "swarm");
    taken_back(&world, "r2", "old", "burn");
    assert_eq!(tainted(), None);
    let next = Books { session: Some(session(4)), ledger: Vec::new() };
    block(world.store().book(&eir(), next)).unwrap();
    taken_back(&world, "r3", "old", "swarm");
    assert_eq!(tainted(), None, "the next session was not shown it");
}

fn taken_back(world: &World, name: &str, redacts: &str, at: &str) {
    let notice = Delivery { kind: DeliveryKind::Redaction(event(redacts)), room: room(at), ..mail(name, "") };
    world.accept(vec![arrival(name, vec![Effect::Redact { redacts: event(redacts), notice }])]);
}

#[test]
fn what_was_learned_from_a_message_goes_with_it_also_where_its_event_is_forgotten() {
    for forgotten in [false, true] {
        let mut world = World::new();
        world.accept(vec![heard_by(&eir(), "a", "one"), heard_by(&eir(), "b", "two")]);
        end(&world, turn(1, &[1]), remember(&["of a", "of a too"]));
        end(&world, turn(2, &[2]), remember(&["of b"]));
        if forgotten {
            block(world.store().prune(Millis(NOW.0 + 1))).unwrap();
        }
        taken_back(&world, "elsewhere", "b", "burn");
        taken_back(&world, "r", "a", "swarm");
        world.look(|store| assert_eq!(texts(store), ["of b"]));
    }
}

#[test]
fn what_was_learned_from_an_edit_goes_with_what_it_edits() {
    let mut world = World::new();
    let edit = Delivery { kind: DeliveryKind::Edit(event("a")), ..mail("e", "two") };
    world.accept(vec![
        heard_by(&eir(), "a", "one"),
        arrival("e", vec![Effect::DeliverEdit(eir(), event("a"), edit)]),
    ]);
    end(&world, turn(1, &[2]), remember(&["of the edit"]));
    taken_back(&world, "r", "a", "swarm");
    world.look(|store| assert_eq!(texts(store), [""; 0]));
}

#[test]
fn nothing_is_learned_from_what_was_taken_back_while_she_thought() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "one"), heard_by(&eir(), "b", "two")]);
    block(world.store().write_turn(&eir(), turn(1, &[1, 2]), Books::default())).unwrap();
    taken_back(&world, "r", "a", "swarm");
    commit(&world, turn(1, &[]).id, session(3), remember(&["of a"]));
    world.look(|store| assert_eq!(texts(store), [""; 0]));
}

#[test]
fn what_counts_least_makes_way_for_what_is_new_and_open_tasks_do_not() {
    let mut world = World::new();
    world.accept(["a", "b", "c", "d"].map(|name| heard_by(&eir(), name, name)).to_vec());
    let task = Kept { task: Some(crate::conversation::Task::Open), ..kept("to be done") };
    let salience = crate::conversation::Salience::of_hundredths(40);
    let trifle = Kept { salience, ..kept("a trifle") };
    let many = (0..MOST - 2).map(|number| kept(&number.to_string()));
    let all = [task, trifle].into_iter().chain(many).collect();
    end(&world, turn(1, &[1]), Remembering { remember: all, ..Remembering::default() });
    assert_eq!(texts(world.store()).len(), MOST);
    block(world.store().write_turn(&eir(), turn(2, &[2]), Books::default())).unwrap();
    taken_back(&world, "r", "b", "swarm");
    commit(&world, turn(2, &[]).id, session(3), remember(&["of b"]));
    assert_eq!(texts(world.store())[1], "a trifle", "nothing makes way for what is not learned");
    end(&world, turn(3, &[3]), Remembering { forget: vec![MemoryNumber(3)], ..remember(&["one"]) });
    assert_eq!(texts(world.store())[..3], ["to be done", "a trifle", "1"]);
    end(&world, turn(4, &[4]), remember(&["new", "newer"]));
    world.look(|store| {
        let texts = texts(store);
        assert_eq!((texts.len(), &texts[..2]), (MOST, ["to be done", "2"].map(String::from).as_slice()));
        assert_eq!(texts[MOST - 3..], ["one", "new", "newer"]);
    });
}
