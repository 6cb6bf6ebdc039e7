//! Pings keep a cache warm only while the API may be asked at all.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::{Lever, Order};
use persona_bridge::config::prices;
use persona_bridge::conversation::prompt::PING;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::session::Usd;
use persona_bridge::persona::session::care::KeepWarm;
use persona_bridge::persona::{Budget, Ending};

use super::care::counted;
use super::stage::Stage;
use super::world::{World, usual};

/// A model that is priced.
const MODEL: &str = "claude-sonnet-4-5";
/// Between two mails: longer than the cache keeps what was not used.
const GAP: u64 = 480_000;

fn pings(stage: &Stage) -> usize {
    stage.words("eir").matches(PING).count()
}

/// A world in which it pays to keep Eir warm once she has had some mail.
fn warm_world() -> World {
    let mut world = counted(200_000);
    world.without_beats();
    world.config.care.keep_warm = KeepWarm::Auto;
    world
}

/// How often Eir is pinged after the last of her mail, behind which something happens.
fn pinged_after(mut world: World, happens: impl AsyncFnOnce(&Stage)) -> usize {
    world.play(async |stage| {
        for number in 0..6 {
            stage.ask(&format!("number-{number};")).await;
            stage.pass(GAP).await;
        }
        stage.ask("the-last;").await;
        let before = pings(stage);
        assert!(before > 0, "it pays");
        happens(stage).await;
        stage.pass(GAP).await;
        pings(stage) - before
    })
}

/// Brage's mail ends so, whatever Eir's does.
fn brage_meets(ending: Ending) -> World {
    let mut world = warm_world();
    let others = world.script.clone();
    world.script = Arc::new(move |who, words| match who {
        "brage" => Scripted { outcome: Outcome::Ends(ending.clone()), ..usual() },
        _ => others(who, words),
    });
    world
}

async fn ask_brage(stage: &Stage) {
    let swarm = stage.swarm().await;
    stage.alice().say(&swarm, "Brage, hello");
    stage.until("Brage is asked", || stage.thoughts("brage") > 0).await;
    stage.calm().await;
}

#[test]
fn with_nothing_in_the_way_she_is_pinged() {
    assert!(pinged_after(warm_world(), async |_| {}) > 0);
    let bad_luck = Ending::Transient { reason: "overloaded".into(), retry_after: None };
    assert!(pinged_after(brage_meets(bad_luck), ask_brage) > 0);
}

#[test]
fn the_brake_holds_pings() {
    let braked = async |stage: &Stage| {
        let order = Order::Brake { lever: Lever::Hold, persona: None };
        assert_eq!(stage.order(&order.to_json()).await.0, 200);
    };
    assert_eq!(pinged_after(warm_world(), braked), 0);
}

#[test]
fn a_spent_budget_holds_pings() {
    let mut world = warm_world();
    world.config.prices = prices::shipped().expect("they are read");
    world.config.budget = Budget { per_day: Some(Usd::of_dollars(9.0)), ..Budget::default() };
    let others = world.script.clone();
    world.script = Arc::new(move |who, words| {
        let mut thought = others(who, words);
        thought.usage.requests.iter_mut().for_each(|request| request.model = MODEL.to_owned());
        thought.usage.money = Some(if words.contains("Eir, the-last;") { 9.0 } else { 0.001 });
        thought
    });
    assert_eq!(pinged_after(world, async |_| {}), 0);
}

#[test]
fn a_limit_of_the_plan_holds_pings_whoever_has_met_it() {
    let retry_after = Some(Duration::from_secs(3 * 3_600));
    let limited = Ending::Transient { reason: "the plan's limit is reached (429)".into(), retry_after };
    assert_eq!(pinged_after(brage_meets(limited), ask_brage), 0);
}

#[test]
fn a_refused_account_holds_pings_whoever_was_refused() {
    let refused = Ending::Refused { reason: "the key is revoked (401)".into() };
    assert_eq!(pinged_after(brage_meets(refused), ask_brage), 0);
}
