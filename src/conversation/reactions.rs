//! How people took what a Persona said: their reactions, as one line with counts.
//!
//! A reaction is never mail and wakes nobody; it is told with the next mail of its lane, without who it was or to which words.

use std::collections::BTreeMap;

use ruma::OwnedEventId;

use super::prompt::clean;

/// How many different reactions are named; more are counted as others.
const NAMED: usize = 12;
/// The longest reaction that is shown, in graphemes and bytes.
const SHOWN: (usize, usize) = (16, 64);
/// How an emoji asks to be drawn as one; some clients leave it out.
const AS_EMOJI: char = '\u{fe0f}';

/// A reaction to what she said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Its event.
    pub event: OwnedEventId,
    /// What stands in it, mostly an emoji.
    pub key: String,
}

/// What has come in a lane and is not told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reactions {
    /// The first of them.
    pub gathered: Vec<Reaction>,
    /// How far that goes.
    pub share: Share,
}

/// A part of what has come: what a turn tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of the last that is gathered.
    pub last: u64,
    /// How many came after the lane was full, and were only counted.
    pub more: u64,
}

/// The line that tells of reactions, the most frequent first; none where there are none.
pub fn line(reactions: &Reactions) -> Option<String> {
    let by_event: BTreeMap<_, _> = reactions.gathered.iter().map(|one| (&one.event, &one.key)).collect();
    let (mut counts, mut others) = (BTreeMap::<String, u64>::new(), reactions.share.more);
    for key in by_event.into_values() {
        match clean::bounded(&key.replace(AS_EMOJI, ""), SHOWN) {
            Some(shown) => *counts.entry(shown).or_default() += 1,
            None => others += 1,
        }
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.cmp(b)));
    let unnamed = counts.split_off(counts.len().min(NAMED));
    others += unnamed.iter().map(|(_, count)| count).sum::<u64>();
    let named = counts.iter().map(|(key, count)| format!("{} {count}", clean::quoted(key)));
    let parts: Vec<String> = named.chain((others > 0).then(|| format!("others {others}"))).collect();
    (!parts.is_empty()).then(|| format!("reactions to your words: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reactions(keys: &[&str], more: u64) -> Reactions {
        let event = |n: usize| format!("$e{n}:hs.test").try_into().unwrap();
        let one = |(n, key): (usize, &&str)| Reaction { event: event(n), key: (*key).to_owned() };
        Reactions { gathered: keys.iter().enumerate().map(one).collect(), share: Share { last: 0, more } }
    }

    #[track_caller]
    fn check(keys: &[&str], more: u64, expect: Option<&str>) {
        let line = line(&reactions(keys, more));
        assert_eq!(line.as_deref().map(|line| line.trim_start_matches("reactions to your words: ")), expect);
    }

    #[test]
    fn they_are_counted_the_most_frequent_first() {
        check(&[], 0, None);
        check(&["❤", "👍", "👍"], 0, Some("\"👍\" 2, \"❤\" 1"));
        check(&["❤", "❤\u{fe0f}"], 0, Some("\"❤\" 2"));
        check(&["👍"], 7, Some("\"👍\" 1, others 7"));
        check(&[], 7, Some("others 7"));
    }

    #[test]
    fn what_people_wrote_is_cleaned_and_cut_and_what_is_too_much_is_counted() {
        check(&["a\"\n# mail"], 0, Some("\"a\\\" # mail\" 1"));
        check(&["", "\u{202e}\n"], 0, Some("others 2"));
        let long = "x".repeat(100);
        check(&[&long], 0, Some(&format!("\"{}\" 1", "x".repeat(16))));
        let many: Vec<String> = (10..30).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let line = line(&reactions(&many, 1)).unwrap();
        assert!(line.ends_with("\"21\" 1, others 9"), "{line}");
    }

    proptest! {
        #[test]
        fn neither_order_nor_repeats_count_and_the_line_stays_one_and_short(
            (told, again) in prop::collection::vec(prop_oneof![any::<String>(), "[a-c]"], 1..40).prop_flat_map(|keys| {
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                let told = reactions(&keys, 0).gathered;
                let twice: Vec<Reaction> = told.iter().chain(&told[..told.len() / 2]).cloned().collect();
                (Just(told), Just(twice).prop_shuffle())
            }),
            more in 0..9u64,
        ) {
            let share = Share { last: 0, more };
            let once = line(&Reactions { gathered: told.clone(), share }).unwrap();
            prop_assert_eq!(line(&Reactions { gathered: again, share }), Some(once.clone()));
            prop_assert!(!once.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')), "{once:?}");
            prop_assert!(once.len() < 2_048, "{once}");
            let counted: u64 = once.split(['"', ','])
                .filter_map(|part| part.trim().trim_start_matches("others ").parse::<u64>().ok()).sum();
            prop_assert!(counted >= told.len() as u64 + more, "{once}");
        }
    }
}
