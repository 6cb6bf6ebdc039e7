//! Words that are fed once more: the same, for as long as a cache may have them.

use persona_bridge::mind::scripted::Outcome;

use super::stage::{EIR, on_both};
use super::world::{Fed, World};
use crate::fake::homeserver::Flavour;

/// Eir's first turn is cut after so long a thought, and much is said before the next life: what she was fed in each.
fn cut_after(flavour: Flavour, ms: u64) -> [Fed; 2] {
    let mut world = World::new(flavour);
    world.stumbles([Outcome::Stalls]);
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        for n in 0..3 {
            stage.bob().say(&swarm, &format!("before-{n}"));
        }
        stage.alice().say(&swarm, "Eir, hello");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.pass(ms).await;
        swarm
    });
    // She is killed before her mind has written the line down.
    world.delete_minds();
    for n in 0..100 {
        world.home.user("bob").say(&swarm, &format!("since-{n}"));
    }
    world.play(async |stage| stage.said(&swarm, EIR, 1).await);
    let fed = world.fed("eir");
    [fed[0].clone(), fed[1].clone()]
}

#[test]
fn a_first_turn_that_was_cut_is_fed_again_in_the_same_words() {
    on_both(|flavour| {
        let [first, second] = cut_after(flavour, 3_000_000);
        assert_eq!(first.words, second.words);
        assert!(first.words.contains("before-2") && !first.words.contains("since-"), "{}", first.words);
    });
}

#[test]
fn words_that_no_cache_can_have_any_more_tell_the_time_anew() {
    on_both(|flavour| {
        let [first, second] = cut_after(flavour, 3_600_000);
        let [before, now] =
            [&first, &second].map(|fed| fed.words.lines().next().unwrap().split_once(", now ").unwrap());
        assert_eq!(before.0, now.0);
        assert_ne!(before.1, now.1);
        assert!(second.words.contains("before-2") && !second.words.contains("since-"), "{}", second.words);
    });
}
