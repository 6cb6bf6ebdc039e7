//! `simulate`, as operators meet it, on the traces that are shipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::tools::aloud;

const TRACES: [&str; 5] = ["poisson-10", "poisson-100", "poisson-1000", "bursty", "week"];
const TTLS: [&str; 2] = ["1h", "5m"];
const GOAL: f64 = 1.15;
const MOST: f64 = 1.5;

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config/traces").join(format!("{name}.trace"))
}

fn simulate(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_persona-bridge"));
    let Output { status, stdout, stderr } = command.arg("simulate").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn report(arguments: &[&str]) -> Value {
    let (code, out, err) = simulate(&[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

fn on(name: &str, model: &str, ttl: &str) -> Value {
    report(&["--trace", trace(name).to_str().unwrap(), "--model", model, "--ttl", ttl])
}

fn cost(report: &Value, way: &str) -> f64 {
    report["cost"][way].as_f64().unwrap_or_else(|| panic!("{way}: {report}"))
}

#[track_caller]
fn refused(arguments: &[&str], code: i32, says: &[&str]) {
    let (ended, out, err) = simulate(arguments);
    assert_eq!((ended, out.as_str()), (code, ""), "{arguments:?}: {err}");
    for words in says {
        assert!(err.contains(words), "{words}: {err}");
    }
}

#[test]
fn each_shipped_trace_costs_what_it_did() {
    for name in TRACES {
        for ttl in TTLS {
            let report = on(name, "claude-sonnet-4-6", ttl);
            insta::assert_snapshot!(format!("{name}-{ttl}"), format!("{report:#}"));
        }
    }
}

#[test]
fn ours_is_near_the_optimum_on_each_shipped_trace() {
    for name in TRACES {
        for (model, ttl) in
            [("claude-opus-5-5", "1h"), ("claude-sonnet-4-6", "1h"), ("claude-sonnet-4-6", "5m")]
        {
            let report = on(name, model, ttl);
            for (ours, optimum) in [("ours", "optimum"), ("ours_warm", "optimum_warm")] {
                let ratio = cost(&report, ours) / cost(&report, optimum);
                let missed = if ratio > GOAL { ", the goal of 1.15 is missed" } else { "" };
                aloud(&format!("{name}, {model}, {ttl}: {ours} / {optimum} {ratio:.3}{missed}"));
                assert!((1.0..=MOST).contains(&ratio), "{name} {model} {ttl} {ours}: {ratio}");
            }
        }
    }
}

#[test]
fn ours_is_cheaper_than_a_process_a_turn_where_there_is_talk() {
    for model in
        ["claude-opus-5-5", "claude-sonnet-4-6", "claude-sonnet-5-5", "claude-haiku-4-5", "claude-haiku-5-5"]
    {
        for (turns, deliveries, days) in [("100", "3", "3"), ("100", "8", "3"), ("1000", "3", "1")] {
            let drawn = ["--poisson", turns, "--deliveries", deliveries, "--days", days];
            let report = report(&[&drawn[..], &["--model", model, "--ttl", "1h"]].concat());
            let (ours, fresh) = (cost(&report, "ours"), cost(&report, "fresh"));
            assert!(ours < fresh, "{model}, {turns} turns of {deliveries}: {ours} {fresh}");
        }
    }
}

#[test]
fn json_has_the_keys_that_scripts_read() {
    let report = report(&["--poisson", "10", "--model", "opus", "--ttl", "5m"]);
    let keys: Vec<&String> = report["cost"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["append", "fresh", "optimum", "optimum_warm", "ours", "ours_warm"]);
    assert!(report["refreshes"].is_u64() && report["pings"].is_u64());
}

#[test]
fn the_same_seed_draws_the_same_and_another_another() {
    let drawn = |seed| report(&["--poisson", "50", "--model", "sonnet", "--ttl", "1h", "--seed", seed]);
    assert_eq!(drawn("3"), drawn("3"));
    assert_ne!(drawn("3"), drawn("4"));
}

#[test]
fn assumptions_are_printed_and_can_be_changed() {
    let usual = ["--poisson", "100", "--model", "claude-opus-5-5", "--ttl", "1h"];
    let (code, out, _) = simulate(&usual);
    assert_eq!(code, 0);
    for words in [
        "static prefix 12000 (shared by sessions)",
        "after a rehydration 15900",
        "a delivery 80",
        "a reply 250",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (_, other, _) = simulate(&[&usual[..], &["--rewrite-static", "--reply-tokens", "500"]].concat());
    assert!(other.contains("written anew by each session") && other.contains("a reply 500"), "{other}");
    assert_ne!(out, other);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_what_to_do() {
    refused(&["--model", "opus", "--ttl", "1h"], 2, &["--trace <FILE>"]);
    refused(
        &["--poisson", "1", "--trace", "x", "--model", "opus", "--ttl", "1h"],
        2,
        &["cannot be used with"],
    );
    refused(&["--poisson", "1", "--model", "opus", "--ttl", "2h"], 2, &["5m, 1h"]);
    refused(
        &["--poisson", "1", "--model", "gpt-6", "--ttl", "1h"],
        2,
        &["--model gpt-6: no price is known; write one of: claude-opus-5-5, "],
    );
    refused(
        &["--trace", "no/such.trace", "--model", "opus", "--ttl", "1h"],
        1,
        &["persona-bridge: no/such.trace: ", "; name a readable file of arrivals"],
    );
    refused(
        &["--poisson", "1", "--model", "haiku", "--ttl", "1h", "--static-tokens", "500"],
        2,
        &["claude-haiku-5-5 caches no prompt below 512 tokens; write at least that"],
    );
    refused(
        &["--poisson", "1", "--model", "haiku", "--ttl", "1h", "--static-tokens", "16000"],
        2,
        &["the static prefix is a part of the rehydrated one; write 15900 or less"],
    );
}
