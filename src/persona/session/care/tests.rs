use std::time::Duration;

use proptest::prelude::*;

use super::super::price::{Step, Tariff};
use super::*;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const R: u64 = 16_000;

/// A session an hour after the day began, used a minute ago, with some growth.
fn standing<'a>(price: &'a Price, gaps: &'a Gaps) -> Standing<'a> {
    Standing {
        now: Millis(HOUR),
        used: Millis(HOUR - MINUTE),
        idle_since: Millis(HOUR - MINUTE),
        ttl: Ttl::OneHour,
        price,
        window: 200_000,
        prefix: 20_000,
        ahead: 500,
        meter: Meter { rehydrated: R, shared: 12_000, ..Meter::default() },
        gaps,
        rss: 0,
        tasks: Tasks::Safe,
        marks: BTreeSet::new(),
        word: None,
    }
}

#[track_caller]
fn check_with(
    policy: Policy,
    moment: Moment,
    change: impl FnOnce(&mut Standing<'_>),
    expected: (Care, Reason),
) {
    let (price, gaps) = (Price::unknown("x"), Gaps::of(&[]));
    let mut standing = standing(&price, &gaps);
    change(&mut standing);
    assert_eq!(care(&standing, moment, &policy), expected);
}

#[track_caller]
fn check(change: impl FnOnce(&mut Standing<'_>), expected: (Care, Reason)) {
    check_with(Policy::default(), Moment::Mail, change, expected);
}

fn cold(standing: &mut Standing<'_>) {
    standing.now = standing.used.plus(Ttl::OneHour.duration());
}

/// The rent that is due with the next turn's 400,000: 4,000 tokens above R at 100.
fn due(standing: &mut Standing<'_>) {
    standing.meter.rent = Usd(4_000 * 1_900 - 400_000 + 1);
}

#[test]
fn a_warm_session_goes_on_until_the_rent_of_the_next_turn_is_more_than_a_rebuild() {
    check(|_| {}, (Care::Keep, Reason::Well));
    check(|s| s.meter.rent = Usd(4_000 * 1_900 - 400_000), (Care::Keep, Reason::Well));
    check(due, (Care::Refresh, Reason::Rental));
    check_with(Policy::default(), Moment::Boundary, due, (Care::Refresh, Reason::Rental));
    check(
        |s| {
            due(s);
            s.prefix = R;
        },
        (Care::Keep, Reason::Well),
    );
    check(
        |s| {
            due(s);
            s.word = Some(Word::Keep);
        },
        (Care::Keep, Reason::Well),
    );
}

#[test]
fn a_cold_session_goes_on_only_if_a_new_one_would_write_as_much() {
    check(cold, (Care::Refresh, Reason::Cold));
    check(
        |s| {
            cold(s);
            s.now = Millis(s.now.0 - 1);
        },
        (Care::Keep, Reason::Well),
    );
    check(
        |s| {
            cold(s);
            s.prefix = R;
        },
        (Care::Keep, Reason::Well),
    );
    check(
        |s| {
            cold(s);
            s.word = Some(Word::Keep);
        },
        (Care::Refresh, Reason::Cold),
    );
}

#[test]
fn what_speaks_against_it_ends_it_at_once_but_for_staleness() {
    for (mark, reason) in [
        (Mark::Poisoned, Reason::Poisoned),
        (Mark::Tainted, Reason::Tainted),
        (Mark::CliVersion, Reason::CliVersion),
        (Mark::Cwd, Reason::Cwd),
    ] {
        for moment in [Moment::Boundary, Moment::Mail, Moment::IdleDeadline] {
            let marked = |s: &mut Standing<'_>| {
                s.marks = [Mark::Stale, mark].into();
                s.tasks = Tasks::Unremembered;
            };
            check_with(Policy::default(), moment, marked, (Care::Refresh, reason));
        }
    }
    check(|s| s.marks = [Mark::Cwd, Mark::Poisoned].into(), (Care::Refresh, Reason::Poisoned));
}

#[test]
fn a_redaction_is_only_noted_where_the_operator_says_so_and_hides_nothing_behind_it() {
    let policy = Policy { on_redaction: OnRedaction::Note, ..Policy::default() };
    let marked = |s: &mut Standing<'_>| s.marks = [Mark::Tainted].into();
    check_with(policy, Moment::Mail, marked, (Care::Keep, Reason::Well));
    let marked = |s: &mut Standing<'_>| s.marks = [Mark::Tainted, Mark::Cwd].into();
    check_with(policy, Moment::Mail, marked, (Care::Refresh, Reason::Cwd));
}

#[test]
fn a_stale_session_ends_where_it_is_cheap_or_now() {
    let stale = |s: &mut Standing<'_>| s.marks = [Mark::Stale].into();
    check(stale, (Care::Keep, Reason::Well));
    check_with(
        Policy { apply: Apply::Now, ..Policy::default() },
        Moment::Mail,
        stale,
        (Care::Refresh, Reason::Stale),
    );
    check(
        |s| {
            stale(s);
            cold(s);
            s.prefix = R;
        },
        (Care::Refresh, Reason::Stale),
    );
    check(
        |s| {
            stale(s);
            due(s);
        },
        (Care::Refresh, Reason::Rental),
    );
}

#[test]
fn a_full_window_and_a_price_step_end_it_before_they_are_reached() {
    check(|s| s.prefix = 149_500, (Care::Refresh, Reason::Rental));
    check(
        |s| {
            s.word = Some(Word::Keep);
            s.prefix = 149_500;
        },
        (Care::Keep, Reason::Well),
    );
    check(|s| s.prefix = 149_501, (Care::Refresh, Reason::Watermark));
    check_with(
        Policy { watermark: 10, ..Policy::default() },
        Moment::Boundary,
        |s| s.ahead = 0,
        (Care::Keep, Reason::Well),
    );
    check_with(
        Policy { watermark: 10, ..Policy::default() },
        Moment::Mail,
        |_| {},
        (Care::Refresh, Reason::Watermark),
    );
    // A mail that is too big for any session is no reason to end this one.
    check(
        |s| {
            s.prefix = R;
            s.ahead = 500_000;
        },
        (Care::Keep, Reason::Well),
    );

    let base = Price::unknown("x");
    let dear = Tariff { input: 5_000, ..base.tariff };
    let price = Price { steps: vec![Step { above: 20_400, tariff: dear }], ..base };
    let gaps = Gaps::default();
    let standing = standing(&price, &gaps);
    let at = |prefix, ahead| {
        care(&Standing { prefix, ahead, ..standing.clone() }, Moment::Mail, &Policy::default())
    };
    assert_eq!(at(20_000, 400), (Care::Keep, Reason::Well));
    assert_eq!(at(20_000, 401), (Care::Refresh, Reason::PriceStep));
    assert_eq!(at(17_000, 5_000), (Care::Keep, Reason::Well));
}

#[test]
fn an_operator_has_the_word() {
    for moment in [Moment::Boundary, Moment::Mail, Moment::IdleDeadline] {
        let word = |word| move |s: &mut Standing<'_>| s.word = Some(word);
        check_with(Policy::default(), moment, word(Word::Refresh), (Care::Refresh, Reason::Operator));
        check_with(Policy::default(), moment, word(Word::Flush), (Care::Flush, Reason::Operator));
    }
    check(
        |s| {
            cold(s);
            s.word = Some(Word::Flush);
        },
        (Care::Refresh, Reason::Cold),
    );
}

#[test]
fn open_tasks_are_written_down_first_once_and_never_in_a_cold_session() {
    let at_watermark = |tasks| {
        move |s: &mut Standing<'_>| {
            s.prefix = 180_000;
            s.tasks = tasks;
        }
    };
    check(at_watermark(Tasks::Unremembered), (Care::Flush, Reason::Watermark));
    check(at_watermark(Tasks::Safe), (Care::Refresh, Reason::Watermark));
    let off = Policy { flush: Flushing::Off, ..Policy::default() };
    check_with(off, Moment::Mail, at_watermark(Tasks::Unremembered), (Care::Refresh, Reason::Watermark));
    check(
        |s| {
            cold(s);
            s.tasks = Tasks::Unremembered;
        },
        (Care::Refresh, Reason::Cold),
    );
}

#[test]
fn the_rent_must_pay_for_the_flush_too() {
    let with_tasks = |s: &mut Standing<'_>| {
        due(s);
        s.tasks = Tasks::Unremembered;
    };
    check(with_tasks, (Care::Keep, Reason::Well));
    check(
        |s| {
            with_tasks(s);
            s.meter.rent += Usd(20_000 * 100 + 480 * 2_000 + 400 * 5_000);
        },
        (Care::Flush, Reason::Rental),
    );
}

#[test]
fn a_child_with_too_much_memory_is_closed_after_a_turn_not_before_one() {
    let policy = Policy { recycle_rss: Some(1_000), ..Policy::default() };
    let heavy = |s: &mut Standing<'_>| s.rss = 1_001;
    check_with(policy, Moment::Boundary, heavy, (Care::Close, Reason::Memory));
    check_with(policy, Moment::Boundary, |s| s.rss = 1_000, (Care::Keep, Reason::Well));
    check_with(policy, Moment::IdleDeadline, heavy, (Care::Close, Reason::Memory));
    let late = |s: &mut Standing<'_>| {
        heavy(s);
        s.now = s.used.plus(Duration::from_secs(3_600 - 72));
    };
    check_with(policy, Moment::IdleDeadline, late, (Care::Close, Reason::Memory));
    check_with(policy, Moment::Mail, heavy, (Care::Keep, Reason::Well));
    check_with(
        policy,
        Moment::Boundary,
        |s| {
            heavy(s);
            due(s);
        },
        (Care::Refresh, Reason::Rental),
    );
}

/// What is decided 72 seconds before the hour is over, after such gaps (in minutes).
#[track_caller]
fn check_idle(gaps: &[u64], change: impl FnOnce(&mut Standing<'_>), expected: (Care, Reason)) {
    let price = Price::unknown("x");
    let mut seen = Gaps::default();
    gaps.iter().for_each(|gap| seen.record(Duration::from_secs(gap * 60)));
    let mut standing = standing(&price, &seen);
    standing.prefix = R;
    change(&mut standing);
    let policy = Policy { keep_warm: KeepWarm::Auto, ..Policy::default() };
    let look = next_look(&standing, &policy).expect("a deadline");
    assert_eq!(look, standing.used.plus(Duration::from_secs(3_600 - 72)));
    standing.now = look;
    assert_eq!(next_look(&standing, &policy), None);
    assert_eq!(care(&standing, Moment::IdleDeadline, &policy), expected);
}

#[test]
fn a_ping_is_sent_where_the_odds_of_a_return_are_worth_its_price() {
    let (ping, let_go) = ((Care::Ping, Reason::ReturnLikely), (Care::Keep, Reason::LetGo));
    check_idle(&[], |_| {}, let_go);
    check_idle(&[100; 8], |_| {}, ping);
    check_idle(&[3_000; 8], |_| {}, let_go);
    // The bar is 100 R + 150,000 to 1,900 R: 5.8 of a hundred.
    check_idle(&[&[100; 6][..], &[3_000; 94]].concat(), |_| {}, ping);
    check_idle(&[&[100; 5][..], &[3_000; 95]].concat(), |_| {}, let_go);
    // It is higher for a longer session: a ping reads more and saves no more.
    check_idle(&[&[100; 6][..], &[3_000; 94]].concat(), |s| s.prefix = 2 * R, let_go);
}

#[test]
fn pings_end_when_they_have_cost_what_they_could_save() {
    let spent = |pings, rest| {
        move |s: &mut Standing<'_>| {
            s.meter.pings = pings;
            s.meter.pinged = Usd(R * 1_900 - rest);
        }
    };
    let one = R * 100 + 50 * 2_000 + 10 * 5_000;
    check_idle(&[100; 8], spent(17, one), (Care::Ping, Reason::ReturnLikely));
    check_idle(&[100; 8], spent(18, one - 1), (Care::Keep, Reason::PingsSpent));
}

#[test]
fn open_tasks_are_written_down_before_the_cache_forgets() {
    let (price, gaps) = (Price::unknown("x"), Gaps::default());
    let mut standing = Standing { tasks: Tasks::Unremembered, ..standing(&price, &gaps) };
    let policy = Policy::default();
    let look = next_look(&standing, &policy).expect("a deadline");
    standing.now = look;
    assert_eq!(care(&standing, Moment::IdleDeadline, &policy), (Care::Flush, Reason::OpenTasks));
    standing.tasks = Tasks::Safe;
    assert_eq!(care(&standing, Moment::IdleDeadline, &policy), (Care::Keep, Reason::LetGo));
    standing.now = Millis(HOUR);
    assert_eq!(next_look(&standing, &policy), None);
}

#[test]
fn too_early_a_look_decides_nothing() {
    let policy = Policy { keep_warm: KeepWarm::Auto, ..Policy::default() };
    check_with(policy, Moment::IdleDeadline, |s| s.tasks = Tasks::Unremembered, (Care::Keep, Reason::Well));
}

#[test]
fn a_child_is_looked_at_for_as_long_as_it_lives_and_may_grow_too_large() {
    let policy = Policy { recycle_rss: Some(1_000), ..Policy::default() };
    let (price, gaps) = (Price::unknown("x"), Gaps::of(&[]));
    let mut standing = standing(&price, &gaps);
    assert_eq!(next_look(&standing, &policy), None, "there is no child");
    standing.rss = 1;
    assert_eq!(next_look(&standing, &Policy::default()), None, "it may be of any size");
    let deadline = standing.used.plus(Duration::from_secs(3_600 - 72));
    assert_eq!(next_look(&standing, &policy), Some(deadline));
    standing.now = deadline;
    assert_eq!(next_look(&standing, &policy), Some(deadline.plus(Duration::from_secs(3_600))));
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = Reason::ALL.into_iter().map(Reason::name).collect();
    assert_eq!(names.len(), Reason::ALL.len());
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
}

prop_compose! {
    fn any_policy()(warm in any::<bool>(), flush in any::<bool>(), now in any::<bool>(), note in any::<bool>(), watermark in 1_u64..=100, rss in prop::option::of(0_u64..100)) -> Policy {
        Policy {
            keep_warm: if warm { KeepWarm::Auto } else { KeepWarm::Off },
            flush: if flush { Flushing::Auto } else { Flushing::Off },
            apply: if now { Apply::Now } else { Apply::AtCheapPoint },
            on_redaction: if note { OnRedaction::Note } else { OnRedaction::Refresh },
            watermark,
            recycle_rss: rss,
        }
    }
}

fn any_moment() -> impl Strategy<Value = Moment> {
    prop_oneof![Just(Moment::Boundary), Just(Moment::Mail), Just(Moment::IdleDeadline)]
}

/// Numbers that a standing is made of: used, now, prefix, ahead, rehydrated, shared, rent, rss.
type Numbers = (u64, u64, u64, u64, u64, u64, u64, u64);
/// Gaps, and the choices: tasks, marks, word.
type Choices = (Vec<u64>, u8, Vec<u8>, u8);

fn any_numbers() -> impl Strategy<Value = Numbers> {
    let (at, size) = (0..3 * HOUR, 0_u64..300_000);
    (at.clone(), at, size.clone(), 0_u64..50_000, size.clone(), size, 0_u64..1_000_000_000, 0_u64..200)
}

fn any_choices() -> impl Strategy<Value = Choices> {
    (prop::collection::vec(0_u64..20_000, 0..40), 0_u8..2, prop::collection::vec(0_u8..5, 0..2), 0_u8..5)
}

fn with<T>(numbers: &Numbers, choices: &Choices, look: impl FnOnce(&Standing<'_>) -> T) -> T {
    let price = Price::unknown("x");
    let mut gaps = Gaps::default();
    choices.0.iter().for_each(|gap| gaps.record(Duration::from_secs(*gap)));
    let marks = [Mark::Poisoned, Mark::Tainted, Mark::CliVersion, Mark::Cwd, Mark::Stale];
    let meter = Meter {
        rehydrated: numbers.4,
        shared: numbers.5.min(numbers.4),
        rent: Usd(numbers.6),
        ..Meter::default()
    };
    look(&Standing {
        used: Millis(numbers.0),
        idle_since: Millis(numbers.0),
        now: Millis(numbers.0 + numbers.1),
        prefix: numbers.2,
        ahead: numbers.3,
        meter,
        rss: numbers.7,
        tasks: [Tasks::Safe, Tasks::Unremembered][usize::from(choices.1)],
        marks: choices.2.iter().map(|mark| marks[usize::from(*mark)]).collect(),
        word: [Some(Word::Refresh), Some(Word::Flush), Some(Word::Keep)]
            .get(usize::from(choices.3))
            .copied()
            .flatten(),
        ..standing(&price, &gaps)
    })
}

proptest! {
    #[test]
    fn a_cold_session_with_more_than_a_new_one_is_never_gone_on_with(numbers in any_numbers(), choices in any_choices(), policy in any_policy()) {
        with(&numbers, &choices, |standing| {
            let (decided, _) = care(standing, Moment::Mail, &policy);
            if !standing.is_warm() && standing.prefix > standing.meter.rehydrated {
                prop_assert_eq!(decided, Care::Refresh);
            }
            Ok(())
        })?;
    }

    #[test]
    fn nothing_is_asked_of_a_cold_session(numbers in any_numbers(), choices in any_choices(), moment in any_moment(), policy in any_policy()) {
        with(&numbers, &choices, |standing| {
            let (decided, _) = care(standing, moment, &policy);
            if !standing.is_warm() {
                prop_assert!(!matches!(decided, Care::Ping | Care::Flush));
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_ping_is_sent_unless_it_was_chosen_and_none_but_at_an_idle_deadline(numbers in any_numbers(), choices in any_choices(), moment in any_moment(), policy in any_policy()) {
        with(&numbers, &choices, |standing| {
            let (decided, reason) = care(standing, moment, &policy);
            let may = policy.keep_warm == KeepWarm::Auto && moment == Moment::IdleDeadline;
            prop_assert!(may || decided != Care::Ping);
            prop_assert_eq!(decided == Care::Ping, reason == Reason::ReturnLikely);
            Ok(())
        })?;
    }

    #[test]
    fn the_same_standing_is_decided_the_same(numbers in any_numbers(), choices in any_choices(), moment in any_moment(), policy in any_policy()) {
        let decide = || with(&numbers, &choices, |standing| (care(standing, moment, &policy), next_look(standing, &policy)));
        prop_assert_eq!(decide(), decide());
    }

    #[test]
    fn the_next_look_lies_ahead_and_before_the_cache_forgets(numbers in any_numbers(), choices in any_choices(), policy in any_policy()) {
        with(&numbers, &choices, |standing| {
            if let Some(look) = next_look(standing, &policy) {
                prop_assert!(standing.now < look);
                let then = Standing { now: look, ..standing.clone() };
                let is_weighed = policy.recycle_rss.is_some() && standing.rss > 0;
                let once_more = is_weighed && look == standing.now.plus(standing.ttl.duration());
                prop_assert!(then.is_warm() || once_more);
            }
            Ok(())
        })?;
    }
}
