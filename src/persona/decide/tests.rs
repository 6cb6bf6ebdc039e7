use std::time::Duration;

use proptest::prelude::*;
use ruma::OwnedRoomId;
use uuid::Uuid;

use super::*;
use crate::conversation::RegisterName;

const NOW: u64 = 1_000_000;
const QUIET: u64 = 2_000;
const CAP: u64 = 10_000;
const SETTLE: Settle = Settle { quiet: Duration::from_millis(QUIET), cap: Duration::from_millis(CAP) };

fn free() -> Situation {
    Situation {
        now: Millis(NOW),
        shutting_down: false,
        grace_over: false,
        held: None,
        mind: MindState::Idle,
        open_turn: None,
        stopped: false,
        lanes: Vec::new(),
        settle: SETTLE,
        reminder: None,
        grant: None,
    }
}

fn lane(name: &str) -> Lane {
    Lane::Register(RegisterName(name.to_owned()))
}

fn room(name: &str) -> OwnedRoomId {
    OwnedRoomId::try_from(format!("!{name}:hs.test")).unwrap()
}

fn busy() -> MindState {
    MindState::Busy(LineId(Uuid::from_u128(7)))
}

fn turn(not_before: u64) -> OpenTurn {
    OpenTurn {
        wake: Wake::Mail,
        id: TurnId(Uuid::from_u128(1)),
        lane: lane("work"),
        seqs: vec![1],
        attempt: 1,
        not_before: Millis(not_before),
        as_of: Millis::default(),
        spent: Usd::default(),
        flush: None,
        reminders: Vec::new(),
        news: None,
        troubles: Troubles::default(),
    }
}

/// A lane whose mail waits in rooms of (age of the first that wakes, age of the newest).
fn mail(name: &str, oldest_age: u64, rooms: &[(u64, u64)]) -> LaneMail {
    let waking = rooms.iter().enumerate().map(|(i, (first, newest))| RoomMail {
        room: room(&format!("{name}{i}")),
        first: Millis(NOW - first),
        newest: Millis(NOW - newest),
        senders: BTreeSet::new(),
        typing: None,
        full: None,
    });
    LaneMail {
        lane: lane(name),
        oldest: Millis(NOW - oldest_age),
        unheard: Some(Millis(NOW - oldest_age)),
        waking: waking.collect(),
    }
}

#[track_caller]
fn check(situation: Situation, expected: Step) {
    assert_eq!(decide(&situation), expected);
}

#[test]
fn with_nothing_to_do_she_sleeps_until_an_event() {
    check(free(), Step::Sleep(None));
    check(Situation { mind: MindState::Closed, ..free() }, Step::Sleep(None));
}

#[test]
fn stopping_waits_for_the_line_then_stops_the_mind_then_leaves() {
    let stopping = |mind, grace_over| Situation {
        shutting_down: true,
        grace_over,
        mind,
        open_turn: Some(turn(0)),
        lanes: vec![mail("work", 60_000, &[(60_000, 60_000)])],
        ..free()
    };
    check(stopping(busy(), false), Step::Sleep(None));
    check(stopping(busy(), true), Step::StopMind(Stop::Busy));
    check(stopping(MindState::Stopping, false), Step::Sleep(None));
    check(stopping(MindState::Stopping, true), Step::Sleep(None));
    check(stopping(MindState::Idle, false), Step::StopMind(Stop::Idle));
    check(stopping(MindState::Closed, false), Step::Leave);
    check(stopping(MindState::NoSlot, false), Step::Leave);
    check(stopping(MindState::Queued, false), Step::StopMind(Stop::Idle));
}

#[test]
fn grace_means_nothing_while_the_service_runs() {
    check(Situation { grace_over: true, mind: busy(), ..free() }, Step::Sleep(None));
}

#[test]
fn an_open_turn_is_fed_when_its_time_has_come() {
    let open = |not_before| Situation { open_turn: Some(turn(not_before)), ..free() };
    check(open(0), Step::Feed(turn(0).id));
    check(open(NOW), Step::Feed(turn(0).id));
    check(open(NOW + 1), Step::Sleep(Some(Millis(NOW + 1))));
    check(Situation { mind: MindState::Closed, ..open(0) }, Step::Feed(turn(0).id));
    check(Situation { mind: MindState::NoSlot, ..open(0) }, Step::Sleep(None));
    check(Situation { mind: MindState::Queued, ..open(0) }, Step::Sleep(None));
    check(Situation { mind: busy(), ..open(0) }, Step::Sleep(None));
    check(Situation { mind: MindState::Stopping, ..open(0) }, Step::Sleep(None));
}

#[test]
fn an_open_turn_comes_before_due_mail() {
    let lanes = vec![mail("work", 60_000, &[(60_000, 60_000)])];
    check(Situation { open_turn: Some(turn(NOW + 5)), lanes, ..free() }, Step::Sleep(Some(Millis(NOW + 5))));
}

#[test]
fn what_is_held_is_neither_begun_nor_fed() {
    for held in [Hold::Brake, Hold::Until(None)] {
        let held = || Situation { held: Some(held), ..free() };
        check(Situation { open_turn: Some(turn(0)), ..held() }, Step::Sleep(None));
        check(Situation { open_turn: Some(turn(NOW + 9)), ..held() }, Step::Sleep(None));
        check(
            Situation { lanes: vec![mail("work", 60_000, &[(60_000, 60_000)])], ..held() },
            Step::Sleep(None),
        );
        check(Situation { shutting_down: true, ..held() }, Step::StopMind(Stop::Idle));
    }
}

#[test]
fn a_room_is_due_once_quiet_or_at_the_cap() {
    let one = |first, newest| Situation { lanes: vec![mail("work", first, &[(first, newest)])], ..free() };
    check(one(0, 0), Step::Sleep(Some(Millis(NOW + QUIET))));
    check(one(1_999, 1_999), Step::Sleep(Some(Millis(NOW + 1))));
    check(one(2_000, 2_000), Step::BeginTurn(lane("work"), Wake::Mail));
    check(one(9_000, 500), Step::Sleep(Some(Millis(NOW + 1_000))));
    check(one(10_000, 0), Step::BeginTurn(lane("work"), Wake::Mail));
}

#[test]
fn one_settled_room_makes_its_whole_lane_due() {
    let lanes = vec![mail("work", 3_000, &[(0, 0), (3_000, 2_500)])];
    check(Situation { lanes, ..free() }, Step::BeginTurn(lane("work"), Wake::Mail));
}

#[test]
fn while_a_sender_types_the_room_waits_within_the_cap() {
    let typing = |age: u64, until: u64| {
        let mut mail = mail("a", age, &[(age, age)]);
        mail.waking[0].typing = Some(Millis(until));
        decide(&Situation { lanes: vec![mail], ..free() })
    };
    assert_eq!(typing(3_000, NOW), Step::BeginTurn(lane("a"), Wake::Mail), "she has stopped");
    assert_eq!(typing(3_000, NOW + 1_000), Step::Sleep(Some(Millis(NOW + 1_000))));
    assert_eq!(typing(3_000, NOW + 60_000), Step::Sleep(Some(Millis(NOW - 3_000 + CAP))));
    assert_eq!(typing(CAP, NOW + 60_000), Step::BeginTurn(lane("a"), Wake::Mail));
}

#[test]
fn unaddressed_mail_alone_begins_nothing() {
    check(Situation { lanes: vec![mail("work", 900_000, &[])], ..free() }, Step::Sleep(None));
}

#[test]
fn of_several_due_lanes_the_one_with_the_oldest_mail_goes_first() {
    let lanes = vec![mail("a", 3_000, &[(3_000, 3_000)]), mail("b", 9_000, &[(2_500, 2_500)])];
    check(Situation { lanes, ..free() }, Step::BeginTurn(lane("b"), Wake::Mail));
    let tied = vec![mail("b", 3_000, &[(3_000, 3_000)]), mail("a", 3_000, &[(2_500, 2_500)])];
    check(Situation { lanes: tied, ..free() }, Step::BeginTurn(lane("a"), Wake::Mail));
}

#[test]
fn a_due_lane_is_not_held_back_by_an_older_one_that_still_settles() {
    let lanes = vec![mail("a", 9_000, &[(1_000, 1_000)]), mail("b", 3_000, &[(3_000, 3_000)])];
    check(Situation { lanes, ..free() }, Step::BeginTurn(lane("b"), Wake::Mail));
}

#[test]
fn mail_from_the_future_is_due_at_once() {
    let mut ahead = mail("work", 0, &[(0, 0)]);
    ahead.oldest = Millis(NOW + 3_600_000);
    ahead.waking[0].first = Millis(NOW + 3_600_000);
    ahead.waking[0].newest = Millis(NOW + 3_600_000);
    check(Situation { lanes: vec![ahead], ..free() }, Step::BeginTurn(lane("work"), Wake::Mail));
}

fn any_mind() -> impl Strategy<Value = MindState> {
    prop_oneof![
        1 => Just(MindState::Closed),
        3 => Just(MindState::Idle),
        1 => Just(busy()),
        1 => Just(MindState::Stopping),
        1 => Just(MindState::NoSlot),
        1 => Just(MindState::Queued),
    ]
}

fn any_hold() -> impl Strategy<Value = Hold> {
    prop_oneof![
        Just(Hold::Brake),
        prop::option::weighted(0.7, any_time()).prop_map(|until| Hold::Until(until.map(Millis))),
    ]
}

/// Times on both sides of now, and the ends of the clock.
fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![10 => NOW - 30_000..NOW + 30_000, 1 => Just(0), 1 => Just(u64::MAX)]
}

fn any_room() -> impl Strategy<Value = RoomMail> {
    let typing = prop::option::weighted(0.3, any_time().prop_map(Millis));
    (0..5_u8, any_time(), 0..20_000_u64, typing).prop_map(|(name, first, later, typing)| RoomMail {
        room: room(&name.to_string()),
        first: Millis(first),
        newest: Millis(first.saturating_add(later)),
        senders: BTreeSet::new(),
        typing,
        full: None,
    })
}

fn any_lane() -> impl Strategy<Value = LaneMail> {
    (prop::collection::vec(any_room(), 0..4), any_time()).prop_map(|(waking, extra)| {
        let first = waking.iter().map(|r| r.first.0).min().unwrap_or(extra);
        LaneMail { lane: lane("unnamed"), oldest: Millis(first.min(extra)), unheard: None, waking }
    })
}

prop_compose! {
    fn any_situation()(
        shutting_down in prop::bool::weighted(0.15),
        grace_over in any::<bool>(),
        held in prop::option::weighted(0.25, any_hold()),
        mind in any_mind(),
        not_before in prop::option::weighted(0.4, any_time()),
        stopped in prop::bool::weighted(0.2),
        mut lanes in prop::collection::vec(any_lane(), 0..5),
        quiet in 0..30_000_u64,
        cap in 0..30_000_u64,
        reminder in prop::option::weighted(0.3, any_time()),
    ) -> Situation {
        for (i, mail) in lanes.iter_mut().enumerate() {
            mail.lane = lane(&i.to_string());
        }
        Situation {
            now: Millis(NOW),
            shutting_down,
            grace_over,
            held,
            mind,
            open_turn: not_before.map(turn),
            stopped,
            lanes,
            settle: Settle { quiet: Duration::from_millis(quiet), cap: Duration::from_millis(cap) },
            reminder: reminder.map(|due| (lane("hers"), Millis(due))),
            grant: None,
        }
    }
}

/// The same mail with nothing in its way.
fn freed(situation: Situation) -> Situation {
    let mind = if situation.grace_over { MindState::Closed } else { MindState::Idle };
    let (held, open_turn, reminder) = (None, None, None);
    Situation { shutting_down: false, held, open_turn, reminder, stopped: false, mind, ..situation }
}

/// When a turn begins if nothing else happens.
fn begins_at(situation: &Situation) -> Millis {
    match decide(situation) {
        Step::BeginTurn(..) => situation.now,
        Step::Sleep(until) => until.unwrap_or(Millis(u64::MAX)),
        step @ (Step::Feed(_) | Step::PutBack(_) | Step::StopMind(_) | Step::Leave) => {
            panic!("{step:?} with nothing in the way")
        }
    }
}

#[test]
fn a_granted_turn_begins_behind_addressed_mail_while_there_is_a_cause_for_it() {
    let granted = |wake, lanes| Situation { grant: Some((lane("work"), wake)), lanes, ..free() };
    let begun = |wake| Step::BeginTurn(lane("work"), wake);
    check(granted(Wake::Beat, vec![mail("work", 5, &[])]), begun(Wake::Beat));
    check(granted(Wake::Silence, Vec::new()), begun(Wake::Silence));
    check(granted(Wake::Beat, Vec::new()), Step::Sleep(None));
    check(granted(Wake::Beat, vec![mail("other", 5, &[])]), Step::Sleep(None));
    let redaction = LaneMail { unheard: None, ..mail("work", 5, &[]) };
    check(granted(Wake::Beat, vec![redaction]), Step::Sleep(None));
    let addressed = mail("other", 60_000, &[(60_000, 60_000)]);
    let both = || granted(Wake::Beat, vec![addressed.clone(), mail("work", 90_000, &[])]);
    check(both(), Step::BeginTurn(lane("other"), Wake::Mail));
    check(Situation { held: Some(Hold::Brake), ..both() }, Step::Sleep(None));
    check(Situation { mind: busy(), ..both() }, Step::Sleep(None));
    let open = Situation { open_turn: Some(turn(0)), ..granted(Wake::Beat, vec![mail("work", 5, &[])]) };
    check(open, Step::Feed(turn(0).id));
}

#[test]
fn a_due_reminder_begins_a_turn_behind_due_mail_and_before_the_beat() {
    let reminded = |due| Situation { reminder: Some((lane("hers"), Millis(due))), ..free() };
    let begun = Step::BeginTurn(lane("hers"), Wake::Reminder);
    check(reminded(NOW), begun.clone());
    check(reminded(NOW + 5), Step::Sleep(Some(Millis(NOW + 5))));
    let granted = |due| {
        let lanes = vec![mail("work", 5, &[])];
        Situation { grant: Some((lane("work"), Wake::Beat)), lanes, ..reminded(due) }
    };
    check(granted(NOW), begun);
    check(granted(NOW + 5), Step::BeginTurn(lane("work"), Wake::Beat));
    let lanes = vec![mail("work", 60_000, &[(60_000, 60_000)])];
    check(Situation { lanes, ..reminded(NOW) }, Step::BeginTurn(lane("work"), Wake::Mail));
    check(Situation { held: Some(Hold::Brake), ..reminded(NOW) }, Step::Sleep(None));
    check(Situation { open_turn: Some(turn(0)), ..reminded(NOW) }, Step::Feed(turn(0).id));
}

#[test]
fn a_hold_that_is_over_holds_nothing() {
    let held = |until| Situation {
        held: Some(Hold::Until(Some(Millis(until)))),
        open_turn: Some(turn(0)),
        ..free()
    };
    check(held(NOW + 5), Step::Sleep(Some(Millis(NOW + 5))));
    check(held(NOW), Step::Feed(turn(0).id));
}

#[test]
fn a_turn_with_mail_of_a_room_in_which_she_is_stopped_makes_way() {
    let stopped = |mind| Situation { open_turn: Some(turn(NOW + 5)), stopped: true, mind, ..free() };
    check(stopped(busy()), Step::StopMind(Stop::Busy));
    check(stopped(MindState::Stopping), Step::Sleep(None));
    for mind in [MindState::Idle, MindState::Closed, MindState::NoSlot, MindState::Queued] {
        check(stopped(mind.clone()), Step::PutBack(turn(0).id));
        let held = Situation { held: Some(Hold::Until(None)), ..stopped(mind.clone()) };
        check(held, Step::PutBack(turn(0).id));
        check(Situation { held: Some(Hold::Brake), ..stopped(mind) }, Step::Sleep(None));
    }
    let lanes = vec![mail("dm", 9_000, &[(9_000, 9_000)])];
    check(Situation { stopped: true, lanes, ..free() }, Step::BeginTurn(lane("dm"), Wake::Mail));
}

#[test]
fn the_brake_alone_ends_a_line_in_the_works() {
    let held = |held| Situation { held: Some(held), mind: busy(), open_turn: Some(turn(0)), ..free() };
    check(held(Hold::Brake), Step::StopMind(Stop::Busy));
    check(held(Hold::Until(None)), Step::Sleep(None));
    check(held(Hold::Until(Some(Millis(NOW - 1)))), Step::Sleep(None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn never_sleeps_into_the_past(situation in any_situation()) {
        if let Step::Sleep(Some(until)) = decide(&situation) {
            prop_assert!(until > situation.now);
        }
    }

    #[test]
    fn asks_nothing_while_busy_held_or_stopping(situation in any_situation()) {
        let asks = matches!(decide(&situation), Step::Feed(_) | Step::BeginTurn(..));
        let free = matches!(situation.mind, MindState::Closed | MindState::Idle);
        let over = matches!(situation.held, Some(Hold::Until(Some(until))) if until <= situation.now);
        let held = situation.held.is_some() && !over;
        prop_assert!(!asks || (free && !held && !situation.shutting_down));
    }

    #[test]
    fn never_begins_beside_an_open_turn(situation in any_situation()) {
        if situation.open_turn.is_some() {
            prop_assert!(!matches!(decide(&situation), Step::BeginTurn(..)));
        }
    }

    #[test]
    fn feeds_only_the_open_turn(situation in any_situation()) {
        if let Step::Feed(id) = decide(&situation) {
            prop_assert_eq!(Some(id), situation.open_turn.map(|t| t.id));
        }
    }

    #[test]
    fn begins_only_lanes_with_addressed_mail_or_a_due_reminder(situation in any_situation()) {
        if let Step::BeginTurn(begun, wake) = decide(&situation) {
            if wake == Wake::Reminder {
                prop_assert!(situation.reminder.is_some_and(|(lane, due)| lane == begun && due <= situation.now));
                return Ok(());
            }
            let mail = situation.lanes.iter().find(|m| m.lane == begun);
            prop_assert!(mail.is_some_and(|m| !m.waking.is_empty()));
        }
    }

    #[test]
    fn addressed_mail_is_begun_within_the_cap(situation in any_situation()) {
        let situation = freed(situation);
        let cap = situation.settle.cap;
        let firsts = situation.lanes.iter().flat_map(|m| &m.waking).map(|r| r.first);
        let Some(first) = firsts.min() else { return Ok(()) };
        let begun = begins_at(&situation);
        prop_assert!(begun <= first.plus(cap).max(situation.now));
        let then = decide(&Situation { now: begun, ..situation });
        prop_assert!(matches!(then, Step::BeginTurn(..)), "it comes to {:?}", then);
    }

    #[test]
    fn typing_never_hastens_and_never_delays_beyond_the_cap(situation in any_situation()) {
        let typed = freed(situation);
        let mut still = typed.clone();
        still.lanes.iter_mut().flat_map(|mail| &mut mail.waking).for_each(|room| room.typing = None);
        prop_assert!(begins_at(&still) <= begins_at(&typed));
        let caps = typed.lanes.iter().flat_map(|mail| &mail.waking).map(|room| room.first.plus(typed.settle.cap));
        prop_assert!(caps.min().is_none_or(|cap| begins_at(&typed) <= cap.max(typed.now)));
    }

    #[test]
    fn a_full_room_begins_nothing_before_it_bears_more_and_delays_no_other(
        situation in any_situation(),
        full in any_time(),
    ) {
        let free = freed(situation);
        let mut one = free.clone();
        let Some(room) = one.lanes.iter_mut().flat_map(|mail| &mut mail.waking).next() else { return Ok(()) };
        room.full = Some(Millis(full));
        let mut others = free.clone();
        others.lanes.iter_mut().find(|mail| !mail.waking.is_empty()).map(|mail| mail.waking.remove(0));
        let (begun, without, anyhow) = (begins_at(&one), begins_at(&others), begins_at(&free));
        prop_assert!(begun >= without.min(Millis(full)).max(anyhow));
        prop_assert!(begun <= without);
    }

    #[test]
    fn the_same_situation_gives_the_same_step(situation in any_situation()) {
        prop_assert_eq!(decide(&situation), decide(&situation.clone()));
    }

    #[test]
    fn the_order_of_the_rows_means_nothing(situation in any_situation()) {
        let mut turned = situation.clone();
        turned.lanes.reverse();
        for mail in &mut turned.lanes {
            mail.waking.reverse();
        }
        prop_assert_eq!(decide(&situation), decide(&turned));
    }

    #[test]
    fn unaddressed_mail_elsewhere_never_delays(situation in any_situation(), age in 0..60_000_u64, which in 0..5_usize) {
        let mut more = situation.clone();
        match more.lanes.get_mut(which) {
            Some(mail) => mail.oldest = mail.oldest.min(Millis(NOW - age)),
            None => more.lanes.push(mail("other", age, &[])),
        }
        match (decide(&situation), decide(&more)) {
            (Step::BeginTurn(_, Wake::Mail), after) => prop_assert!(matches!(after, Step::BeginTurn(..))),
            (before, after) => prop_assert_eq!(before, after),
        }
    }

    #[test]
    fn more_addressed_mail_never_delays(situation in any_situation(), added in any_lane()) {
        let before = freed(situation);
        let mut after = before.clone();
        after.lanes.push(LaneMail { lane: lane("added"), ..added });
        prop_assert!(begins_at(&after) <= begins_at(&before));
    }
}
