use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::config::prices;
use crate::persona::session::care::must_end;
use crate::persona::session::price::{Prices, Usd};
use crate::persona::session::terms::PING;

/// The seed of the random sequences.
const SEED: [u8; 32] = *b"arrivals that nobody knows ahead";
const SEQUENCES: u32 = 1_000;

/// A sequence: gaps in seconds with the tokens of mail and reply, and the scene by index and size.
#[derive(Clone, Debug)]
struct Drawn {
    turns: Vec<(u64, u64, u64)>,
    model: usize,
    hour: bool,
    fixed: u64,
    own: u64,
    rewritten: bool,
}

prop_compose! {
    fn sequence(longest: usize)(
        turns in prop::collection::vec((gap(), size(60_000), size(4_000)), 1..longest),
        model in 0_usize..21,
        hour in any::<bool>(),
        fixed in 4_096_u64..20_000,
        own in size(12_000),
        rewritten in any::<bool>(),
    ) -> Drawn {
        Drawn { turns, model, hour, fixed, own, rewritten }
    }
}

/// Seconds, mostly within a time to live, often just around one, sometimes long.
fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..300, 2 => 300_u64..3_600, 1 => 298_u64..303, 1 => 3_595_u64..3_605, 1 => 3_600_u64..100_000]
}

/// Mostly small, sometimes large.
fn size(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![6 => 1..most / 100, 2 => 1..most / 10, 1 => 1..most]
}

impl Drawn {
    fn with<T>(&self, prices: &Prices, look: impl FnOnce(&[Turn], &Scene<'_>) -> T) -> T {
        let price = &prices.models[self.model % prices.models.len()];
        let mut at = Duration::ZERO;
        let turn = |&(gap, mail, reply): &(u64, u64, u64)| {
            at += Duration::from_secs(gap);
            Turn { at, added: Added { mail, reply }, deliveries: 1 }
        };
        let turns: Vec<Turn> = self.turns.iter().map(turn).collect();
        let assumed = Assumptions {
            fixed: self.fixed,
            rehydrated: self.fixed + self.own,
            sharing: if self.rewritten { Sharing::Rewritten } else { Sharing::Shared },
            ..ASSUMED
        };
        let ttl = if self.hour { Ttl::OneHour } else { Ttl::FiveMinutes };
        look(&turns, &Scene { price, ttl, assumed })
    }
}

/// Policies without and with keep-warm.
fn policies() -> [Policy; 2] {
    [Policy::default(), Policy { keep_warm: KeepWarm::Auto, ..Policy::default() }]
}

/// What no way to take these turns can cost less than, with gaps as they are.
fn floor(turns: &[Turn], scene: &Scene<'_>) -> Usd {
    let terms = scene.terms();
    let mut last = None;
    let cost = |turn: &Turn| {
        let is_warm = last.replace(turn.at).is_some_and(|last| turn.at - last < scene.ttl.duration());
        if is_warm { terms.warm(terms.rehydrated, turn.added) } else { terms.refresh_cold(turn.added) }
    };
    turns.iter().map(cost).sum()
}

/// Holds a law for a thousand sequences.
fn holds(longest: usize, law: impl Fn(&[Turn], &Scene<'_>)) {
    let config = Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &SEED));
    let prices = prices::shipped().expect("well-formed");
    let held = runner.run(&sequence(longest), |drawn| {
        drawn.with(&prices, &law);
        Ok(())
    });
    if let Err(error) = held {
        panic!("{error}");
    }
}

/// The bound that was promised is 2·OPT + B; as rent is looked at one turn ahead, the B is not even needed.
#[test]
fn excess_is_at_most_twice_that_of_the_optimum() {
    holds(120, |turns, scene| {
        let floor = floor(turns, scene);
        let ours = ours::replay(turns, scene, &Policy::default()).cost;
        let optimum = optimum::optimum(turns, scene, &Policy::default());
        assert!(floor <= optimum, "{floor} {optimum}");
        let (ours, optimum) = (ours.minus(floor), optimum.minus(floor));
        assert!(ours.0 <= 2 * optimum.0, "{ours} is more than twice {optimum}");
    });
}

#[test]
fn the_optimum_is_at_most_ours_and_keeping_warm_never_makes_it_worse() {
    holds(120, |turns, scene| {
        let [off, auto] = policies().map(|policy| {
            let optimum = optimum::optimum(turns, scene, &policy);
            let ours = ours::replay(turns, scene, &policy).cost;
            assert!(optimum <= ours, "{optimum} {ours}");
            optimum
        });
        assert!(auto <= off, "{auto} {off}");
    });
}

#[test]
fn ours_pings_only_if_told_to_and_never_for_more_than_a_rebuild_a_gap() {
    holds(120, |turns, scene| {
        let [off, auto] = policies().map(|policy| ours::replay(turns, scene, &policy));
        assert_eq!(off.pings, 0);
        let terms = scene.terms();
        let least = terms.warm(terms.rehydrated, PING).0;
        assert!(auto.pings * least <= turns.len() as u64 * terms.saved_by_warmth(terms.rehydrated).0);
    });
}

/// Every way to take a few turns, one after the other.
fn least(rules: (&Terms<'_>, &Scene<'_>, &Policy), turns: &[Turn], at: usize, prefix: u64) -> Usd {
    let (terms, scene, policy) = rules;
    let Some(turn) = turns.get(at) else { return Usd::default() };
    let (added, grown) = (turn.added, turn.added.tokens());
    if at == 0 {
        return terms.refresh_cold(added) + least(rules, turns, 1, terms.rehydrated + grown);
    }
    let gap = turn.at - turns[at - 1].at;
    let most_pings = if policy.keep_warm == KeepWarm::Auto { 40 } else { 0 };
    let reach = scene.ttl.duration() - Duration::from_millis(1);
    let ends = must_end(terms, scene.price.window, policy.watermark, prefix, grown).is_some();
    let mut best = None;
    for pings in 0..=most_pings {
        let is_warm = gap <= reach * (pings + 1);
        if pings > 0 && !is_warm {
            continue;
        }
        let paid = Usd(terms.warm(prefix, PING).0 * u64::from(pings));
        let begin = if is_warm { terms.refresh_warm(added) } else { terms.refresh_cold(added) };
        let mut ways = vec![paid + begin + least(rules, turns, at + 1, terms.rehydrated + grown)];
        if !ends {
            let go_on = if is_warm { terms.warm(prefix, added) } else { terms.cold(prefix, added) };
            ways.push(paid + go_on + least(rules, turns, at + 1, prefix + grown));
        }
        best = best.into_iter().chain(ways).min();
        if is_warm {
            break;
        }
    }
    best.expect("a turn can be taken")
}

#[test]
fn the_optimum_is_the_least_of_all_ways() {
    holds(7, |turns, scene| {
        for policy in policies() {
            let terms = scene.terms();
            let all = least((&terms, scene, &policy), turns, 0, 0);
            assert_eq!(optimum::optimum(turns, scene, &policy), all);
        }
    });
}

fn evenly(every: u64, count: u64, deliveries: u64) -> Vec<Arrival> {
    (0..count).map(|turn| Arrival { at: Duration::from_secs(turn * every), deliveries }).collect()
}

fn at<T>(model: &str, ttl: Ttl, look: impl FnOnce(&Scene<'_>) -> T) -> T {
    let price = prices::shipped().expect("well-formed").find(model).expect("known");
    look(&Scene { price: &price, ttl, assumed: ASSUMED })
}

#[test]
fn with_linear_growth_the_rent_ends_a_generation_where_the_formula_does() {
    at("claude-sonnet-4-6", Ttl::OneHour, |scene| {
        let report = simulate(&evenly(60, 2_000, 3), scene);
        // N* = sqrt(2B / (b r a)), B = b (w - r) (R - S), a = 490: 7,410 * 2 / (0.1 * 490), squared 302.4.
        let turns = 2_000.0 / report.ours.refreshes.values().sum::<u64>() as f64;
        assert!((turns - 302.4_f64.sqrt()).abs() < 1.0, "{turns}");
        assert!(report.ratio() < 1.002, "{}", report.ratio());
    });
}

#[test]
fn never_refreshing_pays_for_every_cold_return() {
    at("claude-opus-5-5", Ttl::OneHour, |scene| {
        let report = simulate(&evenly(7_200, 3, 3), scene);
        let turn = 490 * 8_000 + 250 * 20_000;
        assert_eq!(report.append, Usd((3 * 15_900 + 490 + 980) * 8_000 + 3 * turn));
        assert_eq!(report.ours.cost, Usd(3 * 15_900 * 8_000 + 3 * turn));
        assert_eq!(report.fresh, Usd(3 * (12_000 + 60 * 45 + 240) * 8_000 + 3 * 250 * 20_000));
        assert_eq!(report.optimum, report.ours.cost);
        // Two pings of the same length would have kept it warm.
        assert_eq!(report.optimum_warm.minus(Usd(15_900 * 8_000 + 3 * turn)), Usd(optimum_growth()));
    });
}

/// Twice: two pings, and a read of a prefix that has grown by one turn, then by two.
fn optimum_growth() -> u64 {
    let ping = |prefix: u64| prefix * 200 + 50 * 8_000 + 10 * 20_000;
    [16_390_u64, 16_880].map(|prefix| 2 * ping(prefix) + prefix * 200).into_iter().sum()
}

#[test]
fn a_return_every_two_hours_is_learned_and_kept_warm() {
    at("claude-opus-5-5", Ttl::OneHour, |scene| {
        let report = simulate(&evenly(5_400, 100, 3), scene);
        assert!(report.ours_warm.pings > 80, "{:?}", report.ours_warm);
        assert!(report.ours_warm.cost.0 * 2 < report.ours.cost.0, "{report:?}");
    });
}

#[test]
fn no_arrivals_cost_nothing() {
    at("claude-opus-5-5", Ttl::OneHour, |scene| {
        let report = simulate(&[], scene);
        assert_eq!((report.fresh, report.ours.cost, report.optimum), Default::default());
        assert_eq!(report.ratio(), 1.0);
    });
}
