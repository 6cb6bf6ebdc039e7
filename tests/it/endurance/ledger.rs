//! What operators ask and order of a real claude's sessions, asked for beside the running bridge and after it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ground::Meeting;
use crate::bridge::Bridge;

#[tokio::test(flavor = "multi_thread")]
async fn each_request_of_the_real_claude_stands_in_the_ledger() {
    let test = "each_request_of_the_real_claude_stands_in_the_ledger";
    let Some(mut meeting) = Meeting::begin(test).await else { return };
    for number in 1..=2 {
        meeting.ask(number, number as usize).await;
    }
    let beside = ledger(&meeting.bridge, &["--json"]).await;
    assert_eq!(meeting.mind.api.requests().len(), 2);
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
    assert!(!meeting.bridge.log().contains("reckons another price"), "{}", meeting.bridge.log());
    meeting.bridge.stop().await;
    let after = ledger(&meeting.bridge, &["--json", "--persona", "eir", "--since", "1h"]).await;
    assert_eq!(after["personas"], beside["personas"]);
    let (ok, said) = run(&meeting.bridge, &["--persona", "loki"]).await;
    assert!(!ok && said.contains("there is no Persona loki; there are eir"), "{said}");
    let (ok, text) = run(&meeting.bridge, &[]).await;
    assert!(ok && text.starts_with("eir: 2 turns, 2 requests, 0."), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_refreshes_a_real_session_beside_the_running_bridge_and_without_it() {
    let test = "an_operator_refreshes_a_real_session_beside_the_running_bridge_and_without_it";
    let Some(mut meeting) = Meeting::begin(test).await else { return };
    for number in 1..=3 {
        meeting.ask(number, number as usize).await;
        if number == 2 {
            meeting.bridge.stop().await;
        }
        let (ok, said) = meeting.bridge.command(&["refresh", "--persona", "eir"]).await;
        assert!(ok && said == format!("the next mail begins session {} of eir\n", number + 1), "{said}");
        if number == 2 {
            meeting.bridge.restart().await;
        }
    }
    let sessions: BTreeSet<String> =
        meeting.mind.api.requests().into_iter().map(|asked| asked.session).collect();
    assert_eq!(sessions.len(), 3);
    let sum = ledger(&meeting.bridge, &["--json"]).await["personas"]["eir"].clone();
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
    bridge.command(&[&["ledger"], arguments].concat()).await
}
