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

#[cfg(test)]
mod tests {
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
    fn levels_are_ordered() {
        assert!(Level::Block < Level::Chat && Level::Chat < Level::Admin);
        assert_eq!(Level::default(), Level::Block);
    }
}
