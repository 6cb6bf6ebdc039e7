//! The mind's contract on the real CLI with a loopback API, which watches the prompt cache in every test.

mod care;
mod endings;
mod probe;
mod recovery;
mod spoilt;
mod stranded;
mod words;

use persona_bridge::persona::decide::Stop;

use crate::fake::messages_api::MessagesApi;
use crate::minds::{Home, feed, session};
use crate::tools::claude_program;

/// A home on the real CLI and an API, or none where the CLI cannot be had.
async fn real() -> Option<(Home, MessagesApi)> {
    let program = claude_program()?;
    let api = MessagesApi::start().await;
    let home = Home::new(program, Some(api.url()));
    Some((home, api))
}

#[tokio::test(flavor = "multi_thread")]
async fn she_answers_and_goes_on_in_the_same_process() {
    let Some((home, api)) = real().await else { return };
    let mut mind = home.mind();
    let session = session(1);
    let first = mind.feed(feed(&session, 1, "[mail]\nhello")).await;
    assert_eq!((first.said().as_str(), first.heard, first.from_record), ("echo [mail]\nhello", true, false));
    let second = mind.feed(feed(&session, 2, "[mail]\nand again")).await;
    assert_eq!(second.said(), "echo [mail]\nand again");
    assert_eq!(api.requests().len(), 2);
    assert_eq!(mind.stop(Stop::Idle).await, "exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pinned_version_is_accepted() {
    let Some((home, _api)) = real().await else { return };
    std::fs::create_dir_all(&home.config.state).unwrap();
    let version = persona_bridge::mind::claude::version(&home.config).await.unwrap();
    assert!(!persona_bridge::mind::claude::newer_than_pinned(&version), "{version}");
}
