//! The words of a text as they are searched: words of scripts with spaces, pairs of characters of those without.

use unicode_segmentation::UnicodeSegmentation;

/// The words by which a memory is found: each Chinese, Japanese and Korean character alone and with the next.
pub(super) fn of_memory(text: &str) -> Vec<String> {
    words(text, |run, words| {
        words.extend(run.iter().map(char::to_string));
        words.extend(pairs(run));
    })
}

/// The words that are looked for: such characters in pairs, one alone only where it stands alone.
pub(super) fn of_mail(text: &str) -> Vec<String> {
    words(text, |run, words| match run {
        [alone] => words.push(alone.to_string()),
        run => words.extend(pairs(run)),
    })
}

fn pairs(run: &[char]) -> impl Iterator<Item = String> {
    run.windows(2).map(|pair| pair.iter().collect())
}

fn words(text: &str, mut of_run: impl FnMut(&[char], &mut Vec<String>)) -> Vec<String> {
    let mut words = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for run in chars.chunk_by(|a, b| is_unspaced(*a) == is_unspaced(*b)) {
        if run.first().is_some_and(|c| is_unspaced(*c)) {
            of_run(run, &mut words);
        } else {
            spaced(&run.iter().collect::<String>().to_lowercase(), &mut words);
        }
    }
    words
}

/// Words between spaces and marks; what Unicode keeps together by an apostrophe, point or colon is parted.
fn spaced(text: &str, words: &mut Vec<String>) {
    let inside = |c: char| matches!(c, '\'' | '’' | '.' | ':' | '_' | ',' | '·');
    let parts = text.unicode_words().flat_map(|word| word.split(inside));
    words.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
}

/// Han, kana and Hangul.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{3105}'..='\u{318e}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_told_apart_whatever_stands_between() {
        assert_eq!(
            of_mail("Eir's cat (Tom) is on #swarm:hs.test!"),
            ["eir", "s", "cat", "tom", "is", "on", "swarm", "hs", "test"]
        );
        assert_eq!(of_mail("ÜBER Straße  3.14"), ["über", "straße", "3", "14"]);
        assert_eq!(of_mail(" ,.'; "), Vec::<String>::new());
    }

    #[test]
    fn characters_without_spaces_are_paired() {
        assert_eq!(of_mail("東京タワー"), ["東京", "京タ", "タワ", "ワー"]);
        assert_eq!(of_mail("the 猫 sat"), ["the", "猫", "sat"]);
        assert_eq!(of_memory("猫が"), ["猫", "が", "猫が"]);
        assert_eq!(of_mail("고양이 Tom"), ["고양", "양이", "tom"]);
        assert_eq!(of_mail("。東、京"), ["東", "京"]);
    }

    proptest! {
        #[test]
        fn what_is_looked_for_in_a_text_is_found_in_it(text in any::<String>()) {
            let found = of_memory(&text);
            for word in of_mail(&text) {
                prop_assert!(found.contains(&word), "{:?} in {:?}", word, text);
            }
        }

        #[test]
        fn a_pair_is_found_inside_a_longer_sentence(
            before in "[\u{4e00}-\u{4e40}\u{3042}-\u{3060}\u{ac00}-\u{ac20}]{0,9}",
            pair in "[\u{4e00}-\u{9fff}\u{3042}-\u{3090}\u{30a1}-\u{30f0}\u{ac00}-\u{d7a0}]{2}",
            after in "[\u{4e00}-\u{4e40}\u{3042}-\u{3060}\u{ac00}-\u{ac20}]{0,9}",
        ) {
            let sentence = [before, pair.clone(), after].concat();
            prop_assert!(of_memory(&sentence).contains(&pair));
            prop_assert!(of_mail(&sentence).contains(&pair));
        }
    }
}
