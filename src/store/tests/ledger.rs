use std::time::Duration;

use super::*;
use crate::persona::session::{CacheVerdict, EntryKind, Request, Tokens, Ttl, Usd};

fn entry(at: u64, why: &str) -> Entry {
    Entry { persona: eir(), at: Millis(at), kind: EntryKind::Begun { generation: 1, why: why.to_owned() } }
}

fn write(world: &World, id: u128, entries: &[Entry]) {
    let books = Books { session: None, ledger: entries.to_vec() };
    block(world.store().write_turn(&eir(), turn(id, &[]), books)).unwrap();
}

fn told(store: &Store, since: u64) -> Vec<String> {
    let entries = store.ledger(Millis(since)).unwrap().into_iter();
    let why = |entry: Entry| match entry.kind {
        EntryKind::Begun { why, .. } => why,
        EntryKind::Request(request) => request.model,
        EntryKind::Ping { .. } | EntryKind::Probe { .. } | EntryKind::Warmth { .. } => String::new(),
    };
    entries.map(why).collect()
}

#[test]
fn entries_are_told_in_order_of_time_and_then_as_they_came() {
    let mut world = World::new();
    write(&world, 1, &[entry(20, "b"), entry(20, "c"), entry(10, "a")]);
    write(&world, 2, &[entry(20, "d"), entry(300, "e")]);
    world.look(|store| {
        assert_eq!(told(store, 0), ["a", "b", "c", "d", "e"]);
        assert_eq!(told(store, 20), ["b", "c", "d", "e"]);
        assert_eq!(told(store, 301), [""; 0]);
    });
}

#[test]
fn all_that_a_request_used_is_read_back() {
    let mut world = World::new();
    let request = Request {
        generation: 1,
        turn: 2,
        attempt: 3,
        number: 4,
        model: "m".to_owned(),
        tokens: Tokens { input: 5, read: 6, written_5m: 7, written_1h: 8, output: 9 },
        new: 10,
        expected: 11,
        gap: Some(Duration::from_millis(12)),
        ttl: Ttl::OneHour,
        verdict: CacheVerdict::Broken,
        money: Some(Usd(13)),
        first_token: Some(Duration::from_millis(14)),
        rss: Some(15),
        flush: Some("rental".to_owned()),
    };
    let written = Entry { persona: eir(), at: Millis(16), kind: EntryKind::Request(request) };
    write(&world, 1, std::slice::from_ref(&written));
    world.look(|store| assert_eq!(store.ledger(Millis(0)).unwrap(), std::slice::from_ref(&written)));
}

#[test]
fn an_end_writes_its_entries_and_a_turn_that_is_not_open_writes_none() {
    let mut world = World::new();
    write(&world, 1, &[]);
    let commit = |id: u128, why: &str| Commit { ledger: vec![entry(5, why)], ..plain(turn(id, &[]).id) };
    block(world.store().commit(commit(2, "not open"))).unwrap();
    block(world.store().commit(commit(1, "committed"))).unwrap();
    write(&world, 3, &[]);
    let books = Books { session: None, ledger: vec![entry(6, "held")] };
    block(world.store().hold(&eir(), turn(3, &[]), "refused".to_owned(), NOW, books)).unwrap();
    world.look(|store| assert_eq!(told(store, 0), ["committed", "held"]));
}

#[test]
fn what_is_old_is_forgotten() {
    let mut world = World::new();
    let many: Vec<Entry> = (0..2_500).map(|at| entry(at, "x")).collect();
    write(&world, 1, &many);
    assert_eq!(block(world.store().prune_ledger(Millis(2_400))).unwrap(), 2_400);
    assert_eq!(block(world.store().prune_ledger(Millis(2_400))).unwrap(), 0);
    world.look(|store| assert_eq!(told(store, 0).len(), 100));
}
