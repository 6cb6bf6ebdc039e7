//! `[heart]`.

use std::time::Duration;

use super::file::File;
use super::reading::Reading;
use crate::persona::Heart;

pub(super) fn heart(file: &File, reading: &mut Reading<'_>) -> Heart {
    let (section, shipped) = (&file.heart, Heart::default());
    let span = |span: Option<super::units::Span>, shipped: Duration| span.map_or(shipped, |span| span.0);
    let heart = Heart {
        beat: span(section.beat, shipped.beat),
        beat_min: span(section.beat_min, shipped.beat_min),
        beat_max: span(section.beat_max, shipped.beat_max),
        cooldown: span(section.cooldown, shipped.cooldown),
        wake_on_silence: section.wake_on_silence.unwrap_or(shipped.wake_on_silence),
        wakes_per_day: section.wakes_per_day.unwrap_or(shipped.wakes_per_day),
    };
    if heart.beat_min < Duration::from_millis(100) {
        reading.fail("heart.beat_min", "would let the beat race", "write \"100ms\" at least");
    }
    if heart.beat_max < heart.beat_min {
        reading.fail("heart.beat_max", "is shorter than heart.beat_min", "make it at least as long");
    } else if !(heart.beat_min..=heart.beat_max).contains(&heart.beat) {
        let remedy = "write one from heart.beat_min to heart.beat_max, or set those, too";
        reading.fail("heart.beat", "lies outside its bounds", remedy);
    }
    heart
}
