use super::*;

fn seat(invite: Option<&str>) -> SeatRow {
    SeatRow { persona: eir(), room: room("a"), lane: lane(), invite: invite.map(event), line: None }
}

fn line(at: u64, passed: bool) -> StartLine {
    StartLine { at: Millis(at), passed }
}

fn member(name: &str, shown: &str, joined: bool, at: u64) -> Effect {
    let (room, user, name) = (room("a"), user(name), Some(shown.to_owned()));
    Effect::Member { room, user, name, joined, at: Millis(at) }
}

#[test]
fn a_seat_keeps_its_invite_and_the_room_its_alias() {
    let mut world = World::new();
    block(world.store().seat(seat(Some("i")), Some("#a:x.org".to_owned()))).unwrap();
    block(world.store().seat(seat(Some("j")), None)).unwrap();
    world.accept(vec![arrival("s", vec![Effect::Seat(seat(None))])]);
    world.look(|store| {
        let row = store.room(&room("a")).unwrap().unwrap();
        assert_eq!(
            (row.alias.as_deref(), row.seats.as_slice()),
            (Some("#a:x.org"), [seat(Some("i"))].as_slice())
        );
        assert_eq!((row.encrypted, row.mark), (false, None));
    });
    block(world.store().unseat(&eir(), user("eir"), room("a"))).unwrap();
    block(world.store().seat(seat(Some("k")), None)).unwrap();
    world.look(|store| assert_eq!(store.room(&room("a")).unwrap().unwrap().seats, [seat(Some("k"))]));
}

#[test]
fn a_start_line_is_kept_until_a_mark_passes_it_or_the_seat_is_lost() {
    let mut world = World::new();
    let lined = |line| SeatRow { line, ..seat(None) };
    let of = |store: &Store| store.room(&room("a")).unwrap().unwrap().seats[0].line;
    block(world.store().seat(lined(None), None)).unwrap();
    world.look(|store| assert_eq!(of(store), None));
    world.accept(vec![arrival("s", vec![Effect::Seat(lined(Some(line(7, false))))])]);
    block(world.store().seat(lined(Some(line(9, true))), None)).unwrap();
    world.look(|store| assert_eq!(of(store), Some(line(7, false))));
    let lines = vec![(eir(), line(7, true)), (persona("bil"), line(1, true))];
    let mark = Some(Mark { room: room("a"), event: event("m"), lines });
    block(world.store().accept(Vec::new(), Vec::new(), mark, NOW)).unwrap();
    world.look(|store| {
        assert_eq!(of(store), Some(line(7, true)));
        assert_eq!(store.room(&room("a")).unwrap().unwrap().seats.len(), 1, "who has no seat gets none");
    });
    block(world.store().set_lines(room("a"), vec![(eir(), line(8, false))])).unwrap();
    world.look(|store| assert_eq!(of(store), Some(line(8, false))));
    block(world.store().unseat(&eir(), user("eir"), room("a"))).unwrap();
    block(world.store().seat(lined(None), None)).unwrap();
    world.look(|store| assert_eq!(of(store), None));
}

#[test]
fn rooms_do_not_mix() {
    let mut world = World::new();
    for name in ["a", "ab", "b"] {
        let seat =
            SeatRow { persona: persona(name), room: room(name), lane: lane(), invite: None, line: None };
        block(world.store().seat(seat, None)).unwrap();
        block(world.store().set_members(room(name), vec![(user(name), None)], NOW)).unwrap();
    }
    world.look(|store| {
        let rooms = store.rooms().unwrap();
        assert_eq!(rooms.len(), 3);
        for row in rooms {
            assert_eq!(row.members.len(), 1);
            assert_eq!(format!("!{}:x.org", row.seats[0].persona), row.room.as_str());
            assert_eq!(store.room(&row.room).unwrap(), Some(row));
        }
        assert_eq!(store.room(&room("c")).unwrap(), None);
    });
}

#[test]
fn who_lost_her_seat_is_out_until_she_gets_one_again() {
    let mut world = World::new();
    let out =
        |store: &Store| store.room(&room("a")).unwrap().map(|row| row.out.into_iter().collect::<Vec<_>>());
    block(world.store().unseat(&eir(), user("eir"), room("a"))).unwrap();
    world.look(|store| assert_eq!(out(store).unwrap_or_default(), [], "she never had one"));
    block(world.store().seat(seat(None), None)).unwrap();
    block(world.store().unseat(&eir(), user("eir"), room("a"))).unwrap();
    block(world.store().unseat(&eir(), user("eir"), room("a"))).unwrap();
    world.look(|store| assert_eq!(out(store), Some(vec![eir()])));
    block(world.store().seat(seat(None), None)).unwrap();
    world.look(|store| assert_eq!(out(store), Some(vec![])));
}

#[test]
fn encryption_is_for_good() {
    let mut world = World::new();
    world.accept(vec![arrival("e", vec![Effect::Encrypted(room("a"))])]);
    block(world.store().seat(seat(None), None)).unwrap();
    block(world.store().note_encrypted(room("b"))).unwrap();
    world.look(|store| assert!(store.rooms().unwrap().iter().all(|row| row.encrypted)));
    world.look(|store| assert_eq!(store.rooms().unwrap().len(), 2));
}

#[test]
fn an_older_membership_changes_nothing() {
    let mut world = World::new();
    let members = |store: &Store| store.room(&room("a")).unwrap().unwrap().members;
    let entry = |name: &str, shown: &str| (user(name), Some(shown.to_owned()));
    block(world.store().seat(seat(None), None)).unwrap();
    world.accept(vec![
        arrival("1", vec![member("alice", "Alice", true, 10), member("bob", "Bob", true, 10)]),
        arrival("2", vec![member("alice", "Old", true, 9)]),
        arrival("3", vec![member("bob", "Bob", false, 20)]),
        arrival("4", vec![member("bob", "Bob", true, 15)]),
    ]);
    world.look(|store| assert_eq!(members(store), [entry("alice", "Alice")]));
    let now = vec![entry("carol", "Carol"), entry("bob", "Bobby")];
    block(world.store().set_members(room("a"), now, Millis(30))).unwrap();
    world.look(|store| assert_eq!(members(store), [entry("bob", "Bobby"), entry("carol", "Carol")]));
    world.accept(vec![
        arrival("5", vec![member("alice", "Alice", true, 29)]),
        arrival("6", vec![member("carol", "Carola", true, 31)]),
    ]);
    world.look(|store| assert_eq!(members(store), [entry("bob", "Bobby"), entry("carol", "Carola")]));
}
