use super::*;
use crate::conversation::past::{PastLine, PastTurn};

/// Ends a turn over mail of these numbers in a lane, in which she said so, at a time.
fn end(world: &World, lane: Lane, seqs: &[u64], said: &[&str], now: Millis) {
    let open = OpenTurn { lane, ..turn(u128::from(now.0), seqs) };
    let commit = Commit {
        session: session(3),
        said: Some(said.iter().map(|text| (room("swarm"), (*text).to_owned())).collect()),
        now,
        ..plain(open.id)
    };
    block(world.store().write_turn(&eir(), open, Books::default())).unwrap();
    block(world.store().commit(commit)).unwrap();
}

fn past(store: &Store, lane: &Lane, since: u64) -> Vec<PastTurn> {
    store.past(&eir(), lane, Millis(since)).unwrap()
}

fn texts(store: &Store) -> Vec<String> {
    let lines = past(store, &lane(), 0).into_iter().flat_map(|turn| turn.lines);
    lines.map(|line| line.text).collect()
}

fn redaction(name: &str, redacts: &str) -> Arrival {
    let notice = Delivery { kind: DeliveryKind::Redaction(event(redacts)), ..mail(name, "") };
    arrival(name, vec![Effect::Redact { redacts: event(redacts), notice }])
}

#[test]
fn a_turn_is_taken_down_in_its_lane_with_what_was_heard_and_said() {
    let mut world = World::new();
    let direct = Lane::Direct(room("dm"));
    let long = "long ".repeat(5_000);
    world.accept(vec![heard_by(&eir(), "a", "one"), heard_by(&eir(), "b", &long)]);
    end(&world, lane(), &[1, 2], &["hello"], Millis(2_000));
    end(&world, direct.clone(), &[], &["psst"], Millis(3_000));
    world.look(|store| {
        let line = |sender, text: &str, said| PastLine {
            room: room("swarm"),
            sender,
            text: text.to_owned(),
            said: Millis(said),
        };
        let alice = Some((user("alice"), Some("Alice".to_owned())));
        let lines = vec![
            line(alice.clone(), "one", 900),
            line(alice.clone(), &long[..2 * 1024 + 1], 900),
            line(None, "hello", 2_000),
        ];
        assert_eq!(past(store, &lane(), 0), [PastTurn { generation: 3, lines }]);
        assert_eq!(past(store, &lane(), 2_001), []);
        assert_eq!(past(store, &direct, 0)[0].lines, [line(None, "psst", 3_000)]);
        assert_eq!(store.past(&persona("bil"), &lane(), Millis(0)).unwrap(), []);
        assert!(store.longest_row() < 8 * 1024);
    });
}

#[test]
fn of_a_lane_the_newest_turns_are_kept_and_only_for_so_long() {
    let world = World::new();
    for number in 0..30 {
        end(&world, lane(), &[], &[&number.to_string()], Millis(2_000 + number));
    }
    let newest: Vec<String> = (10..30).map(|number| number.to_string()).collect();
    assert_eq!(texts(world.store()), newest);
    assert_eq!(block(world.store().prune_past(Millis(2_025))).unwrap(), 15);
    assert_eq!(texts(world.store()), ["25", "26", "27", "28", "29"]);
}

#[test]
fn what_is_taken_back_goes_at_once_with_what_she_said_to_it() {
    let mut world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "secret"), heard_by(&eir(), "b", "two")]);
    end(&world, lane(), &[1, 2], &["about your secret"], Millis(2_000));
    end(&world, lane(), &[], &["later"], Millis(3_000));
    world.accept(vec![redaction("r", "a")]);
    world.look(|store| assert_eq!(texts(store), ["two", "later"]));
}

#[test]
fn what_she_said_goes_too_where_what_is_taken_back_was_too_much_to_be_taken_down() {
    let mut world = World::new();
    let names: Vec<String> = (0..25).map(|number| format!("e{number}")).collect();
    world.accept(names.iter().map(|name| heard_by(&eir(), name, name)).collect());
    end(&world, lane(), &(1..=25).collect::<Vec<u64>>(), &["about your secret"], Millis(2_000));
    assert_eq!(texts(world.store()).len(), 21);
    world.accept(vec![redaction("r", "e0")]);
    world.look(|store| assert_eq!(texts(store), names[5..]));
}

#[test]
fn what_is_taken_back_while_she_thinks_is_not_taken_down() {
    let world = World::new();
    world.accept(vec![heard_by(&eir(), "a", "secret"), heard_by(&eir(), "b", "two")]);
    block(world.store().write_turn(&eir(), turn(2_000, &[1, 2]), Books::default())).unwrap();
    world.accept(vec![redaction("r", "a")]);
    end(&world, lane(), &[1, 2], &["about your secret"], Millis(2_000));
    assert_eq!(texts(world.store()), ["two"]);
}
