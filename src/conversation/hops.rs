//! How far a turn is from the last word of a person: so Personas who answer each other come to an end.

use super::batch::{Delivery, DeliveryKind};
use super::reminder::Reminder;

/// The hops of what can no longer be known: it wakes nobody.
pub const UNKNOWN: u32 = u32::MAX;

/// The hops of a turn with this mail, which tells these reminders.
///
/// It is 0 where a person asked for it: where what woke her has something of a person that is addressed to her. Else it is
/// one more than the greatest among the lines that woke her, in which a person's count 0; where none of them did, one more than
/// the greatest among the turns that set the reminders, or without any among all its lines, but never more than those from
/// which on a line wakes nobody. So many it has where it has neither mail nor reminders. What she asked to be shown in whole
/// goes on with the hops of the turn in which she did.
pub fn of_turn(mail: &[Delivery], reminders: &[Reminder], max_hops: u32) -> u32 {
    let shown = || mail.iter().filter(|delivery| delivery.kind != DeliveryKind::Withdrawn);
    let waking = || shown().filter(|delivery| delivery.wakes);
    if waking().any(|line| line.again.is_none() && line.addressed && line.hops.is_none()) {
        return 0;
    }
    let hops = |line: &Delivery| line.hops.unwrap_or_default();
    let woken = |line: &Delivery| line.again.unwrap_or_else(|| hops(line).saturating_add(1));
    if let Some(greatest) = waking().map(woken).max() {
        return greatest;
    }
    let set = reminders.iter().map(|reminder| reminder.remind.hops).max();
    let (before, farthest) = (set.or_else(|| shown().map(hops).max()), max_hops.max(1));
    before.map_or(farthest, |hops| hops.saturating_add(1).min(farthest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::batch::tests::delivery;
    use crate::conversation::ids::{Lane, Millis, RegisterName};
    use crate::conversation::reminder::{Remind, ReminderNumber};

    fn line(hops: Option<u32>, addressed: bool, wakes: bool) -> Delivery {
        let lane = Lane::Register(RegisterName("swarm".into()));
        Delivery { hops, addressed, wakes, ..delivery(1, lane, ruma::owned_room_id!("!r:hs.test")) }
    }

    #[test]
    fn it_is_counted_from_what_woke_her() {
        let (asks, passes) = (line(None, true, true), line(None, false, false));
        let anyone = line(None, false, true);
        let (waking, ending) = (line(Some(1), true, true), line(Some(3), true, false));
        let far = line(Some(UNKNOWN), true, false);
        let rows: [(&[&Delivery], u32); 10] = [
            (&[&asks], 0),
            (&[&waking], 2),
            (&[&waking, &asks, &ending], 0),
            (&[&waking, &ending, &passes], 2),
            (&[&anyone], 1),
            (&[&anyone, &waking], 2),
            (&[], 5),
            (&[&passes], 1),
            (&[&passes, &ending], 4),
            (&[&passes, &far], 5),
        ];
        for (mail, expect) in rows {
            let mail: Vec<Delivery> = mail.iter().map(|line| (*line).clone()).collect();
            assert_eq!(of_turn(&mail, &[], 5), expect, "{mail:?}");
        }
        let set = |hops| reminder(hops);
        let reminded: [(&[&Delivery], &[u32], u32); 7] = [
            (&[], &[0], 1),
            (&[], &[3, 1], 4),
            (&[], &[4], 5),
            (&[], &[UNKNOWN], 5),
            (&[&passes, &ending], &[0], 1),
            (&[&waking], &[3], 2),
            (&[&asks], &[3], 0),
        ];
        for (mail, reminders, expect) in reminded {
            let mail: Vec<Delivery> = mail.iter().map(|line| (*line).clone()).collect();
            let reminders: Vec<Reminder> = reminders.iter().copied().map(set).collect();
            assert_eq!(of_turn(&mail, &reminders, 5), expect, "{mail:?} {reminders:?}");
        }
        let again = |line: &Delivery, hops| Delivery { again: Some(hops), wakes: true, ..line.clone() };
        let shown: [(&[Delivery], u32); 6] = [
            (&[again(&passes, 0)], 0),
            (&[again(&passes, 3)], 3),
            (&[again(&asks, 4)], 4),
            (&[again(&ending, 1), again(&passes, 2)], 2),
            (&[again(&asks, 4), waking.clone()], 4),
            (&[again(&asks, 4), asks.clone()], 0),
        ];
        for (mail, expect) in shown {
            assert_eq!(of_turn(mail, &[], 5), expect, "{mail:?}");
        }
        let withdrawn = Delivery { kind: DeliveryKind::Withdrawn, ..asks };
        assert_eq!(of_turn(&[withdrawn, waking], &[], 5), 2, "what was taken back asks for nothing");
        assert_eq!(of_turn(&[line(Some(UNKNOWN), true, true)], &[], 5), UNKNOWN);
    }

    fn reminder(hops: u32) -> Reminder {
        let lane = Lane::Register(RegisterName("swarm".into()));
        let remind = Remind { due: Millis(5), text: "tea".into(), room: None, hops };
        Reminder { number: ReminderNumber(1), lane, remind, set: Millis(1), listed: None }
    }

    fn any_reminders() -> impl Strategy<Value = Vec<Reminder>> {
        prop::collection::vec(prop_oneof![0..7_u32, Just(UNKNOWN)].prop_map(reminder), 0..3)
    }

    fn any_line() -> impl Strategy<Value = Delivery> {
        (prop::option::of(0..5_u32), any::<bool>(), any::<bool>())
            .prop_map(|(hops, addressed, wakes)| line(hops, addressed, wakes))
    }

    proptest! {
        #[test]
        fn only_a_person_who_asks_begins_anew(
            mail in prop::collection::vec(any_line(), 0..6), reminders in any_reminders(), max_hops in 0..6_u32,
        ) {
            let asked = mail.iter().any(|line| line.hops.is_none() && line.addressed && line.wakes);
            prop_assert_eq!(of_turn(&mail, &reminders, max_hops) == 0, asked);
        }

        #[test]
        fn a_turn_that_no_line_woke_is_further_than_what_set_it_off_or_wakes_nobody(
            mail in prop::collection::vec(any_line(), 0..4), reminders in any_reminders(), max_hops in 0..6_u32,
        ) {
            let mail: Vec<Delivery> = mail.into_iter().map(|line| Delivery { wakes: false, ..line }).collect();
            let hops = of_turn(&mail, &reminders, max_hops);
            let further = reminders.iter().all(|one| one.remind.hops < hops);
            prop_assert!(further || hops >= max_hops);
            prop_assert!(!mail.is_empty() || !reminders.is_empty() || hops >= max_hops);
        }

        #[test]
        fn each_turn_is_further_than_every_line_that_woke_it(mail in prop::collection::vec(any_line(), 0..6)) {
            let hops = of_turn(&mail, &[], 5);
            let further = mail.iter().filter(|line| line.wakes).all(|line| line.hops.is_none_or(|of| of < hops));
            prop_assert!(hops == 0 || further);
        }

        #[test]
        fn what_rides_along_changes_nothing(
            mail in prop::collection::vec(any_line(), 0..5),
            passing in prop::collection::vec(any_line(), 0..5),
        ) {
            let passing = passing.into_iter().map(|line| Delivery { wakes: false, ..line });
            let with: Vec<Delivery> = mail.iter().cloned().chain(passing).collect();
            prop_assert!(!mail.iter().any(|line| line.wakes) || of_turn(&with, &[], 5) == of_turn(&mail, &[], 5));
        }
    }
}
