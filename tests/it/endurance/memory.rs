//! What a real claude's reply remembers: taken, stored, before her in her next session, and shown to operators.

use persona_bridge::conversation::prompt::SEAM;
use serde_json::json;

use super::ground::Meeting;
use crate::fake::messages_api::Answer;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_real_claude_remembers_stands_in_the_next_sessions_first_request() {
    let test = "what_the_real_claude_remembers_stands_in_the_next_sessions_first_request";
    let Some(mut meeting) = Meeting::begin(test).await else { return };
    let memory = json!({"text": "Alice's cat is\nTom.", "about": [meeting.alice.id, "cats"], "salience": 0.9, "task": "open"});
    let says = |text: &str| json!([{ "text": text }]);
    meeting.mind.api.script([
        Answer::Typed(json!({"say": says("Yes, w0001."), "react": [], "remember": [memory]})),
        Answer::Typed(json!({"say": says("Yes, w0002."), "react": [], "forget": ["n1"]})),
    ]);
    meeting.ask(1, 1).await;
    let line = format!(
        "(task; in register swarm; about <{}>, \"cats\"): Alice's cat is\n| Tom.\n",
        meeting.alice.id
    );
    let (ok, said) = meeting.bridge.command(&["memory", "list"]).await;
    assert!(ok && said.starts_with("n1 ") && said.ends_with(&line), "{said}");
    let (ok, said) = meeting.bridge.command(&["memory", "show", "n1"]).await;
    assert!(ok && said.contains("salience: 0.9") && said.contains("confided in: no direct room"), "{said}");
    assert!(!meeting.bridge.log().contains("Tom"), "{}", meeting.bridge.log());

    assert!(meeting.bridge.command(&["refresh", "--persona", "eir"]).await.0);
    meeting.ask(2, 2).await;
    let requests = meeting.mind.api.requests();
    assert_eq!(requests.len(), 2);
    assert_ne!(requests[0].session, requests[1].session);
    assert!(!requests[0].words().contains("# you remember"));
    let words = requests[1].words();
    let (memories, mail) = words.split_once("# mail for you").unwrap();
    let begin = format!("{SEAM}\n# you remember\nn1 ");
    assert!(memories.starts_with(&begin) && memories.ends_with(&line), "{words}");
    assert!(mail.contains("w0002?") && !mail.contains("Tom"), "{words}");

    meeting.bridge.stop().await;
    let (ok, said) = meeting.bridge.command(&["memory", "list", "--persona", "eir"]).await;
    assert!(ok && said == "eir remembers nothing\n", "{said}");
    let (ok, said) = meeting.bridge.command(&["memory", "forget", "n1", "n2"]).await;
    assert!(ok && said == "eir has forgotten 0 of 2\n", "{said}");
    let (ok, said) = meeting.bridge.command(&["memory", "show", "m1"]).await;
    assert!(!ok && said.contains("a label is an n with a number"), "{said}");
}
