//! Sessions that the real CLI cannot go on with once it has taken them up again.

use persona_bridge::persona::Ending;
use persona_bridge::persona::decide::Stop;

use super::real;
use crate::fake::messages_api::Answer;
use crate::minds::{Ended, feed, line, session};

/// How a turn ends whose every request is answered like this, in a new session and in one that was taken up again; then
/// the next session must answer.
async fn fresh_and_resumed(answer: Answer) -> Option<[Ended; 2]> {
    let (home, api) = real().await?;
    let mut mind = home.mind();
    let always = answer.clone();
    api.rule(move |_| always.clone());
    let fresh = mind.feed(feed(&session(1), 1, "[mail]\none;")).await;
    api.rule(|_| Answer::say("well"));
    assert_eq!(mind.feed(feed(&session(2), 2, "[mail]\ntwo;")).await.said(), "well");
    mind.stop(Stop::Idle).await;
    let mut known = session(2);
    known.last_committed = Some(line(2));
    api.rule(move |_| answer.clone());
    let resumed = mind.feed(feed(&known, 3, "[mail]\nthree;")).await;
    mind.exited().await;
    api.rule(|_| Answer::say("well again"));
    assert_eq!(mind.feed(feed(&session(3), 4, "[mail]\nthree;")).await.said(), "well again");
    Some([fresh, resumed])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_success_spoils_a_session_that_was_taken_up_again_and_no_new_one() {
    let Some([fresh, resumed]) = fresh_and_resumed(Answer::Nothing).await else { return };
    assert!(matches!(fresh.ending, Ending::Invalid { .. }), "{fresh:?}");
    let reason = "the resumed session gives empty results";
    assert_eq!(resumed.ending, Ending::Poisoned { reason: reason.to_owned() });
    assert_eq!(resumed.alarms, [reason]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_that_the_api_refuses_spoils_a_session_that_was_taken_up_again_and_no_new_one() {
    let message =
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1";
    let answer = Answer::error(400, "invalid_request_error", message);
    let Some([fresh, resumed]) = fresh_and_resumed(answer).await else { return };
    assert!(matches!(fresh.ending, Ending::Rejected { .. }), "{fresh:?}");
    assert!(
        matches!(&resumed.ending, Ending::Poisoned { reason } if reason.contains("tool call")),
        "{resumed:?}"
    );
    assert_eq!(resumed.alarms.len(), 1);
}
