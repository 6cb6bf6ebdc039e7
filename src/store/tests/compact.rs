use super::super::base::Base;
use super::super::compact::tests::{CUTS, cut_short};
use super::super::journal;
use super::super::open::engine;
use super::*;

/// A store with so many messages, some of them only in the journal, which is closed.
fn filled(count: usize) -> World {
    let mut world = World::new();
    world.accept((0..count).map(|n| heard_by(&eir(), &format!("e{n}"), &"x".repeat(500))).collect());
    world.store().sink_and_learn();
    world.accept(vec![heard_by(&eir(), "last", "in the journal")]);
    drop(world.store.take());
    world
}

fn holds_all(world: &World, count: usize) {
    assert_eq!(world.waiting(&eir()), (1..=count as u64 + 1).collect::<Vec<u64>>());
    let texts = world.store().deliveries(&eir(), &[1, count as u64 + 1]).unwrap();
    assert_eq!(texts.iter().map(|mail| mail.text.len()).collect::<Vec<_>>(), [500, 14]);
}

fn folders(world: &World) -> Vec<String> {
    let all = world.config().path.read_dir().unwrap();
    let mut all: Vec<String> =
        all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[test]
fn whenever_a_copying_is_cut_short_all_is_there_at_the_next_opening() {
    for cut in CUTS {
        let mut world = filled(300);
        cut_short(&world.config().path, cut, engine);
        world.reopen();
        holds_all(&world, 300);
        assert_eq!(folders(&world), ["lock", "sled"], "{cut:?}");
        world.accept(vec![heard_by(&eir(), "next", "after it")]);
        world.reopen();
        assert_eq!(world.waiting(&eir()).len(), 302, "{cut:?}");
    }
}

#[test]
fn files_that_have_become_too_large_are_written_anew_at_the_opening_after_the_close() {
    let mut world = World::new();
    // What comes and goes leaves its room behind.
    for round in 0..12 {
        let rows = (0..20).map(|n| (n, journal::noise(100_000 + round)));
        for (n, noise) in rows {
            let token = Some(String::from_utf8(noise).unwrap());
            let user = user(&format!("u{n}"));
            let row = IdentityRow { user, device: "D".to_owned(), token, profile: (None, None) };
            block(world.store().set_identity(row)).unwrap();
        }
    }
    for n in 0..20 {
        let row = IdentityRow {
            user: user(&format!("u{n}")),
            device: "D".to_owned(),
            token: None,
            profile: (None, None),
        };
        block(world.store().set_identity(row)).unwrap();
    }
    world.accept(vec![heard_by(&eir(), "a", "kept")]);
    let before = world.store().size().unwrap();
    assert!(before.is_large(), "{before:?}");
    world.reopen();
    assert!(world.store().size().unwrap().disk >= before.disk / 2, "a crash asks for nothing");
    block(world.store().close()).unwrap();
    world.reopen();
    let after = world.store().size().unwrap();
    assert!(!after.is_large() && after.disk * 3 < before.disk, "{before:?} {after:?}");
    assert_eq!(world.waiting(&eir()), [1]);
    assert_eq!(folders(&world), ["lock", "sled"]);
    block(world.store().close()).unwrap();
    world.reopen();
    assert_eq!(world.waiting(&eir()), [1]);
}

#[test]
fn a_row_that_changes_often_does_not_let_the_journal_grow() {
    let world = World::new();
    for round in 0..700 {
        let token = Some(String::from_utf8(journal::noise(5_000 + round)).unwrap());
        let row = IdentityRow { user: user("eir"), device: "D".to_owned(), token, profile: (None, None) };
        block(world.store().set_identity(row)).unwrap();
    }
    // Letters that mean nothing take a row of the journal each time; what has sunk goes at the next sinking.
    assert!((100..600).contains(&world.store().journal()), "{}", world.store().journal());
}

#[test]
fn what_is_copied_is_all_but_what_asked_for_it() {
    let world = filled(50);
    let path = world.config().path;
    let from = Base::open(engine(&path.join("sled")).unwrap()).unwrap();
    let to = tempfile::tempdir().unwrap();
    let db = engine(&to.path().join("sled")).unwrap();
    from.copy(&db, "writer").unwrap();
    let to = Base::open(db).unwrap();
    let (before, after) = (from.size().unwrap().live, to.size().unwrap().live);
    assert_eq!(before - after, ("writer".len() + env!("CARGO_PKG_VERSION").len()) as u64);
}
