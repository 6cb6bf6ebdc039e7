//! Many people at once, one of them with a question; and one who may not ask.

use std::time::Duration;

use persona_bridge::conversation::Level;
use persona_bridge::mind::scripted::Scripted;
use persona_bridge::persona::decide::Settle;

use super::stage::{EIR, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

const THINKING: Duration = Duration::from_secs(4);
const SETTLE: Settle = Settle { quiet: Duration::from_millis(1_500), cap: Duration::from_secs(8) };

#[test]
fn a_mention_among_two_hundred_messages_of_a_minute_is_answered_in_time_and_alone() {
    let mut world = World::new(Flavour::Synapse);
    world.config.settle = SETTLE;
    world.script = std::sync::Arc::new(|_, _| Scripted { thinking: THINKING, ..usual() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let people: Vec<_> = (0..20).map(|n| stage.home.user(&format!("guest{n}"))).collect();
        people.iter().for_each(|guest| drop(guest.join(&swarm)));
        let mut asked = None;
        for n in 0..200_usize {
            let words = if n == 97 { "Eir, who-won?".to_owned() } else { format!("chat-{n};") };
            people[n % 20].say(&swarm, &words);
            if n == 97 {
                asked = Some(stage.now());
            }
            stage.pass(300).await;
            if asked.is_some() && !stage.home.bodies(&swarm, EIR).is_empty() {
                let took = stage.now() - asked.take().expect("it was asked");
                let most = SETTLE.cap + THINKING + Duration::from_millis(500);
                assert!(u128::from(took) <= most.as_millis(), "{took} ms");
            }
        }
        stage.pass(60_000).await;
        assert_eq!(asked, None, "it was answered within the minute");
        counts(&stage.home.bodies(&swarm, EIR), &[("who-won?", 1)]);
        assert_eq!(stage.thoughts("eir"), 1, "the chatter wakes nobody");
    });
    let words = world.words("eir");
    assert!(words.contains("chat-0;") && words.contains("chat-96;"), "{words}");
    assert_eq!(words.matches("(to you").count(), 1, "{words}");
    assert!(words.contains("m98 "), "{words}");
}

#[test]
fn who_may_not_talk_to_her_is_told_so_once_in_a_direct_room_and_is_never_fed() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let (dm, swarm) = world.play(async |stage| {
            let swarm = stage.swarm().await;
            let mallory = stage.home.user("mallory");
            mallory.join(&swarm);
            (stage.dm(&mallory, EIR).await, swarm)
        });
        world.config.permissions.0.insert("@mallory:hs.test".into(), Level::Block);
        for _ in 0..2 {
            world.play(async |stage| {
                stage.swarm().await;
                let mallory = stage.home.user("mallory");
                mallory.say(&swarm, "Eir, hush-there");
                mallory.say(&dm, "hush-here");
                mallory.say(&dm, "hush-again");
                stage.pass(5_000).await;
            });
        }
        let told = world.home.bodies(&dm, EIR);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("I may not talk with you"), "{told:?}");
        assert!(world.home.bodies(&swarm, EIR).is_empty());
        assert!(world.fed("eir").is_empty() && world.fed("brage").is_empty());
    });
}
