use std::path::Path;

use tempfile::TempDir;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::*;
use crate::conversation::{Millis, TurnId};
use crate::persona::decide::Stop;
use crate::persona::session::{Fingerprint, Session, next_session};

const ANSWER: &str = r#"{"react":[],"say":[{"text":"I heard you, Alice: \"hello\" — I am a scripted stand-in, not a model."}]}"#;

fn eir() -> PersonaId {
    PersonaId("eir".to_owned())
}

fn line(attempt: u32) -> LineId {
    LineId::derive(TurnId(Uuid::from_u128(1)), attempt)
}

fn session() -> Session {
    next_session(Uuid::from_u128(1), &eir(), None, Fingerprint::default(), Millis(0))
}

fn feed(attempt: u32) -> Feed {
    Feed {
        line: line(attempt),
        session: session(),
        must_exist: false,
        prompt: "You are Eir.".to_owned(),
        whole: "# mail\nroom !a:b\nm1 08:00 \"Alice\" <@alice:hs.test> (to you): hello".to_owned(),
        again: "(retry)".to_owned(),
        earlier: (1..attempt).map(line).collect(),
        purpose: Purpose::Answer,
        now: Millis(0),
    }
}

/// A mind that runs, and everything it needs to be dropped at once.
struct Running {
    handle: MindHandle,
    tasks: JoinSet<()>,
}

impl Running {
    fn start(state: &Path, script: impl Fn(&str, u32) -> Scripted + Send + 'static) -> Self {
        let (handle, future) = mind_with(Config { state: state.to_owned() }, eir(), script);
        let mut tasks = JoinSet::new();
        tasks.spawn(future);
        Self { handle, tasks }
    }

    fn usual(state: &Path) -> Self {
        Self::start(state, |_, _| Scripted::usual())
    }

    fn scripted(state: &Path, outcome: Outcome) -> Self {
        let first = move |_: &str, nth| match nth {
            1 => Scripted { outcome: outcome.clone(), ..Scripted::usual() },
            _ => Scripted::usual(),
        };
        Self::start(state, first)
    }

    async fn feed(&self, feed: Feed) {
        self.handle.commands.send(MindCommand::Feed(Box::new(feed))).await.unwrap();
    }

    async fn next(&mut self) -> MindEvent {
        self.handle.events.recv().await.unwrap()
    }

    #[track_caller]
    fn expect(&mut self, expected: &[MindEvent]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            for event in expected {
                assert_eq!(&self.next().await, event, "at {place}");
            }
        }
    }
}

fn heard(attempt: u32) -> MindEvent {
    MindEvent::Heard { line: line(attempt) }
}

fn ended(attempt: u32, ending: Ending) -> MindEvent {
    let usage = Usage::default();
    MindEvent::TurnEnded { line: line(attempt), ending, usage, from_record: false, closed: false }
}

fn thought(attempt: u32) -> MindEvent {
    ended(attempt, answered(ANSWER.to_owned()))
}

fn recorded(attempt: u32) -> MindEvent {
    MindEvent::TurnEnded {
        line: line(attempt),
        ending: answered(ANSWER.to_owned()),
        usage: Usage::default(),
        from_record: true,
        closed: false,
    }
}

fn lost(attempt: u32, reason: &str) -> [MindEvent; 2] {
    let report = reason.to_owned();
    let ending = match reason {
        "stopped" => Ending::Lost { reason: report.clone() },
        _ => Ending::Died { reason: report.clone() },
    };
    let usage = Usage::default();
    let ended = MindEvent::TurnEnded { line: line(attempt), ending, usage, from_record: false, closed: true };
    [ended, MindEvent::Exited { report }]
}

fn rows(state: &TempDir) -> usize {
    let path = state.path().join(format!("eir/{}.jsonl", session().id));
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[tokio::test(start_paused = true)]
async fn a_line_is_heard_then_thought_about_then_answered() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::usual(state.path());
    let begun = tokio::time::Instant::now();
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1)]).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(rows(&state), 1);
    mind.expect(&[thought(1)]).await;
    assert_eq!(begun.elapsed(), THINKING);
    assert_eq!(rows(&state), 2);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_was_answered_is_never_thought_twice() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::usual(state.path());
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), thought(1)]).await;
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), recorded(1)]).await;
    drop(mind);

    let mut after_crash = Running::start(state.path(), |_, _| panic!("thought again"));
    after_crash.feed(Feed { must_exist: true, ..feed(1) }).await;
    after_crash.expect(&[heard(1), recorded(1)]).await;
    assert_eq!(rows(&state), 2);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_moment_of_a_thought_leaves_one_answer() {
    for moment in 0..=THINKING.as_millis() as u64 + 1 {
        let state = tempfile::tempdir().unwrap();
        let mind = Running::usual(state.path());
        mind.feed(feed(1)).await;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        let Running { handle, mut tasks } = mind;
        tasks.shutdown().await;
        drop(handle);

        let mut again = Running::usual(state.path());
        again.feed(feed(1)).await;
        again.expect(&[heard(1)]).await;
        let end = again.next().await;
        assert!(end == thought(1) || end == recorded(1), "at {moment} ms: {end:?}");
        assert_eq!(rows(&state), 2, "at {moment} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_told_is_taken_from_the_record() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::scripted(state.path(), Outcome::DiesAnswered);
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1)]).await;
    mind.expect(&lost(1, "died")).await;
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), recorded(1)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_death_before_the_answer_is_thought_about_again_with_the_same_words() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::scripted(state.path(), Outcome::Dies);
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1)]).await;
    mind.expect(&lost(1, "died")).await;
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), thought(1)]).await;
    assert_eq!(rows(&state), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stall_lasts_until_it_is_stopped() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::scripted(state.path(), Outcome::Stalls);
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1)]).await;
    let day = tokio::time::timeout(Duration::from_secs(86_400), mind.next());
    assert!(day.await.is_err());
    mind.handle.commands.send(MindCommand::Stop(Stop::Busy)).await.unwrap();
    mind.expect(&lost(1, "stopped")).await;
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), thought(1)]).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_an_idle_mind_is_always_answered() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::usual(state.path());
    let exited = [MindEvent::Exited { report: "stopped".to_owned() }];
    mind.handle.commands.send(MindCommand::Stop(Stop::Idle)).await.unwrap();
    mind.expect(&exited).await;
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), thought(1)]).await;
    mind.handle.commands.send(MindCommand::Stop(Stop::Idle)).await.unwrap();
    mind.expect(&exited).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_feeds_the_short_line_and_is_answered_in_full() {
    let state = tempfile::tempdir().unwrap();
    let overloaded = Ending::Transient { reason: "overloaded".to_owned(), retry_after: None };
    let (fed, words) = std::sync::mpsc::channel();
    let script_ending = overloaded.clone();
    let mut mind = Running::start(state.path(), move |words, nth| {
        fed.send(words.to_owned()).unwrap();
        let outcome = if nth == 1 { Outcome::Ends(script_ending.clone()) } else { Outcome::Usual };
        Scripted { outcome, ..Scripted::usual() }
    });
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), ended(1, overloaded)]).await;
    mind.feed(feed(2)).await;
    mind.expect(&[heard(2), thought(2)]).await;
    assert_eq!(words.try_iter().collect::<Vec<_>>(), [feed(1).whole, "(retry)".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_in_a_session_without_the_earlier_words_feeds_the_whole_batch() {
    let state = tempfile::tempdir().unwrap();
    let (fed, words) = std::sync::mpsc::channel();
    let mut mind = Running::start(state.path(), move |words, _| {
        fed.send(words.to_owned()).unwrap();
        Scripted::usual()
    });
    mind.feed(feed(2)).await;
    mind.expect(&[heard(2), thought(2)]).await;
    assert_eq!(words.try_iter().collect::<Vec<_>>(), [feed(2).whole]);
}

#[tokio::test(start_paused = true)]
async fn a_session_without_its_record_is_gone() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::usual(state.path());
    mind.feed(Feed { must_exist: true, ..feed(1) }).await;
    let reason = "the session's record is missing".to_owned();
    mind.expect(&[ended(1, Ending::SessionGone { reason })]).await;
    assert!(!state.path().join("eir").exists());
}

#[tokio::test(start_paused = true)]
async fn a_session_without_its_last_reply_is_gone() {
    let state = tempfile::tempdir().unwrap();
    let mut mind = Running::usual(state.path());
    mind.feed(feed(1)).await;
    mind.expect(&[heard(1), thought(1)]).await;
    let with_last = |last| Feed { session: Session { last_committed: Some(last), ..session() }, ..feed(2) };
    mind.feed(with_last(line(9))).await;
    let reason = "the session's record lacks the last reply".to_owned();
    mind.expect(&[ended(2, Ending::SessionGone { reason })]).await;
    mind.feed(with_last(line(1))).await;
    mind.expect(&[heard(2), thought(2)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_broken_record_is_gone() {
    let state = tempfile::tempdir().unwrap();
    std::fs::create_dir(state.path().join("eir")).unwrap();
    std::fs::write(state.path().join(format!("eir/{}.jsonl", session().id)), "not JSON\n").unwrap();
    let mut mind = Running::usual(state.path());
    mind.feed(feed(1)).await;
    let reason = "the session's record is broken".to_owned();
    mind.expect(&[ended(1, Ending::SessionGone { reason })]).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_written_is_tried_again_later() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("eir"), "in the way").unwrap();
    let mut mind = Running::usual(state.path());
    mind.feed(feed(1)).await;
    let end = mind.next().await;
    assert!(matches!(end, MindEvent::TurnEnded { ending: Ending::Transient { .. }, .. }), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_its_handle() {
    let state = tempfile::tempdir().unwrap();
    for outcome in [None, Some(Outcome::Stalls)] {
        let mind = Running::scripted(state.path(), outcome.clone().unwrap_or(Outcome::Usual));
        if outcome.is_some() {
            mind.feed(feed(1)).await;
        }
        let Running { handle, mut tasks } = mind;
        drop(handle);
        assert!(tasks.join_next().await.unwrap().is_ok());
    }
}
