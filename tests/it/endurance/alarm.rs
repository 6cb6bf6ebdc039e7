//! A session that the CLI has spoilt: the next one begins at once, and operators see that it did.

use std::os::unix::fs::PermissionsExt;

use persona_bridge::demo::homeserver::Kind;
use persona_bridge::mind::claude::PINNED_VERSION;

use super::ground::one;
use super::rooms::control_room;
use crate::bridge::{Bridge, Setup, alias, persona};
use crate::servers::{self, SERVER_NAME, Server};
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_compacted_is_told_logged_and_shown_until_she_answers() {
    let test = "a_session_that_is_compacted_is_told_logged_and_shown_until_she_answers";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mut alice = User::register(&server, "alice").await;
    let mut bridge = Bridge::spawn(&server, &setup(&server, &alice.id, "compacts-once")).await;
    let control = alice.join(&control_room(&bridge)).await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    alice.say_to(&room, &eir, "hello").await;
    let alarm = "session 1 of eir is not used any more: the CLI has compacted the session";
    let told = alice.event("alarm", |event| event.room == control && event.body().contains(alarm)).await;
    assert!(told.sender.contains("persona-bridge"), "{told:?}");
    let (status, reasons) = bridge.get("ready").await.unwrap();
    assert!(status == 503 && reasons.contains(alarm), "{status} {reasons}");
    // Her next session has the same mail, and answers it only now.
    std::fs::write(bridge.dir.join("minds/eir/home/go"), "").unwrap();
    alice.event("her answer", |event| event.room == room && event.is_message_of(&eir)).await;
    bridge.logs("her new session answers").await;
    bridge.ready().await;
    assert!(bridge.is_ready().await);
    let log = bridge.log();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert!(errors.len() == 1 && errors[0].contains("her session is not used any more"), "{errors:#?}");
    bridge.stop().await;
    let alarms = alice.timeline(&control).await.iter().filter(|event| event.body().contains(alarm)).count();
    assert_eq!(alarms, 1);
    assert_eq!(alice.said_by(&room, &eir).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_which_the_process_dies_again_and_again_at_one_line_is_put_aside() {
    let test = "a_session_in_which_the_process_dies_again_and_again_at_one_line_is_put_aside";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mut alice = User::register(&server, "alice").await;
    let bridge = Bridge::spawn(&server, &setup(&server, &alice.id, "dies-in-its-first-session")).await;
    let control = alice.join(&control_room(&bridge)).await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    alice.say_to(&room, &eir, "hello").await;
    alice.event("her answer", |event| event.room == room && event.is_message_of(&eir)).await;
    let alarm = "not used any more: the process ended in the middle: exit code 3; its file is put aside";
    alice.event("alarm", |event| event.room == control && event.body().contains(alarm)).await;
    let deaths = std::fs::read_to_string(bridge.dir.join("minds/eir/home/deaths")).unwrap();
    assert_eq!(deaths.lines().count(), 5);
    bridge.ready().await;
}

/// The stand-in for the CLI, of the version that is wanted, which does what `model` names.
fn setup(server: &Server, admin: &str, model: &str) -> Setup {
    let dir = server.folder("bridge");
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake/claude.sh");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo '{PINNED_VERSION} (Claude Code)' && exit\nexec {stand_in} \"$@\"\n"
    );
    for (name, text, mode) in [("claude", script.as_str(), 0o755), ("key", "sk-of-a-test", 0o600)] {
        std::fs::write(dir.join(name), text).unwrap();
        std::fs::set_permissions(dir.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let mind = format!(
        "[mind]\nkind = \"claude\"\n[mind.claude]\nprogram = \"./claude\"\nmodel = \"{model}\"\n\
         credential = {{ file = \"key\" }}\nstate = \"minds\"\n"
    );
    let permissions = format!("\"{SERVER_NAME}\" = \"chat\"\n\"{admin}\" = \"admin\"\n");
    Setup { mind, permissions, ..one() }
}
