//! What becomes of an invite; the same rule on every path it may come by.

use ruma::OwnedRoomId;

use super::ids::{Lane, RegisterName};
use super::permission::Level;

/// What is known of an invite.
#[derive(Clone, Copy, Debug)]
pub struct Invite<'a> {
    /// The room.
    pub room: &'a OwnedRoomId,
    /// What the inviter may do.
    pub level: Level,
    /// Whether it says it is a direct chat.
    pub is_direct: bool,
    /// The lane in which the room is heard already: by the config, or by others who sit there.
    pub heard: Option<&'a Lane>,
    /// The register of rooms that the config does not name.
    pub default_register: Option<&'a RegisterName>,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// She joins and hears the room in this lane.
    Accept(Lane),
    /// She refuses with this reason, said to the inviter.
    Refuse(&'static str),
}

impl Decision {
    /// The lane of an invite that is taken.
    pub fn lane(self) -> Option<Lane> {
        match self {
            Self::Accept(lane) => Some(lane),
            Self::Refuse(_) => None,
        }
    }
}

/// Why nobody may invite who is blocked.
const BLOCKED: &str = "You are not allowed to invite here; ask the operator of this bridge.";

/// Decides an invite of the bot itself, which in a direct chat answers what is remembered about who asks.
///
/// # Errors
/// The reason with which it is refused.
pub fn decide_for_bot(level: Level, is_direct: bool) -> Result<(), &'static str> {
    match level {
        Level::Admin => Ok(()),
        Level::Chat if is_direct => Ok(()),
        Level::Chat => Err("I only run this bridge; invite one of its Personas instead."),
        Level::Block => Err(BLOCKED),
    }
}

/// Decides an invite: by the inviter's level, then as the room is heard already, direct, default register.
pub fn decide(invite: Invite<'_>) -> Decision {
    if invite.level < Level::Chat {
        return Decision::Refuse(BLOCKED);
    }
    if let Some(lane) = invite.heard {
        return Decision::Accept(lane.clone());
    }
    if invite.is_direct {
        return Decision::Accept(Lane::Direct(invite.room.clone()));
    }
    match invite.default_register {
        Some(register) => Decision::Accept(Lane::Register(register.clone())),
        None => Decision::Refuse("This room is not one of mine; invite me to a direct chat instead."),
    }
}

#[cfg(test)]
mod tests {
    use ruma::room_id;

    use super::*;

    fn check(level: Level, is_direct: bool, configured: bool, default: bool) -> Decision {
        let room = room_id!("!a:hs.test").to_owned();
        let swarm = Lane::Register(RegisterName("swarm".into()));
        let other = RegisterName("other".into());
        decide(Invite {
            room: &room,
            level,
            is_direct,
            heard: configured.then_some(&swarm),
            default_register: default.then_some(&other),
        })
    }

    fn register(name: &str) -> Decision {
        Decision::Accept(Lane::Register(RegisterName(name.into())))
    }

    #[test]
    fn a_blocked_inviter_is_refused_whatever_the_room() {
        for (direct, configured, default) in [(true, true, true), (false, true, false), (true, false, false)]
        {
            assert!(matches!(check(Level::Block, direct, configured, default), Decision::Refuse(_)));
        }
    }

    #[test]
    fn a_configured_room_keeps_its_register_even_if_called_direct() {
        assert_eq!(check(Level::Chat, true, true, true), register("swarm"));
        assert_eq!(check(Level::Admin, false, true, false), register("swarm"));
    }

    #[test]
    fn a_direct_chat_is_a_lane_of_its_own() {
        let direct = Decision::Accept(Lane::Direct(room_id!("!a:hs.test").to_owned()));
        assert_eq!(check(Level::Chat, true, false, false), direct);
        assert_eq!(check(Level::Chat, true, false, true), direct);
    }

    #[test]
    fn the_bot_comes_to_admins_and_to_direct_chats() {
        assert_eq!(decide_for_bot(Level::Admin, false), Ok(()));
        assert_eq!(decide_for_bot(Level::Chat, true), Ok(()));
        assert!(decide_for_bot(Level::Chat, false).unwrap_err().contains("one of its Personas"));
        assert!(decide_for_bot(Level::Block, true).unwrap_err().contains("not allowed"));
    }

    #[test]
    fn any_other_room_takes_the_default_register_or_is_refused() {
        assert_eq!(check(Level::Chat, false, false, true), register("other"));
        assert!(matches!(check(Level::Chat, false, false, false), Decision::Refuse(_)));
    }
}
