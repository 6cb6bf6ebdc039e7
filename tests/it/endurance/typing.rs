//! Who types, as a real Synapse tells it.

use std::time::Duration;

use super::ground::one;
use crate::bridge::{Bridge, Setup, alias, persona};
use crate::servers;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn she_waits_for_whom_synapse_tells_to_type_and_no_longer() {
    let test = "she_waits_for_whom_synapse_tells_to_type_and_no_longer";
    let Some(server) = servers::synapse_that_tells_who_types(test).await else { return };
    let setup = Setup { settle: "500ms".to_owned(), typing_waits: true, ..one() };
    let _bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    // Before the question, so that the server has told it when that comes.
    alice.types(&room, true).await;
    let asked = alice.say_to(&room, &eir, "w0001").await;
    // She types for several times as long as the room must be quiet, and for less than it may take.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(alice.said_by(&room, &eir).await.is_empty(), "she waits");
    alice.types(&room, false).await;
    let answer = alice.event("she answers", |seen| seen.is_message_of(&eir)).await;
    let begun = alice.event("the question", |seen| seen.event_id == asked).await;
    assert!((4_000..9_500).contains(&(answer.at - begun.at)), "{} ms", answer.at - begun.at);
}
