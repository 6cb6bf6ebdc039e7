//! Asking whether a refused account is taken again, on the real CLI.

use persona_bridge::conversation::PersonaId;
use persona_bridge::persona::Ending;
use persona_bridge::persona::probe::{ACCOUNT, shows_access};

use super::real;
use crate::fake::messages_api::Answer;
use crate::minds::{feed, session};

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_one_request_that_leaves_nothing_and_tells_whether_the_account_is_taken() {
    let Some((mut home, api)) = real().await else { return };
    home.persona = PersonaId(ACCOUNT.to_owned());
    let mut mind = home.mind();
    api.script([
        Answer::error(401, "authentication_error", "invalid x-api-key"),
        Answer::error(403, "permission_error", "Your API key does not have permission"),
        Answer::Text("yes".to_owned()),
    ]);
    for (asked, taken) in [(1, false), (2, false), (3, true)] {
        let (ending, usage) = mind.probe(feed(&session(asked), asked, "ok?")).await;
        assert_eq!(
            (shows_access(&ending), matches!(ending, Ending::Refused { .. })),
            (taken, !taken),
            "{ending:?}"
        );
        assert_eq!(usage.requests.len(), usize::from(taken), "{usage:?}");
        assert_eq!(api.requests().len(), asked as usize, "each is one request");
        assert!(!home.root().exists(), "nothing is left");
    }
    let asked = api.requests().pop().unwrap().body;
    assert!(asked["tools"].as_array().is_none_or(Vec::is_empty), "{}", asked["tools"]);
    assert_eq!(asked["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_is_never_thrown_away_by_a_probe() {
    let Some((home, api)) = real().await else { return };
    let mut mind = home.mind();
    mind.feed(feed(&session(1), 1, "[mail]\none;")).await.said();
    let (ending, _) = mind.probe(feed(&session(2), 2, "ok?")).await;
    assert!(!shows_access(&ending), "{ending:?}");
    assert!(home.session_file(&session(1)).is_some());
    assert_eq!(api.requests().len(), 1);
}
