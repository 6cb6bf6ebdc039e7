//! Where a text that is too long may be cut: between blocks, else lines, sentences, words, graphemes.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use unicode_segmentation::UnicodeSegmentation;

use super::html::OPTIONS;

/// How far around the target a border within a line is looked for, in bytes.
const WINDOW: usize = 4096;

/// The longest line that opens a code block and is repeated as it is, in bytes.
const OPENING_MAX: usize = 200;

/// Cuts a text in two at the best border, the nearest to `target`; a code block that is cut is closed and re-opened.
///
/// Both halves are shorter than the text, so that cutting comes to an end. `None` where there is nothing to cut.
pub(super) fn cut(text: &str, target: usize) -> Option<(String, String)> {
    let layout = Layout::read(text);
    let at = border(text, target, &layout, Layout::is_good)
        .or_else(|| border(text, target, &layout, Layout::is_possible))?;
    Some(match layout.fence_at(at) {
        Some(fence) => fence.halves(text, at),
        None if text[..at].ends_with('\n') => {
            (text[..at].trim_end().to_owned(), text[at..].trim_start_matches(['\r', '\n']).to_owned())
        }
        None => (text[..at].trim_end().to_owned(), text[at..].trim_start().to_owned()),
    })
}

fn border(
    text: &str,
    target: usize,
    layout: &Layout,
    may_cut: fn(&Layout, &str, usize) -> bool,
) -> Option<usize> {
    let first = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    let nearest = |borders: &mut dyn Iterator<Item = usize>| {
        borders
            .filter(|at| first < *at && *at < end && may_cut(layout, text, *at))
            .min_by_key(|at| at.abs_diff(target))
    };
    let from = text.floor_char_boundary(target.saturating_sub(WINDOW));
    let near = &text[from..text.floor_char_boundary(target.saturating_add(WINDOW))];
    // The first border in the window is the window's own.
    let within = |at: (usize, &str)| (at.0 > 0).then_some(from + at.0);
    nearest(&mut layout.blocks.iter().copied())
        .or_else(|| nearest(&mut text.match_indices('\n').map(|(at, _)| at + 1)))
        .or_else(|| nearest(&mut near.split_sentence_bound_indices().filter_map(within)))
        .or_else(|| nearest(&mut near.match_indices(char::is_whitespace).map(|(at, c)| from + at + c.len())))
        .or_else(|| nearest(&mut near.split_word_bound_indices().filter_map(within)))
        .or_else(|| nearest(&mut near.grapheme_indices(true).filter_map(within)))
        .or_else(|| nearest(&mut text.char_indices().map(|(at, _)| at)))
}

/// The blocks and fenced code blocks of a text.
struct Layout {
    blocks: Vec<usize>,
    fences: Vec<Fence>,
}

impl Layout {
    fn read(text: &str) -> Self {
        let mut layout = Self { blocks: Vec::new(), fences: Vec::new() };
        let mut depth = 0_usize;
        for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
            if matches!(event, Event::End(_)) {
                depth = depth.saturating_sub(1);
                continue;
            }
            if depth == 0 {
                layout.blocks.push(line_start(text, range.start));
            }
            depth += usize::from(matches!(event, Event::Start(_)));
            if matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))) {
                layout.fences.extend(Fence::read(text, range));
            }
        }
        layout
    }

    fn fence_at(&self, at: usize) -> Option<&Fence> {
        let before = self.fences.partition_point(|fence| fence.whole.start < at);
        self.fences[..before].last().filter(|fence| at < fence.whole.end)
    }

    /// Whether both halves have something to show: never within the lines of a fence, nor right at one from within.
    fn is_good(&self, text: &str, at: usize) -> bool {
        self.fence_at(at).is_none_or(|fence| fence.shortens(text, at) && fence.halves_show(text, at))
    }

    /// Whether both halves become shorter, even if one shows nothing but blank lines.
    fn is_possible(&self, text: &str, at: usize) -> bool {
        let is_line = text[..at].ends_with('\n');
        self.fence_at(at).is_none_or(|fence| fence.shortens(text, at) && (is_line || fence.prefix.is_empty()))
    }
}

/// A fenced code block.
struct Fence {
    whole: Range<usize>,
    /// What stands between its fences, without the newline before the closing one.
    code: Range<usize>,
    /// What stands before it in its line: quotation marks, and blanks in place of anything else.
    prefix: String,
    opening: String,
    closing: String,
}

impl Fence {
    /// `None` where its opening line is too long to be repeated; it is then cut like any text.
    fn read(text: &str, range: Range<usize>) -> Option<Self> {
        let whole = range.start..range.start + text[range.clone()].trim_end_matches('\n').len();
        let block = &text[whole.clone()];
        let before = &text[line_start(text, whole.start)..whole.start];
        let prefix: String = before.chars().map(|c| if matches!(c, '>' | '\t') { c } else { ' ' }).collect();
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        let opening = format!("{prefix}{}", first.trim_end());
        if opening.len() > OPENING_MAX {
            return None;
        }
        let sign = first.trim_start().chars().next()?;
        let fence: String = first.trim_start().chars().take_while(|c| *c == sign).collect();
        let last = rest.rsplit_once('\n').map_or(rest, |(_, last)| last);
        let is_closed = is_closing(last, sign, fence.len());
        let code = whole.start + first.len() + 1..whole.end - if is_closed { last.len() + 1 } else { 0 };
        Some(Self { whole, code, closing: format!("{prefix}{fence}"), prefix, opening })
    }

    /// Whether a cut lies in the code and takes more from both halves than repeating the fences adds.
    fn shortens(&self, text: &str, at: usize) -> bool {
        let is_in_code = self.code.start < at && at < self.code.end;
        let reopened = self.opening.len() + 1 + self.prefix.len();
        is_in_code && reopened < at && self.closing.len() + 1 < text.len() - at
    }

    fn halves_show(&self, text: &str, at: usize) -> bool {
        let shows = |code: &str| code.contains(|c: char| !c.is_whitespace() && !self.prefix.contains(c));
        shows(&text[self.code.start..at]) && shows(&text[at..self.code.end])
    }

    fn halves(&self, text: &str, at: usize) -> (String, String) {
        let (first, second) = text.split_at(at);
        let prefix = if first.ends_with('\n') { "" } else { self.prefix.as_str() };
        let first = first.strip_suffix('\n').unwrap_or(first);
        (format!("{first}\n{}", self.closing), format!("{}\n{prefix}{second}", self.opening))
    }
}

fn is_closing(line: &str, sign: char, len: usize) -> bool {
    let fence = line.trim_start_matches([' ', '\t', '>']).trim_end();
    fence.chars().all(|c| c == sign) && fence.chars().count() >= len
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, target: usize, expect: Option<(&str, &str)>) {
        let halves = cut(text, target);
        let halves = halves.as_ref().map(|(first, second)| (first.as_str(), second.as_str()));
        assert_eq!(halves, expect, "{text}");
    }

    #[test]
    fn blocks_go_before_lines_lines_before_sentences() {
        check("one\ntwo\n\nthree. four", 0, Some(("one\ntwo", "three. four")));
        check("# head\ntext", 9, Some(("# head", "text")));
        check("- a\n- b\n\ntext", 2, Some(("- a\n- b", "text")));
        check("one two. three\nfour", 2, Some(("one two. three", "four")));
        check("One two. Three four.", 3, Some(("One two.", "Three four.")));
        check("one two three", 12, Some(("one two", "three")));
        check("one,two", 3, Some(("one", ",two")));
        check("日本語です", 6, Some(("日本", "語です")));
        check("abcdef", 4, Some(("abcd", "ef")));
    }

    #[test]
    fn the_nearest_border_is_taken() {
        let text = "a\n\nb\n\nc\n\nd";
        check(text, 3, Some(("a", "b\n\nc\n\nd")));
        check(text, 7, Some(("a\n\nb", "c\n\nd")));
        check(text, 100, Some(("a\n\nb\n\nc", "d")));
    }

    #[test]
    fn a_single_sign_cannot_be_cut() {
        for text in ["", "a", "  a  ", "```", "```rust\n```", "```\na\n```"] {
            check(text, text.len() / 2, None);
        }
    }

    #[test]
    fn a_grapheme_is_cut_only_where_there_is_no_other_way() {
        check("👨‍👩‍👧👨‍👩‍👧", 10, Some(("👨‍👩‍👧", "👨‍👩‍👧")));
        check("e\u{301}", 1, Some(("e", "\u{301}")));
    }

    #[test]
    fn a_code_block_that_is_cut_is_closed_and_reopened() {
        check("```rust\na\nb\n```", 10, Some(("```rust\na\n```", "```rust\nb\n```")));
        check("~~~~ x y\nab\n\nabcde", 12, Some(("~~~~ x y\nab\n~~~~", "~~~~ x y\n\nabcde")));
        check("```\na b\n```", 6, Some(("```\na \n```", "```\nb\n```")));
        check("```\n\n\na\n```", 6, Some(("```\n\n\n```", "```\na\n```")));
        check("  ```\n  a\n  b\n  ```", 9, Some(("  ```\n  a\n  ```", "  ```\n  b\n  ```")));
    }

    #[test]
    fn a_code_block_within_a_quote_or_a_list_keeps_its_place() {
        check("> ```c\n> a\n> b\n> ```", 11, Some(("> ```c\n> a\n> ```", "> ```c\n> b\n> ```")));
        check("> ```\n> a b\n> ```", 9, Some(("> ```\n> a \n> ```", "> ```\n> b\n> ```")));
        check("- ```\n  a\n  b\n  ```", 10, Some(("- ```\n  a\n  ```", "  ```\n  b\n  ```")));
    }

    #[test]
    fn both_halves_are_shorter() {
        for text in
            ["~~~~ x y\na\nb", "```\na\nb", "```\na\n```", "> ```\n> >>>>\n> ```", "- ```\n   \n   \n\n  ```"]
        {
            let halves = cut(text, text.len() / 2);
            assert!(
                halves.is_none_or(|(first, second)| first.len().max(second.len()) < text.len()),
                "{text}"
            );
        }
    }

    #[test]
    fn an_opening_line_too_long_to_repeat_is_cut_like_text() {
        let text = format!("```{}\ncode", "x ".repeat(500));
        let (first, second) = cut(&text, 300).unwrap();
        assert!(first.len() < text.len() && second.len() < text.len());
    }
}
