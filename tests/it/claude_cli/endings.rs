//! One test for each kind of ending.

use std::time::Duration;

use persona_bridge::mind::claude::Credential;
use persona_bridge::persona::Ending;
use persona_bridge::persona::decide::Stop;
use serde_json::json;

use super::real;
use crate::fake::messages_api::Answer;
use crate::minds::{Ended, feed, line, session};

/// How a turn ends whose every request is answered like this; a turn after it must be answered as ever.
async fn ended_by(answer: Answer) -> Option<Ended> {
    let (home, api) = real().await?;
    api.rule(move |_| answer.clone());
    let mut mind = home.mind();
    let session = session(1);
    let ended = mind.feed(feed(&session, 1, "[mail]\nhello")).await;
    api.rule(|_| Answer::say("well again"));
    let mut next = feed(&session, 2, "[mail]\nmore");
    next.earlier = vec![line(1)];
    let next = mind.feed(next).await;
    assert_eq!(next.said(), "well again");
    assert_eq!(api.requests().last().unwrap().words(), "(retry)");
    mind.stop(Stop::Idle).await;
    Some(ended)
}

async fn check(answer: Answer, expect: impl Fn(&Ending) -> bool) {
    let Some(ended) = ended_by(answer.clone()).await else { return };
    assert!(expect(&ended.ending), "{answer:?} ended as {:?}", ended.ending);
    assert!(ended.heard);
}

fn transient(ending: &Ending) -> bool {
    matches!(ending, Ending::Transient { .. })
}

fn last(ending: &Ending) -> bool {
    matches!(ending, Ending::Final { .. })
}

fn refused(ending: &Ending) -> bool {
    matches!(ending, Ending::Refused { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn answered_tells_each_request_and_money() {
    let Some((home, api)) = real().await else { return };
    // A turn of two requests: the first reply does not fit the schema.
    api.script([Answer::Typed(json!({"say": 3}))]);
    let mut mind = home.mind();
    let ended = mind.feed(feed(&session(1), 1, "[mail]\nhello")).await;
    assert!(matches!(ended.ending, Ending::Answered { .. }), "{ended:?}");
    let model = home.config.model.clone();
    let [first, second] = ended.usage.requests.as_slice() else { panic!("{ended:?}") };
    assert_eq!((&first.model, first.cache_read, first.output), (&model, 0, 20));
    assert!(first.written_5m > 100 && first.written_1h == 0, "{first:?}");
    assert_eq!((&second.model, second.cache_read, second.output), (&model, first.written_5m, 20));
    assert!(second.written_5m > 0, "{second:?}");
    assert_eq!(api.requests().len(), 2);
    assert!(ended.usage.money.unwrap() > 0.0);
    assert_eq!(ended.usage.window, Some(200_000));
    let first_tokens = ended.usage.requests.iter().map(|request| request.first_token);
    assert!(first_tokens.clone().count() > 0 && first_tokens.flatten().count() == ended.usage.requests.len());
    // The CLI is at least as large as it was ever measured, and its guard is not counted.
    assert!(ended.usage.resident.unwrap() > 100 << 20, "{:?}", ended.usage);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_an_answer() {
    let Some((home, api)) = real().await else { return };
    api.rule(|_| Answer::Typed(json!({"say": [], "react": []})));
    let ended = home.mind().feed(feed(&session(1), 1, "[mail]\nhello")).await;
    let Ending::Answered { reply, .. } = ended.ending else { panic!("{ended:?}") };
    assert_eq!(reply, r#"{"react":[],"say":[]}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_for_too_many_requests_with_the_delay() {
    let slow_down = |delay: &str| Answer::Error {
        status: 429,
        kind: "rate_limit_error",
        message: "Number of requests has exceeded your per-minute rate limit".to_owned(),
        headers: vec![("retry-after", delay.to_owned())],
    };
    let waits = |least: u64| move |ending: &Ending| matches!(ending, Ending::Transient { retry_after: Some(after), .. } if after.as_secs() >= least);
    tokio::join!(check(slow_down("2"), waits(2)), check(slow_down("120"), waits(90)));
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_for_the_plans_limit_until_it_ends() {
    let Some((mut home, api)) = real().await else { return };
    home.config.credential =
        Credential { variable: "CLAUDE_CODE_OAUTH_TOKEN", secret: "sk-ant-oat01-dummy".to_owned() };
    // Far enough ahead of any clock that this test will meet.
    let until = 4_000_000_000_u64;
    api.rule(move |_| Answer::Error {
        status: 429,
        kind: "rate_limit_error",
        message: "limit".to_owned(),
        headers: vec![
            ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-reset", until.to_string()),
            ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
        ],
    });
    let ended = home.mind().feed(feed(&session(1), 1, "[mail]\nhello")).await;
    let Ending::Transient { reason, retry_after: Some(after) } = ended.ending else { panic!("{ended:?}") };
    assert!(reason.contains("plan's limit"), "{reason}");
    assert!(after > Duration::from_secs(365 * 24 * 3600) && after < Duration::from_secs(until), "{after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_for_a_failing_or_overloaded_api() {
    tokio::join!(
        check(Answer::error(500, "api_error", "Internal server error"), transient),
        check(Answer::error(502, "api_error", "Bad gateway"), transient),
        check(Answer::error(529, "overloaded_error", "Overloaded"), transient),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_for_a_broken_connection() {
    tokio::join!(
        check(Answer::Cut, transient),
        check(Answer::StreamError("overloaded_error"), transient),
        check(Answer::StreamError("api_error"), transient),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_where_nothing_listens() {
    let Some((mut home, _api)) = real().await else { return };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.config.base_url = Some(format!("http://{free}").parse().unwrap());
    let ended = home.mind().feed(feed(&session(1), 1, "[mail]\nhello")).await;
    assert!(transient(&ended.ending), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn final_for_what_the_api_will_never_take() {
    tokio::join!(
        check(Answer::error(400, "invalid_request_error", "messages: nope"), |ending| {
            matches!(ending, Ending::Rejected { .. })
        }),
        check(Answer::error(404, "not_found_error", "model: nope"), last),
        check(Answer::error(413, "request_too_large", "Request exceeds the maximum size"), last),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn final_for_a_refusal_of_the_model() {
    check(Answer::Stopped("refusal"), last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn final_for_too_many_output_tokens() {
    check(Answer::TextThen("on and on".to_owned(), "max_tokens"), last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn final_for_too_many_turns_and_retries() {
    tokio::join!(
        check(Answer::Tool("Bash", json!({"command": "ls"})), last),
        check(Answer::Typed(json!({"say": "not a list"})), last),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_for_plain_text() {
    check(Answer::Text("hello there".to_owned()), |ending| matches!(ending, Ending::Invalid { .. })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_for_texts_that_look_like_the_clis() {
    check(Answer::Text("No response requested.".to_owned()), |ending| {
        matches!(ending, Ending::Invalid { .. })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_for_credential_and_billing() {
    let balance = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";
    tokio::join!(
        check(Answer::error(401, "authentication_error", "invalid x-api-key"), refused),
        check(Answer::error(403, "permission_error", "Your API key does not have permission"), refused),
        check(Answer::error(400, "invalid_request_error", balance), refused),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn too_long_for_a_prompt_beyond_the_window() {
    let message = "prompt is too long: 210000 tokens > 200000 maximum";
    check(Answer::error(400, "invalid_request_error", message), |ending| *ending == Ending::TooLong).await;
}

async fn lost_for_silence(silence: Answer) {
    let Some((mut home, api)) = real().await else { return };
    // Long enough for a start on a busy machine.
    home.config.silence = Duration::from_secs(10);
    let mut mind = home.mind();
    mind.feed(feed(&session(1), 1, "[mail]\nhello")).await.said();
    api.script([silence]);
    let lost = mind.feed(feed(&session(1), 2, "[mail]\nmore")).await;
    assert_eq!(lost.ending, Ending::Lost { reason: "it was silent".to_owned() });
    mind.exited().await;
    let again = mind.feed(feed(&session(1), 2, "[mail]\nmore")).await;
    assert_eq!(again.said(), "echo [mail]\nmore");
    assert_eq!(api.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_for_silence_and_the_line_is_answered_afterwards() {
    tokio::join!(lost_for_silence(Answer::Stall), lost_for_silence(Answer::StallInStream));
}

#[tokio::test(flavor = "multi_thread")]
async fn thinking_for_longer_than_silence_is_not_silence() {
    let Some((mut home, api)) = real().await else { return };
    home.config.silence = Duration::from_secs(5);
    api.script([Answer::Thinking(16, Duration::from_secs(1), Box::new(Answer::say("thought")))]);
    let ended = home.mind().feed(feed(&session(1), 1, "[mail]\nhello")).await;
    assert_eq!(ended.said(), "thought");
}
