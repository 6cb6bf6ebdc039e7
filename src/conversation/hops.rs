//! How far a turn is from the last word of a person: so Personas who answer each other come to an end.

use super::batch::{Delivery, DeliveryKind};

/// The hops of what can no longer be known: it wakes nobody.
pub const UNKNOWN: u32 = u32::MAX;

/// The hops of a turn with this mail.
///
/// It is 0 where a person asked for it: where what woke her has something of a person that is addressed to her. Else it is
/// one more than the greatest among the lines that woke her, in which a person's count 0; where none of them did, one more than
/// the greatest among all its lines (1 without mail), but never more than those from which on a line wakes nobody.
pub fn of_turn(mail: &[Delivery], max_hops: u32) -> u32 {
    let shown = || mail.iter().filter(|delivery| delivery.kind != DeliveryKind::Withdrawn);
    let waking = || shown().filter(|delivery| delivery.wakes);
    if waking().any(|delivery| delivery.addressed && delivery.hops.is_none()) {
        return 0;
    }
    let hops = |delivery: &Delivery| delivery.hops.unwrap_or_default();
    match waking().map(hops).max() {
        Some(greatest) => greatest.saturating_add(1),
        None => shown().map(hops).max().unwrap_or_default().saturating_add(1).min(max_hops),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::batch::tests::delivery;
    use crate::conversation::ids::{Lane, RegisterName};

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
            (&[], 1),
            (&[&passes], 1),
            (&[&passes, &ending], 4),
            (&[&passes, &far], 5),
        ];
        for (mail, expect) in rows {
            let mail: Vec<Delivery> = mail.iter().map(|line| (*line).clone()).collect();
            assert_eq!(of_turn(&mail, 5), expect, "{mail:?}");
        }
        let withdrawn = Delivery { kind: DeliveryKind::Withdrawn, ..asks };
        assert_eq!(of_turn(&[withdrawn, waking], 5), 2, "what was taken back asks for nothing");
        assert_eq!(of_turn(&[line(Some(UNKNOWN), true, true)], 5), UNKNOWN);
    }

    fn any_line() -> impl Strategy<Value = Delivery> {
        (prop::option::of(0..5_u32), any::<bool>(), any::<bool>())
            .prop_map(|(hops, addressed, wakes)| line(hops, addressed, wakes))
    }

    proptest! {
        #[test]
        fn only_a_person_who_asks_begins_anew(mail in prop::collection::vec(any_line(), 0..6)) {
            let asked = mail.iter().any(|line| line.hops.is_none() && line.addressed && line.wakes);
            prop_assert_eq!(of_turn(&mail, 5) == 0, asked);
        }

        #[test]
        fn each_turn_is_further_than_every_line_that_woke_it(mail in prop::collection::vec(any_line(), 0..6)) {
            let hops = of_turn(&mail, 5);
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
            prop_assert!(!mail.iter().any(|line| line.wakes) || of_turn(&with, 5) == of_turn(&mail, 5));
        }
    }
}
