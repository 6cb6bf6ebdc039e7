//! What ours is compared with.

use std::time::Duration;

use super::{Scene, Sharing, Turn};
use crate::persona::session::care::{Policy, Reason, must_end};
use crate::persona::session::price::{Tokens, Usd};

/// A process for each turn, which is given lines of context for each delivery and forgets all.
pub(super) fn fresh(turns: &[Turn], scene: &Scene<'_>) -> Usd {
    let assumed = scene.assumed;
    let mut last = None;
    let mut cost = Usd::default();
    for turn in turns {
        let is_warm = last.replace(turn.at).is_some_and(|last| turn.at - last < scene.ttl.duration());
        let read = if is_warm && assumed.sharing == Sharing::Shared { assumed.fixed } else { 0 };
        let context = turn.deliveries * assumed.lines * assumed.line;
        let written = assumed.fixed - read + context + turn.added.mail;
        let tokens = Tokens { read, output: turn.added.reply, ..Tokens::default() };
        cost += scene.price.cost(&tokens.written(written, scene.ttl));
    }
    cost
}

/// One session that is resumed however cold it is, until the window is full.
pub(super) fn append(turns: &[Turn], scene: &Scene<'_>, policy: &Policy) -> Usd {
    let terms = scene.terms();
    let mut session: Option<(Duration, u64)> = None;
    let mut cost = Usd::default();
    for turn in turns {
        let (added, grown) = (turn.added, turn.added.tokens());
        let is_warm = |last: Duration| turn.at - last < scene.ttl.duration();
        let is_full = |prefix| {
            must_end(&terms, scene.price.window, policy.watermark, prefix, grown) == Some(Reason::Watermark)
        };
        let prefix = match session {
            None => {
                cost += terms.refresh_cold(added);
                terms.rehydrated
            }
            Some((last, prefix)) if is_full(prefix) => {
                cost += if is_warm(last) { terms.refresh_warm(added) } else { terms.refresh_cold(added) };
                terms.rehydrated
            }
            Some((last, prefix)) => {
                cost += if is_warm(last) { terms.warm(prefix, added) } else { terms.cold(prefix, added) };
                prefix
            }
        };
        session = Some((turn.at, prefix + grown));
    }
    cost
}
