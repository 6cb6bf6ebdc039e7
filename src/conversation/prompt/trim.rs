//! A long text in part: its head and its tail.

use unicode_segmentation::UnicodeSegmentation;

/// What stands where characters are left out.
const GAP: &str = "\n[…]\n";

/// Whether a text is shown in part.
pub(super) fn is_part(text: &str, over: usize) -> bool {
    text.len() > over
}

/// The head and the tail of a text, about half of `over` each, and how many characters are left out between them; cut
/// between graphemes.
pub(super) fn trimmed(text: &str, over: usize) -> (String, usize) {
    let half = over / 2;
    let head = boundaries(text).take_while(|at| *at <= half).last().unwrap_or(0);
    let tail = boundaries(text).find(|at| text.len() - at <= half).unwrap_or(text.len());
    let left_out = text[head..tail].chars().count();
    (format!("{}{GAP}{}", &text[..head], &text[tail..]), left_out)
}

fn boundaries(text: &str) -> impl Iterator<Item = usize> {
    text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn head_and_tail_are_shown_and_the_rest_is_counted() {
        assert_eq!(trimmed("0123456789", 4), ("01\n[…]\n89".into(), 6));
        assert_eq!(trimmed(&"e\u{301}".repeat(5), 9), ("e\u{301}\n[…]\ne\u{301}".into(), 6));
        assert!(is_part("012", 2) && !is_part("01", 2));
    }

    proptest! {
        #[test]
        fn what_is_shown_and_what_is_left_out_is_the_whole(text in "(\\PC|e\u{301}|👩\u{200d}🚀|\n){0,60}", over in 0..120_usize) {
            prop_assume!(is_part(&text, over));
            let (shown, left_out) = trimmed(&text, over);
            prop_assert!(shown.len() <= over + GAP.len());
            let kept = shown.chars().count() - GAP.chars().count();
            prop_assert_eq!(kept + left_out, text.chars().count());
            let fits = text.match_indices("").map(|(at, _)| at).any(|at| {
                let head = &text[..at];
                shown.strip_prefix(head).and_then(|rest| rest.strip_prefix(GAP)).is_some_and(|tail| text.ends_with(tail))
            });
            prop_assert!(fits, "{:?}", shown);
            let graphemes: Vec<usize> = boundaries(&text).collect();
            let cut = shown.find(GAP).unwrap_or(0);
            prop_assert!(graphemes.contains(&cut) || text[..cut].contains(GAP));
        }
    }
}
