//! What a real claude's reply remembers: taken, stored, before her in her next session, and shown to operators.

use persona_bridge::conversation::prompt::SEAM;
use persona_bridge::demo::homeserver::Kind;
use serde_json::json;
use tokio::process::Command;

use super::ground::{Mind, wait_for_answers};
use crate::bridge::{Bridge, PROGRAM, alias, persona};
use crate::fake::messages_api::Answer;
use crate::servers;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_real_claude_remembers_stands_in_the_next_sessions_first_request() {
    let test = "what_the_real_claude_remembers_stands_in_the_next_sessions_first_request";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mind = Mind::start().await;
    let Some(setup) = mind.setup(&server) else { return };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    let memory =
        json!({"text": "Alice's cat is\nTom.", "about": [alice.id, "cats"], "salience": 0.9, "task": "open"});
    let says = |text: &str| json!([{ "text": text }]);
    mind.api.script([
        Answer::Typed(json!({"say": says("Yes, w0001."), "react": [], "remember": [memory]})),
        Answer::Typed(json!({"say": says("Yes, w0002."), "react": [], "forget": ["n1"]})),
    ]);
    alice.say_to(&room, &eir, "and w0001?").await;
    wait_for_answers(&mut alice, &room, &eir, 1).await;
    let line = format!("(task; in register swarm; about <{}>, \"cats\"): Alice's cat is\n| Tom.\n", alice.id);
    let (ok, said) = run(&bridge, &["memory", "list"]).await;
    assert!(ok && said.starts_with("n1 ") && said.ends_with(&line), "{said}");
    let (ok, said) = run(&bridge, &["memory", "show", "n1"]).await;
    assert!(ok && said.contains("salience: 0.9") && said.contains("confided in: no direct room"), "{said}");
    assert!(!bridge.log().contains("Tom"), "{}", bridge.log());

    assert!(run(&bridge, &["refresh", "--persona", "eir"]).await.0);
    alice.say_to(&room, &eir, "and w0002?").await;
    wait_for_answers(&mut alice, &room, &eir, 2).await;
    let requests = mind.api.requests();
    assert_eq!(requests.len(), 2);
    assert_ne!(requests[0].session, requests[1].session);
    assert!(!requests[0].words().contains("# you remember"));
    let words = requests[1].words();
    let (memories, mail) = words.split_once("# mail for you").unwrap();
    let begin = format!("{SEAM}\n# you remember\nn1 ");
    assert!(memories.starts_with(&begin) && memories.ends_with(&line), "{words}");
    assert!(mail.contains("w0002?") && !mail.contains("Tom"), "{words}");

    bridge.stop().await;
    let (ok, said) = run(&bridge, &["memory", "list", "--persona", "eir"]).await;
    assert!(ok && said == "eir remembers nothing\n", "{said}");
    let (ok, said) = run(&bridge, &["memory", "forget", "n1", "n2"]).await;
    assert!(ok && said == "eir has forgotten 0 of 2\n", "{said}");
    let (ok, said) = run(&bridge, &["memory", "show", "m1"]).await;
    assert!(!ok && said.contains("a label is an n with a number"), "{said}");
}

async fn run(bridge: &Bridge, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).args(["--config", "config.toml"]).current_dir(&bridge.dir);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(said).unwrap())
}
