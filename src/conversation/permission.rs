//! Who may do what: exact user before server before `*`.

use std::collections::BTreeMap;

use ruma::UserId;

/// What somebody may do, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Not heard; counted.
    #[default]
    Block,
    /// Heard; may address and invite.
    Chat,
    /// May also steer.
    Admin,
}

/// The permissions map of the config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions(pub BTreeMap<String, Level>);

impl Permissions {
    /// The level of a user: her exact id, else her server's name, else `*`, else block.
    pub fn level(&self, user: &UserId) -> Level {
        [user.as_str(), user.server_name().as_str(), "*"]
            .iter()
            .find_map(|key| self.0.get(*key))
            .copied()
            .unwrap_or_default()
    }
}

/// Users who are machines of other people: they are heard, and never address or wake anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bots(pub Vec<String>);

impl Bots {
    /// Whether a user is one of them: one of the patterns is her whole id, where `*` stands for any text.
    pub fn hold(&self, user: &UserId) -> bool {
        self.0.iter().any(|pattern| fits(pattern, user.as_str()))
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(begin) else { return false };
    // What stands between two stars is taken where it comes first: that leaves the most for what follows.
    let (inner, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_suffix(end) else { return false };
    inner.split('*').all(|part| match text.find(part) {
        Some(at) => {
            text = &text[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(map: &[(&str, Level)], user: &str, expect: Level) {
        let permissions = Permissions(map.iter().map(|(key, level)| ((*key).to_owned(), *level)).collect());
        assert_eq!(permissions.level(<&UserId>::try_from(user).unwrap()), expect, "{user} in {map:?}");
    }

    #[test]
    fn nobody_named_is_blocked() {
        check(&[], "@alice:hs.test", Level::Block);
        check(&[("other.test", Level::Admin)], "@alice:hs.test", Level::Block);
        check(&[("alice", Level::Admin), ("@alice", Level::Admin)], "@alice:hs.test", Level::Block);
    }

    #[test]
    fn the_most_exact_entry_decides_up_and_down() {
        let map = [
            ("*", Level::Chat),
            ("hs.test", Level::Admin),
            ("bad.test", Level::Block),
            ("@mallory:hs.test", Level::Block),
            ("@carol:bad.test", Level::Chat),
        ];
        check(&map, "@alice:hs.test", Level::Admin);
        check(&map, "@mallory:hs.test", Level::Block);
        check(&map, "@dave:bad.test", Level::Block);
        check(&map, "@carol:bad.test", Level::Chat);
        check(&map, "@zoe:elsewhere.test", Level::Chat);
    }

    #[test]
    fn a_server_is_its_whole_name_with_port() {
        let map = [("hs.test", Level::Chat), ("hs.test:8448", Level::Admin)];
        check(&map, "@alice:hs.test", Level::Chat);
        check(&map, "@alice:hs.test:8448", Level::Admin);
        check(&map, "@alice:hs.test:8449", Level::Block);
        check(&map, "@alice:sub.hs.test", Level::Block);
        check(&map, "@alice:hs.test.evil", Level::Block);
    }

    #[test]
    fn case_is_part_of_a_user_id() {
        check(&[("@alice:hs.test", Level::Admin)], "@Alice:hs.test", Level::Block);
    }

    #[test]
    fn a_bot_is_who_fits_a_pattern_as_a_whole() {
        let bots = |patterns: &[&str]| Bots(patterns.iter().map(|pattern| (*pattern).to_owned()).collect());
        let user = |user: &'static str| <&UserId>::try_from(user).unwrap();
        let several = bots(&["@*bot:hs.test", "@hook-*:*", "@rss:hs.test"]);
        for held in ["@githubbot:hs.test", "@bot:hs.test", "@hook-1:else.where", "@rss:hs.test"] {
            assert!(several.hold(user(held)), "{held}");
        }
        for free in ["@botany:hs.test", "@bot:hs.test.evil", "@xrss:hs.test", "@hook:hs.test", "@Rss:hs.test"]
        {
            assert!(!several.hold(user(free)), "{free}");
        }
        assert!(!bots(&[]).hold(user("@rss:hs.test")));
        assert!(!bots(&["@ab*ba:hs.test"]).hold(user("@aba:hs.test")), "nothing counts twice");
    }

    proptest! {
        #[test]
        fn a_pattern_fits_what_a_search_of_all_ways_finds(pattern in "[ab*]{0,7}", text in "[ab]{0,7}") {
            fn slowly(pattern: &[u8], text: &[u8]) -> bool {
                match pattern.split_first() {
                    None => text.is_empty(),
                    Some((b'*', rest)) => (0..=text.len()).any(|taken| slowly(rest, &text[taken..])),
                    Some((c, rest)) => text.first() == Some(c) && slowly(rest, &text[1..]),
                }
            }
            prop_assert_eq!(fits(&pattern, &text), slowly(pattern.as_bytes(), text.as_bytes()));
        }
    }

    #[test]
    fn levels_are_ordered() {
        assert!(Level::Block < Level::Chat && Level::Chat < Level::Admin);
        assert_eq!(Level::default(), Level::Block);
    }
}
