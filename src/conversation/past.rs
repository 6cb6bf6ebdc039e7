//! What was heard and said in a lane before, as the bridge has taken it down.

use ruma::{OwnedRoomId, OwnedUserId};

use super::ids::Millis;

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastTurn {
    /// In which generation of her session it was.
    pub generation: u32,
    /// What was heard in it, then what she said; what was taken back since is not there any more.
    pub lines: Vec<PastLine>,
}

/// A message of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastLine {
    /// Where.
    pub room: OwnedRoomId,
    /// Who said it, with the display name; none where she did.
    pub sender: Option<(OwnedUserId, Option<String>)>,
    /// The words.
    pub text: String,
    /// When.
    pub said: Millis,
}

/// What a generation that knows nothing of the one before is told of it in a lane, by the turns there, oldest first: nothing
/// where it has had a turn there itself.
pub fn told(turns: Vec<PastTurn>, generation: u32) -> Vec<PastLine> {
    if turns.iter().any(|turn| turn.generation == generation) {
        return Vec::new();
    }
    turns.into_iter().flat_map(|turn| turn.lines).collect()
}

#[cfg(test)]
mod tests {
    use ruma::room_id;

    use super::*;

    #[test]
    fn a_generation_is_told_of_those_before_until_it_has_had_a_turn_in_the_lane() {
        let line = |text: &str| PastLine {
            room: room_id!("!a:hs.test").to_owned(),
            sender: None,
            text: text.into(),
            said: Millis(1),
        };
        let turn = |generation, lines: &[&str]| PastTurn {
            generation,
            lines: lines.iter().copied().map(line).collect(),
        };
        let before = vec![turn(1, &["a", "b"]), turn(2, &[]), turn(2, &["c"])];
        assert_eq!(told(before.clone(), 3), ["a", "b", "c"].map(line));
        assert_eq!(told([before, vec![turn(3, &[])]].concat(), 3), []);
    }
}
