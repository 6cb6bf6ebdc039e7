//! What operators ask and order of a real claude's sessions, asked for beside the running bridge and after it.

use std::collections::BTreeSet;

use persona_bridge::demo::homeserver::Kind;
use serde_json::{Value, json};
use tokio::process::Command;

use super::ground::{Mind, wait_for_answers, word};
use crate::bridge::{Bridge, PROGRAM, alias, persona};
use crate::servers;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn each_request_of_the_real_claude_stands_in_the_ledger() {
    let test = "each_request_of_the_real_claude_stands_in_the_ledger";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mind = Mind::start().await;
    let Some(setup) = mind.setup(&server) else { return };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    for number in 1..=2 {
        alice.say_to(&room, &eir, &format!("and {}?", word(number))).await;
        wait_for_answers(&mut alice, &room, &eir, number as usize).await;
    }
    let beside = ledger(&bridge, &["--json"]).await;
    assert_eq!(mind.api.requests().len(), 2);
    let sum = &beside["personas"]["eir"];
    assert_eq!((&sum["turns"], &sum["requests"]), (&json!(2), &json!(2)), "{beside}");
    let tokens = |kind: &str| sum["tokens"][kind].as_u64().unwrap_or_default();
    // The second request reads what the first has written.
    assert!(tokens("cache_read") > 500 && tokens("cache_written_5m") > tokens("cache_read"), "{beside}");
    assert_eq!((tokens("cache_written_1h"), tokens("output")), (0, 40), "{beside}");
    assert_eq!(sum["verdicts"], json!({"first": 1, "hit": 1}), "{beside}");
    assert_eq!((&sum["unpriced"], &sum["refreshes"]), (&json!(0), &json!({})), "{beside}");
    assert!(sum["money"].as_f64().is_some_and(|money| money > 0.0), "{beside}");
    // The CLI and the price table reckon alike.
    assert!(!bridge.log().contains("reckons another price"), "{}", bridge.log());
    bridge.stop().await;
    let after = ledger(&bridge, &["--json", "--persona", "eir", "--since", "1h"]).await;
    assert_eq!(after["personas"], beside["personas"]);
    let (ok, said) = run(&bridge, &["--persona", "loki"]).await;
    assert!(!ok && said.contains("there is no Persona loki; there are eir"), "{said}");
    let (ok, text) = run(&bridge, &[]).await;
    assert!(ok && text.starts_with("eir: 2 turns, 2 requests, 0."), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_refreshes_a_real_session_beside_the_running_bridge_and_without_it() {
    let test = "an_operator_refreshes_a_real_session_beside_the_running_bridge_and_without_it";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mind = Mind::start().await;
    let Some(setup) = mind.setup(&server) else { return };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    for number in 1..=3 {
        alice.say_to(&room, &eir, &format!("and {}?", word(number))).await;
        wait_for_answers(&mut alice, &room, &eir, number as usize).await;
        if number == 2 {
            bridge.stop().await;
        }
        let (ok, said) = call(&bridge, "refresh", &["--persona", "eir"]).await;
        assert!(ok && said == format!("the next mail begins session {} of eir\n", number + 1), "{said}");
        if number == 2 {
            bridge.restart().await;
        }
    }
    let sessions: BTreeSet<String> = mind.api.requests().into_iter().map(|asked| asked.session).collect();
    assert_eq!(sessions.len(), 3);
    let sum = ledger(&bridge, &["--json"]).await["personas"]["eir"].clone();
    assert_eq!((&sum["turns"], &sum["refreshes"]), (&json!(3), &json!({"operator": 2})), "{sum}");
    // The next session finds what sessions share in the cache.
    assert_eq!(sum["verdicts"], json!({"first": 1, "rebuilt": 2}), "{sum}");
    assert!(sum["tokens"]["cache_read"].as_u64().is_some_and(|read| read > 500), "{sum}");
}

async fn ledger(bridge: &Bridge, arguments: &[&str]) -> Value {
    let (ok, said) = run(bridge, arguments).await;
    assert!(ok, "{said}");
    serde_json::from_str(&said).unwrap()
}

async fn run(bridge: &Bridge, arguments: &[&str]) -> (bool, String) {
    call(bridge, "ledger", arguments).await
}

async fn call(bridge: &Bridge, name: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(PROGRAM);
    command.args([name, "--config", "config.toml"]).args(arguments).current_dir(&bridge.dir);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(said).unwrap())
}
