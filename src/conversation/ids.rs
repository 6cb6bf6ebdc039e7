//! Names and numbers that everything else is keyed by, and the derivations that make a repeat the same thing.

use std::fmt;

use ruma::{OwnedRoomId, RoomId, UserId};
use uuid::Uuid;

/// A point in time: milliseconds since the Unix epoch, by the clock of whoever wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// Whether it is a time at all: one that could not be read is zero.
    pub fn is_known(self) -> bool {
        self.0 > 0
    }

    /// The time `duration` later, saturating.
    pub fn plus(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// So much earlier, the epoch at the earliest.
    pub fn minus(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was, zero if it lies ahead.
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A Persona's id from the config (`eir`), also the end of her localpart.
    PersonaId
}
name! {
    /// The name of a register: how a kind of room is spoken in.
    RegisterName
}
name! {
    /// A Matrix transaction id, also written into the content as proof of sending.
    RequestId
}

/// What is batched together: all rooms of one register, or one direct room alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// All rooms of a register together.
    Register(RegisterName),
    /// One direct room alone.
    Direct(OwnedRoomId),
}

impl Lane {
    /// The register that its rooms are spoken in.
    pub fn register(&self) -> RegisterName {
        match self {
            Self::Register(name) => name.clone(),
            Self::Direct(_) => RegisterName(super::register::DM.to_owned()),
        }
    }
}

/// One turn of a Persona: drawn once, written down before anything is fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub Uuid);

/// The uuid of one stream-json user line: the CLI's idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub Uuid);

impl LineId {
    /// Derives the line of one attempt (counted from 1) at a turn.
    pub fn derive(turn: TurnId, attempt: u32) -> Self {
        Self(Uuid::new_v5(&turn.0, &attempt.to_be_bytes()))
    }
}

impl fmt::Display for LineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl RequestId {
    /// Derives the id of one part of what `cause` makes `sender` send to `room`; equal inputs are the same event.
    ///
    /// The server keys such ids by less than this (Synapse by room, Conduit by sender and device), so all of it is
    /// in the id. `part` counts over everything that one cause sends, as `"0"`, `"1"`, `"1.1"`.
    pub fn derive(epoch: Uuid, sender: &UserId, room: &RoomId, cause: &str, kind: &str, part: &str) -> Self {
        let name = [sender.as_str(), room.as_str(), cause, kind, part].join("\u{1f}");
        Self(Uuid::new_v5(&epoch, name.as_bytes()).to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use proptest::prelude::*;
    use ruma::{room_id, user_id};

    use super::*;

    #[test]
    fn request_ids_stay_the_same_for_ever() {
        let id = RequestId::derive(
            Uuid::from_u128(1),
            user_id!("@p_eir:hs.test"),
            room_id!("!swarm:hs.test"),
            "turn",
            "say",
            "0",
        );
        insta::assert_snapshot!(id, @"2b2797eb-e708-5964-bcdd-d4cdba047cfd");
    }

    #[test]
    fn each_input_makes_another_request_id() {
        let mut seen = BTreeSet::new();
        let mut count = 0;
        for epoch in [1, 2] {
            for sender in [user_id!("@p_eir:hs.test"), user_id!("@p_rune:hs.test")] {
                for room in [room_id!("!swarm:hs.test"), room_id!("!burn:hs.test")] {
                    for cause in ["turn-1", "turn-2", "encrypted:!swarm:hs.test"] {
                        for kind in ["say", "react"] {
                            for part in ["0", "1", "10", "1.0", "1.1"] {
                                let epoch = Uuid::from_u128(epoch);
                                seen.insert(RequestId::derive(epoch, sender, room, cause, kind, part));
                                count += 1;
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn lines_stay_the_same_and_differ_by_turn_and_attempt() {
        let line = |turn: u128, attempt| LineId::derive(TurnId(Uuid::from_u128(turn)), attempt);
        insta::assert_snapshot!(line(1, 1), @"4a213f6d-d21f-51b6-bfb7-b42c31a986f2");
        let lines: BTreeSet<LineId> = (1..20).flat_map(|turn| (1..50).map(move |n| line(turn, n))).collect();
        assert_eq!(lines.len(), 19 * 49);
        assert_eq!(line(7, 3), line(7, 3));
    }

    #[test]
    fn names_show_as_they_are() {
        assert_eq!(PersonaId("eir".into()).to_string(), "eir");
        assert_eq!(RegisterName("swarm".into()).as_str(), "swarm");
    }

    proptest! {
        #[test]
        fn request_ids_are_equal_only_for_equal_causes_and_parts(
            a in ("[a-z:!.0-9]{0,6}", "[a-z]{0,3}", "[0-9.]{0,3}"),
            b in ("[a-z:!.0-9]{0,6}", "[a-z]{0,3}", "[0-9.]{0,3}"),
        ) {
            let id = |(cause, kind, part): &(String, String, String)| {
                RequestId::derive(Uuid::nil(), user_id!("@a:hs"), room_id!("!r:hs"), cause, kind, part)
            };
            prop_assert_eq!(id(&a) == id(&b), a == b);
        }

        #[test]
        fn times_never_run_over(at in any::<u64>(), by in any::<u64>()) {
            let later = Millis(at).plus(Duration::from_millis(by));
            prop_assert_eq!(later.0, at.saturating_add(by));
            prop_assert_eq!(later.since(Millis(at)).as_millis(), u128::from(later.0 - at));
            prop_assert_eq!(Millis(at).since(later), Duration::ZERO);
        }
    }

    #[test]
    fn endless_durations_end_at_the_last_moment() {
        assert_eq!(Millis(5).plus(Duration::MAX), Millis(u64::MAX));
    }
}
