//! `[session]`: what is to become of sessions.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;
use super::file::{Apply, File, Flush, KeepWarm, OnRedaction};
use super::prices;
use super::reading::Reading;
use crate::bridge::Mind;
use crate::persona::Budget;
use crate::persona::session::care;
use crate::persona::session::{Policy, Prices};

/// For how long the files of earlier sessions are kept, unless the operator chose another time.
const ARCHIVE_KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// For how long it is kept what was heard and said last, unless the operator chose another time.
const TRANSCRIPT_KEEP: Duration = Duration::from_secs(7 * 24 * 3600);

/// Above this resident memory a mind is closed between turns, unless the operator chose another size: several times what one
/// was ever measured at.
const RECYCLE_RSS: u64 = 1 << 30;

/// The least resident memory above which a mind may be closed.
const LEAST_RSS: u64 = 1 << 20;
/// The watermarks that make sense: above the last the CLI itself refuses in a window of 200,000 tokens (0.88), below the first what
/// each session begins with fills it.
const WATERMARKS: RangeInclusive<f64> = 0.25..=0.85;

/// Reads what the operator chose.
pub(super) fn policy(file: &File, reading: &mut Reading<'_>) -> Policy {
    let apply = match file.session.apply.unwrap_or_default() {
        Apply::Cheap => care::Apply::AtCheapPoint,
        Apply::Now => care::Apply::Now,
    };
    let keep_warm = match file.session.keep_warm.unwrap_or_default() {
        KeepWarm::Off => care::KeepWarm::Off,
        KeepWarm::Auto => care::KeepWarm::Auto,
    };
    let on_redaction = match file.session.on_redaction.unwrap_or_default() {
        OnRedaction::Refresh => care::OnRedaction::Refresh,
        OnRedaction::Note => care::OnRedaction::Note,
    };
    let flush = match file.session.flush.unwrap_or_default() {
        Flush::Auto => care::Flushing::Auto,
        Flush::Off => care::Flushing::Off,
    };
    let recycle_rss = file.mind.recycle_rss.map_or(RECYCLE_RSS, |size| size.0);
    if recycle_rss < LEAST_RSS {
        let cause =
            "must be 1MiB at least: every process takes more, and each mind would be closed after its turn";
        reading.fail_as_example("mind.recycle_rss", cause);
    }
    let recycle_rss = Some(recycle_rss);
    let watermark = watermark(file, reading);
    Policy { keep_warm, flush, apply, on_redaction, watermark, recycle_rss }
}

/// What models cost: as shipped, under the operator's own file.
pub(super) fn prices(file: &File, reading: &mut Reading<'_>) -> Option<Prices> {
    const KEY: &str = "session.prices";
    let Some(named) = &file.session.prices else { return prices::shipped().ok() };
    let path = reading.path(named);
    let text = match Reading::text(&path) {
        Ok(text) => text,
        Err(error) => {
            reading.fail(KEY, format!("{}: {error}", path.display()), "name a price file that can be read");
            return None;
        }
    };
    match prices::with_own(&path, &text) {
        Ok(prices) => Some(prices),
        Err(ConfigError::Invalid(problems)) => {
            reading.problems.extend(problems);
            None
        }
        Err(error @ ConfigError::Read { .. }) => {
            reading.fail(KEY, error.to_string(), "name a price file that can be read");
            None
        }
    }
}

/// Looks whether the mind's model has a price: without one it costs nothing as far as `[budget]` sees.
pub(super) fn check_price(chosen: Option<(&Mind, &Prices)>, budget: &Budget, reading: &mut Reading<'_>) {
    const KEY: &str = "mind.claude.model";
    const REMEDY: &str =
        "name a model that has one, or give it a row in a file of your own: [session] prices";
    let Some((Mind::Claude(claude), prices)) = chosen else { return };
    if prices.find(&claude.model).is_some() {
        return;
    }
    let cause =
        format!("the price of the model `{}` is not known, so its money is not counted", claude.model);
    if budget.limits_days() || budget.per_turn.is_some() {
        reading.fail(KEY, format!("{cause} and no [budget] holds it"), REMEDY);
    } else {
        reading.warn(KEY, cause, REMEDY);
    }
}

/// For how long the files of earlier sessions are kept.
pub(super) fn archive_keep(file: &File) -> Duration {
    file.session.archive_keep.map_or(ARCHIVE_KEEP, |span| span.0)
}

/// For how long it is kept what was heard and said last.
pub(super) fn transcript_keep(file: &File) -> Duration {
    file.session.transcript_keep.map_or(TRANSCRIPT_KEEP, |span| span.0)
}

/// In hundredths.
fn watermark(file: &File, reading: &mut Reading<'_>) -> u64 {
    let Some(watermark) = file.session.watermark else { return care::WATERMARK };
    if !WATERMARKS.contains(&watermark) {
        let (least, most) = (WATERMARKS.start(), WATERMARKS.end());
        reading.fail_as_example("session.watermark", format!("must lie between {least} and {most}"));
        return care::WATERMARK;
    }
    (watermark * 100.0).round() as u64
}
