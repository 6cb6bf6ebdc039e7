//! The sums as operators see them.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Ledger, Sum};

/// As JSON: `{"since", "personas": {ID: {"turns", "attempts", "requests", "tokens": {…}, "hit_ratio", "verdicts": {…}, "money",
/// "unpriced", "refreshes": {REASON: COUNT}, "flushes": {"reasons": {REASON: COUNT}, "money"}, "pings": {"count", "saved",
/// "lost"}, "probes", "rss"}}}`; money in USD, times in milliseconds since 1970, `rss` the most resident memory of her
/// mind while it answered, in bytes.
pub fn json(ledger: &Ledger) -> Value {
    let personas = ledger.personas.iter().map(|(id, sum)| (id.to_string(), of(sum)));
    json!({ "since": ledger.since.0, "personas": personas.collect::<serde_json::Map<_, _>>() })
}

fn of(sum: &Sum) -> Value {
    let tokens = &sum.tokens;
    let verdicts = sum.verdicts.iter().map(|(verdict, count)| (verdict.name().to_owned(), json!(count)));
    json!({
        "turns": sum.turns,
        "attempts": sum.attempts,
        "requests": sum.requests,
        "tokens": {
            "input": tokens.input,
            "cache_read": tokens.read,
            "cache_written_5m": tokens.written_5m,
            "cache_written_1h": tokens.written_1h,
            "output": tokens.output,
        },
        "expected": sum.expected,
        "hit_ratio": f64::from(u32::try_from(sum.hit_ratio()).unwrap_or(u32::MAX)) / 1_000.0,
        "verdicts": verdicts.collect::<serde_json::Map<_, _>>(),
        "money": sum.money.dollars(),
        "unpriced": sum.unpriced,
        "refreshes": sum.refreshes,
        "flushes": { "reasons": sum.flushes, "money": sum.flushed.dollars() },
        "pings": { "count": sum.pings, "saved": sum.saved.dollars(), "lost": sum.lost.dollars() },
        "probes": sum.probes,
        "rss": sum.resident,
    })
}

/// As text, some lines a Persona.
pub fn text(ledger: &Ledger) -> String {
    let mut text = String::new();
    for (id, sum) in &ledger.personas {
        paragraph(&mut text, &id.to_string(), sum);
    }
    if text.is_empty() {
        text.push_str("nothing was asked in that time\n");
    }
    text
}

fn paragraph(text: &mut String, id: &str, sum: &Sum) {
    let tokens = &sum.tokens;
    let (whole, tenths) = (sum.hit_ratio() / 10, sum.hit_ratio() % 10);
    let unpriced = match sum.unpriced {
        0 => String::new(),
        count => format!(", and {count} requests of unknown price"),
    };
    let again = match sum.attempts.saturating_sub(sum.turns) {
        0 => String::new(),
        count => format!(" ({count} tried again)"),
    };
    let _ = writeln!(
        text,
        "{id}: {} turns{again}, {} requests, {}{unpriced}",
        sum.turns, sum.requests, sum.money
    );
    let _ = writeln!(
        text,
        "  tokens  {} read from the cache ({whole}.{tenths} %), {} written, {} uncached, {} output",
        tokens.read,
        tokens.written_5m + tokens.written_1h,
        tokens.input,
        tokens.output
    );
    let verdicts = sum.verdicts.iter().map(|(verdict, count)| format!("{count} {}", verdict.name()));
    let _ = writeln!(text, "  cache   {}", or_none(&verdicts.collect::<Vec<_>>()));
    let refreshes = sum.refreshes.iter().map(|(why, count)| format!("{count} {why}"));
    let _ = writeln!(text, "  refresh {}", or_none(&refreshes.collect::<Vec<_>>()));
    if !sum.flushes.is_empty() {
        let flushes = sum.flushes.iter().map(|(why, count)| format!("{count} {why}")).collect::<Vec<_>>();
        let _ = writeln!(text, "  flush   {}, {}", flushes.join(", "), sum.flushed);
    }
    if sum.resident > 0 {
        let _ = writeln!(text, "  memory  {} MiB at most", sum.resident >> 20);
    }
    if sum.probes > 0 {
        let _ = writeln!(text, "  probes  {} of a refused account", sum.probes);
    }
    if sum.pings > 0 {
        let _ = writeln!(text, "  pings   {}, which saved {} and lost {}", sum.pings, sum.saved, sum.lost);
    }
}

fn or_none(parts: &[String]) -> String {
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}
