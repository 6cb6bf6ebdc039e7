//! What admins are shown in chat of how things stand.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::conversation::register::DM;
use persona_bridge::conversation::{RegisterName, Wakes};
use persona_bridge::mind::scripted::Scripted;

use super::commands::{answer, desk, world};
use super::stage::{EIR, Stage};
use super::world::usual;
use crate::fake::homeserver::Flavour;

const MINUTE: u64 = 60_000;

#[test]
fn a_direct_chat_that_is_stopped_is_named_only_where_nobody_else_reads() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let (swarm, desk) = (stage.swarm().await, desk(stage).await);
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "stop");
        stage.alice().say(&swarm, "brage stop");
        stage.calm().await;
        for command in ["status", "brake show", "release", "pause brage", "brake release brage"] {
            let there = answer(stage, &swarm, &format!("!persona {command}")).await;
            assert!(
                there.contains("everyone in a direct chat") && !there.contains(&dm),
                "{command}: {there}"
            );
            let alone = answer(stage, &desk, command).await;
            assert!(alone.contains(&format!("everyone in {dm}")), "{command}: {alone}");
        }
        stage.alice().say(&swarm, "brage stop");
        stage.calm().await;
        let both = format!("brage in {swarm}");
        assert!(answer(stage, &swarm, "!persona brake show").await.contains(&both));
    });
}

#[test]
fn wakes_of_a_direct_chat_tells_of_its_register() {
    for (wakes, expect) in [
        (Wakes::Addressed, "people wake her with all they say"),
        (Wakes::Anyone, "people wake her with all they say"),
        (Wakes::Nobody, "nobody wakes her by what is said, but an admin who names her"),
    ] {
        let mut world = world(Flavour::Synapse);
        world.config.registers.entry(RegisterName(DM.into())).or_default().heed.wakes = wakes;
        world.play(async |stage| {
            let desk = desk(stage).await;
            let dm = stage.dm(&stage.bob(), EIR).await;
            let told = answer(stage, &desk, &format!("wakes {dm}")).await;
            assert!(told.contains(&format!("eir (register dm): {expect};")), "{told}");
            stage.bob().say(&dm, "hello");
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), usize::from(wakes != Wakes::Nobody));
        });
    }
}

/// What `status` tells of the beat.
async fn beat(stage: &Stage, desk: &str) -> String {
    let status = answer(stage, desk, "status").await;
    status.lines().find(|line| line.contains("beat")).expect("it tells").to_owned()
}

#[test]
fn after_a_start_no_beat_is_told_that_cannot_fall_yet() {
    let mut world = world(Flavour::Synapse);
    let desk = world.play(async |stage| desk(stage).await);
    world.away(Duration::from_secs(24 * 3_600));
    world.play(async |stage| {
        assert_eq!(beat(stage, &desk).await, "the next beat falls 2027-01-16 08:00 UTC at the earliest");
        let next = stage.stats().await["next_beat"].as_u64().expect("it stands there");
        assert!(next > stage.now(), "{next}");
        stage.pass(MINUTE).await;
        assert_eq!(beat(stage, &desk).await, "the next beat falls 2027-01-16 08:30 UTC at the earliest");
    });
}

#[test]
fn a_beat_that_waits_is_told_with_why() {
    let mut world = world(Flavour::Synapse);
    world.config.heart.beat = Duration::from_secs(600);
    world.config.heart.cooldown = Duration::from_secs(2 * 3_600);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(20 * 60), ..usual() });
    world.play(async |stage| {
        let (swarm, desk) = (stage.swarm().await, desk(stage).await);
        for who in ["Eir", "Brage"] {
            stage.alice().say(&swarm, &format!("{who}, hello"));
        }
        stage.pass(MINUTE).await;
        stage.bob().say(&swarm, "chat");
        stage.pass(10 * MINUTE).await;
        let told = beat(stage, &desk).await;
        assert_eq!(told, "the next beat is due and waits: whoever has mail for it thinks");
        stage.pass(20 * MINUTE).await;
        let told = beat(stage, &desk).await;
        let expect = "the next beat is due and falls 2027-01-15 10:20 UTC at the earliest: whoever has mail for it cools down";
        assert_eq!(told, expect);
        answer(stage, &desk, "brake").await;
        stage.calm().await;
        let told = beat(stage, &desk).await;
        assert_eq!(told, "no beat grants anybody a turn as things stand: nobody may be asked");
    });
}
