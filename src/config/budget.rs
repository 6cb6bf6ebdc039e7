//! `[budget]`.

use super::file::File;
use super::reading::Reading;
use crate::persona::Budget;
use crate::persona::session::Usd;

pub(super) fn budget(file: &File, reading: &mut Reading<'_>) -> Budget {
    let section = &file.budget;
    let mut amount = |key: &str, dollars: Option<f64>| {
        let dollars = dollars?;
        if !dollars.is_finite() || dollars < 0.0 {
            reading.fail_as_example(&format!("budget.{key}"), "must be an amount of dollars");
            return None;
        }
        Some(Usd::of_dollars(dollars))
    };
    Budget {
        per_day: amount("per_day", section.per_day),
        per_persona_per_day: amount("per_persona_per_day", section.per_persona_per_day),
        per_turn: amount("per_turn", section.per_turn),
        courtesy: section.courtesy.unwrap_or(false),
    }
}
