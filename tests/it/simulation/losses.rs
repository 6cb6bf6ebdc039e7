//! Her session's file is lost: the next session is told from the bridge's own record what was said before, as past.

use std::time::Duration;

use persona_bridge::mind::scripted::Outcome;
use persona_bridge::persona::Ending;

use super::stage::{EIR, counts};
use super::world::{Fed, World};
use crate::fake::homeserver::Flavour;

/// The line before what was said before.
const PAST: &str = "# heard and said here before; your session was lost";

/// What a session is told of the time before it, and the rest of what was fed.
fn split(fed: &Fed) -> (&str, &str) {
    let Some(begin) = fed.words.find(PAST) else { return ("", &fed.words) };
    let end = fed.words[begin..].find("\n# mail for you").expect("the mail follows") + begin;
    (&fed.words[begin..end], &fed.words[end..])
}

/// What each of the lines fed to Eir told of the time before.
fn past(world: &World) -> Vec<String> {
    world.fed("eir").iter().map(|fed| split(fed).0.to_owned()).collect()
}

#[test]
fn where_the_file_is_gone_the_next_session_is_told_what_was_said_once_and_as_past() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        stage.ask("please water the-plants").await;
        stage.ask("and close the-door").await;
    });
    world.delete_minds();
    world.play(async |stage| {
        stage.ask("good morning").await;
        stage.ask("how are you").await;
        let swarm = stage.swarm().await;
        let answers = stage.home.bodies(&swarm, EIR);
        counts(&answers, &[("the-plants", 1), ("the-door", 1), ("good morning", 1), ("how are you", 1)]);
    });
    let told = past(&world);
    assert_eq!(told.iter().map(String::is_empty).collect::<Vec<_>>(), [true, true, false, true]);
    let lines: Vec<&str> = told[2].lines().collect();
    assert!(
        lines[0].ends_with("all of it is past and was answered then, take nothing of it up anew"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "room \"#persona_swarm:hs.test\"");
    let kinds: Vec<&str> = lines[2..].iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind != "|").collect::<Vec<_>>(),
        [&"heard", &"said", &"heard", &"said"]
    );
    assert!(lines[2].ends_with("<@alice:hs.test>: Eir, please water the-plants"), "{lines:?}");
    counts(&told, &[("good morning", 0)]);
}

#[test]
fn refused_twice_she_goes_on_in_a_session_that_is_told_so_and_not_in_one_that_chose_to_end() {
    let mut world = World::new(Flavour::Synapse);
    let refused = || Outcome::Ends(Ending::Final { reason: "refusal".into() });
    world.stumbles([Outcome::Usual, refused(), refused()]);
    world.play(async |stage| {
        stage.ask("the-first").await;
        stage.ask("the-second").await;
        stage.order(&serde_json::json!({ "order": "refresh", "persona": "eir" })).await;
        stage.ask("the-third").await;
    });
    let told = past(&world);
    let told: Vec<&String> = told.iter().filter(|told| !told.is_empty()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    counts(&[told[0].clone()], &[("<@alice:hs.test>: Eir, the-first", 1), ("the-second", 0)]);
}

#[test]
fn a_record_that_itself_is_refused_holds_up_no_later_mail() {
    let mut world = World::new(Flavour::Synapse);
    world.script = std::sync::Arc::new(|_, words| {
        let is_refused = [PAST, "(to you): Eir, the-bad", "(retry)"].iter().any(|part| words.contains(part));
        let refused = Outcome::Ends(Ending::Final { reason: "refusal".into() });
        let outcome = if is_refused { refused } else { Outcome::Usual };
        persona_bridge::mind::scripted::Scripted { outcome, ..super::world::usual() }
    });
    world.play(async |stage| {
        stage.ask("the-first").await;
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, the-bad");
        stage.until("it is held", || stage.told().iter().any(|told| told.contains("are held"))).await;
        stage.ask("the-good").await;
    });
    assert_eq!(world.store().counts().held, 1);
}

#[test]
fn what_was_said_in_a_direct_room_is_told_in_that_room_alone() {
    let mut world = World::new(Flavour::Synapse);
    let dm = world.play(async |stage| {
        stage.ask("the-public").await;
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "the-secret");
        stage.said(&dm, EIR, 1).await;
        let other = stage.dm(&stage.bob(), EIR).await;
        stage.bob().say(&other, "the-other");
        stage.said(&other, EIR, 1).await;
        stage.calm().await;
        dm
    });
    world.delete_minds();
    world.play(async |stage| {
        stage.ask("in-the-swarm").await;
        stage.alice().say(&dm, "in-private");
        stage.said(&dm, EIR, 2).await;
    });
    let fed = world.fed("eir");
    let [swarm, private] = &fed[fed.len() - 2..] else { panic!("two turns") };
    let all = |fed: &Fed| [fed.words.clone()];
    counts(&all(swarm), &[("<@alice:hs.test>: Eir, the-public", 2), ("the-secret", 0), ("the-other", 0)]);
    counts(&[split(private).0.to_owned()], &[("\nheard ", 1), ("<@alice:hs.test>: the-secret", 1)]);
    counts(&all(private), &[("the-public", 0), ("the-other", 0)]);
}

#[test]
fn what_was_taken_back_is_not_told_nor_what_is_older_than_is_kept() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        stage.ask("the-old").await;
        stage.pass(40_000).await;
        let swarm = stage.swarm().await;
        let slip = stage.alice().say(&swarm, "Eir, the-slip");
        stage.said(&swarm, EIR, 2).await;
        stage.ask("the-new").await;
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
    });
    world.delete_minds();
    world.config.care.on_redaction = persona_bridge::persona::session::care::OnRedaction::Note;
    world.config.transcript_keep = Duration::from_secs(30);
    world.play(async |stage| stage.ask("hello").await);
    let told = past(&world).pop().expect("she was fed");
    counts(&[told], &[("the-new", 2), ("the-slip", 0), ("the-old", 0)]);
}

#[test]
fn nothing_is_taken_down_where_the_operator_does_not_want_it() {
    let mut world = World::new(Flavour::Synapse);
    world.config.transcript_keep = Duration::ZERO;
    world.play(async |stage| stage.ask("the-first").await);
    world.delete_minds();
    world.config.transcript_keep = Duration::from_secs(7 * 24 * 3600);
    world.play(async |stage| stage.ask("the-second").await);
    assert_eq!(past(&world).concat(), "");
}
