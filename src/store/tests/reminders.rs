use super::*;
use crate::conversation::{Remind, ReminderNumber};

fn remind(text: &str, due: u64) -> Remind {
    Remind { due: Millis(due), text: text.to_owned(), room: None, hops: 1 }
}

/// A turn that tells these and does that is written down and committed.
fn end(world: &World, id: u128, tells: &[u64], reminders: Reminding) {
    let open = OpenTurn { reminders: tells.to_vec(), ..turn(id, &[]) };
    block(world.store().write_turn(&eir(), open, Books::default())).unwrap();
    block(world.store().commit(commit(id, reminders))).unwrap();
}

fn commit(id: u128, reminders: Reminding) -> Commit {
    Commit { reminders, ..plain(TurnId(Uuid::from_u128(id))) }
}

fn sets(texts: &[&str]) -> Reminding {
    Reminding { remind: texts.iter().map(|text| remind(text, 5)).collect(), ..Reminding::default() }
}

fn open(world: &World) -> Vec<(u64, String)> {
    let open = world.store().reminders(&eir()).unwrap().into_iter();
    open.map(|reminder| (reminder.number.0, reminder.remind.text)).collect()
}

fn numbers(world: &World) -> Vec<u64> {
    open(world).into_iter().map(|(number, _)| number).collect()
}

#[test]
fn a_reminder_is_open_until_a_turn_tells_it_or_somebody_cancels_it() {
    let mut world = World::new();
    end(&world, 1, &[], sets(&["tea", "cake"]));
    world.reopen();
    assert_eq!(open(&world), [(1, "tea".to_owned()), (2, "cake".to_owned())]);
    end(&world, 2, &[1], sets(&["milk"]));
    assert_eq!(numbers(&world), [2, 3]);
    end(&world, 3, &[], Reminding { unremind: [ReminderNumber(2)].into(), ..Reminding::default() });
    assert_eq!(numbers(&world), [3]);
    assert!(block(world.store().cancel_reminder(&eir(), ReminderNumber(3))).unwrap());
    assert!(!block(world.store().cancel_reminder(&eir(), ReminderNumber(3))).unwrap());
    end(&world, 4, &[], sets(&["again"]));
    assert_eq!(numbers(&world), [4], "no number is given twice");
}

#[test]
fn never_are_more_open_than_may_be() {
    let world = World::new();
    end(&world, 1, &[], sets(&["x"; 5]));
    end(&world, 2, &[], sets(&["x"]));
    assert_eq!(numbers(&world), [1, 2, 3, 4, 5]);
}

#[test]
fn a_turn_that_is_put_back_leaves_it_as_it_is_and_one_that_is_put_aside_puts_it_off() {
    let world = World::new();
    end(&world, 1, &[], sets(&["tea"]));
    let due = |world: &World| world.store().reminders(&eir()).unwrap()[0].remind.due;
    let open = || OpenTurn { reminders: vec![1], ..turn(2, &[]) };
    block(world.store().write_turn(&eir(), open(), Books::default())).unwrap();
    assert_eq!(world.store().standing(&eir()).unwrap().0, Some(open()));
    block(world.store().put_back(&eir(), open(), Books::default())).unwrap();
    assert_eq!(due(&world), Millis(5));
    block(world.store().write_turn(&eir(), open(), Books::default())).unwrap();
    block(world.store().hold(&eir(), open(), "no".to_owned(), NOW, Books::default())).unwrap();
    assert_eq!(due(&world), Millis(NOW.0 + 3_600_000));
}

#[test]
fn those_of_the_lane_are_marked_as_listed_and_new_ones_are_not() {
    let world = World::new();
    end(&world, 1, &[], sets(&["tea"]));
    let listed = |world: &World| {
        world.store().reminders(&eir()).unwrap().iter().map(|one| one.listed).collect::<Vec<_>>()
    };
    assert_eq!(listed(&world), [None]);
    end(&world, 2, &[], Reminding { listed: Some(1), ..sets(&["cake"]) });
    assert_eq!(listed(&world), [Some(1), None]);
}
