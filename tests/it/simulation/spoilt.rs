//! Sessions that are not to be trusted any more: put aside and told, once more in the next one, then held.

use persona_bridge::bridge::orders::Order;
use persona_bridge::mind::scripted::Outcome;
use persona_bridge::persona::Ending;
use persona_bridge::persona::ending::DEATHS;

use super::stage::{EIR, counts};
use super::world::World;
use crate::fake::homeserver::Flavour;

/// What spoils a session, what then shows the same in the next one, and how it is told.
fn spoilers() -> [(Vec<Outcome>, Vec<Outcome>, &'static str); 3] {
    let rejected = || Outcome::Ends(Ending::Rejected { reason: "the API refused it (400)".into() });
    let poisoned = || Outcome::Ends(Ending::Poisoned { reason: "it was compacted".into() });
    let deaths = || (0..DEATHS).map(|_| Outcome::Dies).collect::<Vec<_>>();
    [
        (vec![rejected(), rejected()], vec![rejected()], "the API refused it (400)"),
        (vec![poisoned()], vec![poisoned()], "it was compacted"),
        (deaths(), deaths(), "died"),
    ]
}

#[test]
fn a_spoilt_session_is_put_aside_and_told_and_the_next_one_answers() {
    for (spoils, _, reason) in spoilers() {
        let mut world = World::new(Flavour::Synapse);
        world.stumbles(spoils);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, first");
            stage.said(&swarm, EIR, 1).await;
            stage.alice().say(&swarm, "Eir, second");
            stage.said(&swarm, EIR, 2).await;
            stage.calm().await;
            counts(&stage.home.bodies(&swarm, EIR), &[("first", 1), ("second", 1)]);
            let told = format!("session 1 of eir is not used any more: {reason}; its file is put aside");
            counts(&stage.told(), &[(told.as_str(), 1), ("begins session 2", 1), ("begins session 3", 0)]);
            assert_eq!(stage.unready().await, Vec::<String>::new());
        });
        assert_eq!((world.records("eir"), world.quarantined("eir")), ((1, 0), 1), "{reason}");
    }
}

#[test]
fn what_spoils_the_next_session_too_is_held_until_it_is_released() {
    for (spoils, again, reason) in spoilers() {
        let mut world = World::new(Flavour::Synapse);
        world.stumbles(spoils.into_iter().chain(again));
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, first");
            stage.pass(240_000).await;
            let told = format!("eir could not answer 1 messages, they are held: {reason}");
            counts(&stage.told(), &[(told.as_str(), 1), ("is not used any more", 2)]);
            stage.alice().say(&swarm, "Eir, second");
            stage.said(&swarm, EIR, 1).await;
            stage.calm().await;
            assert_eq!(stage.unready().await, Vec::<String>::new());
            assert_eq!(stage.order(&Order::Release { of: None }.to_json()).await.0, 200);
            stage.said(&swarm, EIR, 2).await;
            stage.calm().await;
            counts(&stage.home.bodies(&swarm, EIR), &[("first", 1), ("second", 1)]);
        });
        assert_eq!((world.records("eir"), world.quarantined("eir")), ((1, 0), 2), "{reason}");
    }
}
