use std::time::Duration;

use serde_json::json;

use super::*;
use crate::persona::session::Ttl;

fn request(turn: u64, number: u32, read: u64, verdict: CacheVerdict, money: Option<u64>) -> EntryKind {
    EntryKind::Request(Request {
        generation: 1,
        turn,
        attempt: 1,
        number,
        model: "m".into(),
        tokens: Tokens { read, written_1h: 1_000 - read, output: 7, ..Tokens::default() },
        new: 100,
        expected: read,
        gap: Some(Duration::from_secs(1)),
        ttl: Ttl::OneHour,
        verdict,
        money: money.map(Usd),
        first_token: None,
        rss: Some((turn * 100) << 20),
        flush: None,
    })
}

fn entry(persona: &str, at: u64, kind: EntryKind) -> Entry {
    Entry { persona: PersonaId(persona.into()), at: Millis(at), kind }
}

fn ledger() -> Ledger {
    let begun = |generation, why: &str| EntryKind::Begun { generation, why: why.into() };
    let entries = [
        entry("eir", 5, request(1, 1, 0, CacheVerdict::First, Some(9))),
        entry("eir", 10, request(2, 1, 900, CacheVerdict::Hit, Some(40_000_000))),
        entry("eir", 10, request(2, 2, 950, CacheVerdict::Hit, None)),
        entry("eir", 10, begun(1, "first")),
        entry("eir", 12, begun(2, "rental")),
        entry("brage", 11, request(2, 1, 100, CacheVerdict::Broken, Some(2_000_000))),
    ];
    sum(&entries, Millis(10))
}

#[test]
fn what_is_older_is_left_out_and_a_turn_is_counted_once() {
    let ledger = ledger();
    let eir = &ledger.personas[&PersonaId("eir".into())];
    assert_eq!((eir.turns, eir.requests, eir.unpriced), (1, 2, 1));
    assert_eq!((eir.tokens.read, eir.tokens.prompt(), eir.hit_ratio()), (1_850, 2_000, 925));
    assert_eq!(eir.refreshes, [("rental".to_owned(), 1)].into());
}

#[test]
fn attempts_at_a_turn_are_told_apart_from_turns_also_where_a_session_ended_between() {
    let of = |generation, attempt| {
        let EntryKind::Request(request) = request(3, 1, 0, CacheVerdict::Hit, None) else { unreachable!() };
        EntryKind::Request(Request { generation, attempt, ..request })
    };
    let kinds = [of(1, 1), of(1, 2), of(2, 3), request(4, 1, 0, CacheVerdict::Hit, None)];
    let ledger = sum(&kinds.map(|kind| entry("eir", 1, kind)), Millis(0));
    let eir = &ledger.personas[&PersonaId("eir".into())];
    assert_eq!((eir.turns, eir.attempts, eir.requests), (2, 4, 4));
    assert!(text(&ledger).starts_with("eir: 2 turns (2 tried again), 4 requests, "));
}

#[test]
fn pings_are_weighed_by_idle_period() {
    let ping = |money| EntryKind::Ping {
        generation: 1,
        tokens: Tokens { read: 100, ..Tokens::default() },
        money: Some(Usd(money)),
    };
    let warmth =
        |paid, saved| EntryKind::Warmth { generation: 1, pings: 1, paid: Usd(paid), saved: Usd(saved) };
    let kinds = [ping(3), warmth(3, 10), ping(3), ping(3), warmth(6, 0)];
    let ledger = sum(&kinds.map(|kind| entry("eir", 1, kind)), Millis(0));
    let eir = &ledger.personas[&PersonaId("eir".into())];
    assert_eq!((eir.pings, eir.saved, eir.lost), (3, Usd(7), Usd(6)));
    assert_eq!((eir.money, eir.tokens.read, eir.requests, eir.turns), (Usd(9), 300, 0, 0));
    assert!(text(&ledger).contains("  pings   3, which saved 0.0000 USD and lost 0.0000 USD\n"));
}

#[test]
fn flushes_are_counted_by_themselves() {
    let flush = |number, money| {
        let EntryKind::Request(request) = request(2, number, 900, CacheVerdict::Hit, money) else {
            unreachable!()
        };
        EntryKind::Request(Request { flush: Some("rental".into()), ..request })
    };
    let kinds = [request(1, 1, 900, CacheVerdict::Hit, Some(5)), flush(1, Some(3)), flush(2, Some(4))];
    let ledger = sum(&kinds.map(|kind| entry("eir", 1, kind)), Millis(0));
    let eir = &ledger.personas[&PersonaId("eir".into())];
    assert_eq!((eir.turns, eir.requests, eir.money), (1, 3, Usd(12)));
    assert_eq!((eir.flushes.clone(), eir.flushed), ([("rental".to_owned(), 1)].into(), Usd(7)));
    assert!(text(&ledger).contains("  flush   1 rental, 0.0000 USD\n"));
}

#[test]
fn probes_are_counted_by_themselves() {
    let probe = |answered| EntryKind::Probe { tokens: Tokens::default(), money: Some(Usd(4)), answered };
    let ledger = sum(&[false, true].map(|answered| entry("ACCOUNT", 1, probe(answered))), Millis(0));
    let sum = &ledger.personas[&PersonaId("ACCOUNT".into())];
    assert_eq!((sum.probes, sum.money, sum.turns, sum.requests), (2, Usd(8), 0, 0));
    assert!(text(&ledger).contains("  probes  2 of a refused account\n"));
}

#[test]
fn it_reads_as_text() {
    let expected = "\
brage: 1 turns, 1 requests, 0.0020 USD
  tokens  100 read from the cache (10.0 %), 900 written, 0 uncached, 7 output
  cache   1 broken
  refresh none
  memory  200 MiB at most
eir: 1 turns, 2 requests, 0.0400 USD, and 1 requests of unknown price
  tokens  1850 read from the cache (92.5 %), 150 written, 0 uncached, 14 output
  cache   2 hit
  refresh 1 rental
  memory  200 MiB at most
";
    assert_eq!(text(&ledger()), expected);
    assert_eq!(text(&Ledger::default()), "nothing was asked in that time\n");
}

#[test]
fn it_reads_as_json() {
    let found = json(&ledger());
    assert_eq!(found["since"], json!(10));
    let expected = json!({
        "turns": 1,
        "attempts": 1,
        "requests": 1,
        "tokens": {"input": 0, "cache_read": 100, "cache_written_5m": 0, "cache_written_1h": 900, "output": 7},
        "expected": 100,
        "hit_ratio": 0.1,
        "verdicts": {"broken": 1},
        "money": 0.002,
        "unpriced": 0,
        "refreshes": {},
        "flushes": {"reasons": {}, "money": 0.0},
        "pings": {"count": 0, "saved": 0.0, "lost": 0.0},
        "probes": 0,
        "rss": 200 << 20,
    });
    assert_eq!(found["personas"]["brage"], expected);
}
