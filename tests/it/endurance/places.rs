//! Two Personas on the real CLI, with less room than they would take.

use std::collections::BTreeSet;

use persona_bridge::mind::claude::guard;
use ruma::OwnedRoomId;
use serde_json::Value;

use super::ground::{Meeting, processes_of, wait_for_answers, word};
use crate::bridge::persona;

const PERSONAS: [&str; 2] = ["eir", "brage"];
const ROUNDS: u32 = 3;

/// Both Personas, with these keys in `[mind]`.
async fn both(test: &str, keys: &str) -> Option<Meeting> {
    Meeting::begin_with(test, |setup| {
        setup.personas = PERSONAS.map(str::to_owned).to_vec();
        setup.mind = setup.mind.replacen("[mind]\n", &format!("[mind]\n{keys}\n"), 1);
    })
    .await
}

/// Asks both in turn, some rounds long; after each answer the bridge is looked at.
async fn ask_both(meeting: &mut Meeting, look: impl Fn(&Value, usize)) {
    let mut rooms: Vec<(String, OwnedRoomId)> = Vec::new();
    for id in PERSONAS {
        rooms.push((persona(id), meeting.alice.create_dm(&persona(id)).await));
    }
    for round in 1..=ROUNDS {
        for (who, room) in &rooms {
            meeting.alice.say(room, &format!("and {}?", word(round))).await;
            wait_for_answers(&mut meeting.alice, room, who, round as usize).await;
            let (_, stats) = meeting.bridge.get("stats").await.unwrap();
            let guards = processes_of(&meeting.bridge.dir.join("minds"));
            let guards = guards.iter().filter(|line| line.contains(&format!(" {} ", guard::NAME))).count();
            look(&serde_json::from_str::<Value>(&stats).unwrap()["minds"], guards);
        }
    }
    let sessions: BTreeSet<String> =
        meeting.mind.api.requests().into_iter().map(|asked| asked.session).collect();
    assert_eq!((sessions.len(), meeting.mind.repeats()), (2, ROUNDS as usize), "each word is asked of both");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_place_two_real_minds_live_one_after_the_other() {
    let test = "with_one_place_two_real_minds_live_one_after_the_other";
    let Some(mut meeting) = both(test, "max_live = 1").await else { return };
    ask_both(&mut meeting, |minds, guards| {
        assert_eq!((minds.as_object().unwrap().len(), guards), (1, 1), "{minds}");
        let resident = minds.as_object().unwrap().values().next().and_then(Value::as_u64);
        assert!(resident.unwrap() > 100 << 20, "{minds}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_mind_that_takes_too_much_is_closed_after_each_turn_and_reads_its_prefix_again() {
    let test = "a_real_mind_that_takes_too_much_is_closed_after_each_turn_and_reads_its_prefix_again";
    let Some(mut meeting) = both(test, "recycle_rss = \"1MiB\"").await else { return };
    ask_both(&mut meeting, |_, _| {}).await;
    let closed = meeting.bridge.log().matches("closed after the turn").count();
    assert_eq!(closed, 2 * ROUNDS as usize, "{}", meeting.bridge.log());
    let (ok, said) = meeting.bridge.command(&["ledger", "--json"]).await;
    assert!(ok, "{said}");
    let ledger: Value = serde_json::from_str(&said).unwrap();
    for id in PERSONAS {
        let sum = &ledger["personas"][id];
        assert_eq!(sum["verdicts"], serde_json::json!({"first": 1, "hit": ROUNDS - 1}), "{sum}");
        assert!(sum["rss"].as_u64().unwrap() > 100 << 20, "{sum}");
    }
}
