//! Lines that stand in the session without an answer, which the CLI runs again, or does not.

use std::path::PathBuf;
use std::time::Duration;

use persona_bridge::mind::{Feed, MindCommand};
use persona_bridge::persona::Ending;
use persona_bridge::persona::session::Session;
use serde_json::json;

use super::real;
use crate::fake::messages_api::{Answer, Gate, MessagesApi};
use crate::minds::{Home, Mind, feed, kill_program, line, session};

/// What the CLI says by itself where it runs a line again.
const NOTE: &str = "Continue from where you left off.";

/// A first line that the API was asked about so often without an answer, each time until its file held these words.
struct Cut {
    home: Home,
    api: MessagesApi,
    mind: Mind,
    session: Session,
    file: PathBuf,
}

impl Cut {
    async fn after(home: Home, api: MessagesApi, held: &[&str]) -> Self {
        let session = session(1);
        let (mut mind, mut file) = (home.mind(), PathBuf::new());
        for words in held {
            let asked = api.requests().len();
            api.script([Answer::Held(Gate::closed(), Box::new(Answer::say("never heard")))]);
            mind.send(MindCommand::Feed(Box::new(first(&session)))).await;
            api.wait_for(asked + 1).await;
            file = recorded(&home, &session, words).await;
            kill_program(&home);
            mind.turn_end(line(1)).await;
            mind.exited().await;
        }
        Self { home, api, mind, session, file }
    }

    fn rewrite(&self, change: impl FnOnce(Vec<String>) -> Vec<String>) {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let lines = change(text.lines().map(str::to_owned).collect());
        std::fs::write(&self.file, lines.join("\n") + "\n").unwrap();
    }

    /// The second attempt answers, and the words of the first stand before it once.
    async fn next_attempt_answers(mut self) {
        let again = Feed { earlier: vec![line(1)], ..feed(&self.session, 2, "[mail]\none;") };
        assert_eq!(self.mind.feed(again).await.said(), "echo (retry)");
        let newest = self.api.requests().pop().unwrap().body["messages"].to_string();
        assert_eq!((newest.matches("one;").count(), newest.matches("(retry)").count()), (1, 1), "{newest}");
        assert!(self.home.session_file(&self.session).is_some());
    }
}

fn first(session: &Session) -> Feed {
    feed(session, 1, "[mail]\none;")
}

fn is_user_row(row: &str, words: &str) -> bool {
    row.contains(r#""type":"user""#) && row.contains(words)
}

/// The session's file, once it holds a row of the user with these words.
async fn recorded(home: &Home, session: &Session, words: &str) -> PathBuf {
    let holds =
        |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().any(|row| is_user_row(row, words));
    let found = async {
        loop {
            match home.session_file(session).filter(holds) {
                Some(path) => return path,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found).await.expect("the CLI writes it down")
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_note_of_the_clis_own_the_next_attempt_asks() {
    let Some((home, api)) = real().await else { return };
    let mut cut = Cut::after(home, api, &["one;", NOTE]).await;
    // A kill may come right after the note was written.
    cut.rewrite(|rows| {
        let end = rows.iter().position(|row| is_user_row(row, NOTE)).unwrap();
        rows[..=end].to_vec()
    });
    let asked = cut.api.requests().len();
    assert_eq!(cut.mind.feed(first(&cut.session)).await.ending, Ending::Stranded);
    assert_eq!(cut.api.requests().len(), asked);
    cut.next_attempt_answers().await;
}

/// An attempt ended so, and the bridge was killed before it wrote that down: the next attempt asks.
async fn ended_before_a_crash(answer: fn() -> Answer, rewrites: usize) {
    let Some((home, api)) = real().await else { return };
    let session = session(1);
    let mut mind = home.mind();
    api.script((0..rewrites).map(|_| answer()));
    let ended = mind.feed(first(&session)).await.ending;
    assert!(matches!(ended, Ending::Final { .. } | Ending::Invalid { .. }), "{ended:?}");
    mind.crash().await;
    let asked = api.requests().len();
    assert_eq!(asked, rewrites, "all of the script was said");
    let file = recorded(&home, &session, "one;").await;
    let mut cut = Cut { mind: home.mind(), home, api, session, file };
    assert_eq!(cut.mind.feed(first(&cut.session)).await.ending, Ending::Stranded);
    assert_eq!(cut.api.requests().len(), asked, "nothing is asked again");
    cut.next_attempt_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_ended_without_an_answer_before_a_crash_is_asked_for_by_the_next_attempt() {
    tokio::join!(
        ended_before_a_crash(|| Answer::Text("plain words".to_owned()), 2),
        ended_before_a_crash(|| Answer::Typed(json!({"say": "not a list"})), 4),
        ended_before_a_crash(|| Answer::TextThen("plain words".to_owned(), "max_tokens"), 4),
        ended_before_a_crash(|| Answer::TextThen("plain words".to_owned(), "refusal"), 2),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_years_ago_is_run_again() {
    let Some((home, api)) = real().await else { return };
    let mut cut = Cut::after(home, api, &["one;"]).await;
    cut.rewrite(|rows| {
        let aged = |row: String| match row.find(r#""timestamp":""#) {
            Some(at) => format!("{}2020{}", &row[..at + 13], &row[at + 17..]),
            None => row,
        };
        rows.into_iter().map(aged).collect()
    });
    assert_eq!(cut.mind.feed(first(&cut.session)).await.said(), "echo [mail]\none;");
}
