//! What is fed once is answered once, whatever is killed in between.

use std::time::Duration;

use persona_bridge::mind::{MindCommand, MindEvent};
use persona_bridge::persona::Ending;
use persona_bridge::persona::decide::Stop;
use persona_bridge::persona::session::{Session, Tokens};

use super::real;
use crate::fake::messages_api::{Answer, Gate, MessagesApi};
use crate::minds::{Home, Mind, feed, group, kill_program, line, members, session};
use crate::tools::scale;

/// How often each line's words stand in the newest request, as words of the user.
fn times_in_context(api: &MessagesApi, words: &str) -> usize {
    let newest = api.requests().pop().unwrap();
    let messages =
        newest.body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    messages.map(|message| message["content"].to_string().matches(words).count()).sum()
}

fn committed(mut session: Session, number: u32) -> Session {
    session.last_committed = Some(line(number));
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_fed_again_is_answered_from_the_record() {
    let Some((home, api)) = real().await else { return };
    let session = session(1);
    let mut mind = home.mind();
    let first = mind.feed(feed(&session, 1, "[mail]\nhello")).await;
    let again = mind.feed(feed(&session, 1, "[mail]\nhello")).await;
    assert_eq!((again.said(), again.from_record), (first.said(), true));
    mind.stop(Stop::Idle).await;
    let again = mind.feed(feed(&session, 1, "[mail]\nhello")).await;
    assert_eq!((again.said(), again.from_record), (first.said(), true));
    mind.exited().await;
    assert_eq!(api.requests().len(), 1);
    let next = mind.feed(feed(&committed(session, 1), 2, "[mail]\nmore")).await;
    assert_eq!((next.said().as_str(), next.from_record), ("echo [mail]\nmore", false));
    assert_eq!(times_in_context(&api, "hello"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_result_and_commit_asks_nothing_again() {
    let Some((home, api)) = real().await else { return };
    let mut session = session(1);
    for number in 1..=20 {
        let words = format!("[mail]\nnumber {number};");
        let mut mind = home.mind();
        let first = mind.feed(feed(&session, number, &words)).await;
        assert_eq!((first.said(), first.from_record), (format!("echo {words}"), false));
        mind.crash().await;
        let mut mind = home.mind();
        let again = mind.feed(feed(&session, number, &words)).await;
        assert_eq!((again.said(), again.from_record), (first.said(), true));
        assert_eq!(api.requests().len(), number as usize);
        session = committed(session, number);
        mind.stop(Stop::Idle).await;
    }
}

/// Where a child is killed, told by what the API has given of its answer.
async fn killed_while(hold: fn(Gate, Box<Answer>) -> Answer, kill: fn(&Home)) {
    let Some((home, api)) = real().await else { return };
    let session = session(1);
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&session, 1, "[mail]\none;")).await.said(), "echo [mail]\none;");
    let session = committed(session, 1);
    api.script([hold(Gate::closed(), Box::new(Answer::say("never heard")))]);
    mind.send(MindCommand::Feed(Box::new(feed(&session, 2, "[mail]\ntwo;")))).await;
    api.wait_for(2).await;
    kill(&home);
    let lost = mind.turn_end(line(2)).await;
    assert!(matches!(lost.ending, Ending::Lost { .. } | Ending::Died { .. }), "{lost:?}");
    mind.exited().await;
    let again = mind.feed(feed(&session, 2, "[mail]\ntwo;")).await;
    assert_eq!((again.said().as_str(), again.heard), ("echo [mail]\ntwo;", true));
    let session = committed(session, 2);
    assert_eq!(mind.feed(feed(&session, 3, "[mail]\nthree;")).await.said(), "echo [mail]\nthree;");
    assert_eq!(api.requests().len(), 4);
    for words in ["one;", "two;", "three;"] {
        assert_eq!(times_in_context(&api, words), 1, "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_first_word_of_the_answer() {
    killed_while(Answer::Held, kill_program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_end_of_the_answer() {
    killed_while(Answer::HeldInStream, kill_program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_with_its_guard() {
    let kill = |home: &Home| {
        rustix::process::kill_process_group(group(home), rustix::process::Signal::KILL).unwrap()
    };
    killed_while(Answer::Held, kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_in_the_middle_of_an_answer() {
    let Some((home, api)) = real().await else { return };
    let session = session(1);
    let mut mind = home.mind();
    api.script([Answer::Held(Gate::closed(), Box::new(Answer::say("never heard")))]);
    mind.send(MindCommand::Feed(Box::new(feed(&session, 1, "[mail]\none;")))).await;
    api.wait_for(1).await;
    let group = group(&home);
    mind.send(MindCommand::Stop(Stop::Busy)).await;
    let lost = mind.turn_end(line(1)).await;
    assert_eq!(lost.ending, Ending::Lost { reason: "it was stopped".to_owned() });
    mind.exited().await;
    assert_eq!(members(group), []);
    let again = mind.feed(feed(&session, 1, "[mail]\none;")).await;
    assert_eq!(again.said(), "echo [mail]\none;");
    assert_eq!(times_in_context(&api, "one;"), 1);
}

/// A small generator, so that a seed is all there is to repeat a run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Feeds until the line is answered; now and then the CLI or the whole mind is killed after a while.
async fn feed_under_fire(
    home: &Home,
    mind: &mut Mind,
    session: &Session,
    number: u32,
    dice: &mut Dice,
) -> String {
    let words = format!("[mail]\nnumber {number};");
    for round in 0.. {
        mind.send(MindCommand::Feed(Box::new(feed(session, number, &words)))).await;
        let fire = if round < 3 { dice.below(3) } else { 0 };
        let pause = Duration::from_millis(if fire == 0 { 90_000 } else { dice.below(900) });
        let mut ended = tokio::time::timeout(pause, mind.turn_end(line(number))).await.ok();
        if ended.is_none() && fire == 1 {
            kill_program(home);
            ended = Some(mind.turn_end(line(number)).await);
        }
        if ended.is_none() || fire == 2 {
            // Even an answer is forgotten with the mind that told it.
            std::mem::replace(mind, home.mind()).crash().await;
            continue;
        }
        let ended = ended.unwrap();
        if !matches!(ended.ending, Ending::Lost { .. } | Ending::Died { .. }) {
            return ended.said();
        }
    }
    unreachable!("the loop ends by its answer")
}

async fn under_fire(seed: u64, turns: u32) {
    let Some((home, api)) = real().await else { return };
    let mut dice = Dice(seed);
    let mut session = session(1);
    let mut mind = home.mind();
    for number in 1..=turns {
        let said = feed_under_fire(&home, &mut mind, &session, number, &mut dice).await;
        assert_eq!(said, format!("echo [mail]\nnumber {number};"), "seed {seed}");
        session = committed(session, number);
    }
    mind.feed(feed(&session, turns + 1, "[mail]\nlast;")).await;
    for number in 1..=turns {
        assert_eq!(times_in_context(&api, &format!("number {number};")), 1, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_each_line_is_in_her_session_once_and_answered() {
    for seed in 0..u64::from(scale()) {
        tokio::join!(under_fire(2 * seed + 1, 8), under_fire(2 * seed + 2, 8));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_turns_a_kill_and_a_resume_keep_the_prefix() {
    let Some((home, api)) = real().await else { return };
    let mut session = session(1);
    let mut mind = home.mind();
    for number in 1..=50 {
        if number == 26 {
            kill_program(&home);
            mind.exited().await;
        }
        let words = format!("[mail]\nnumber {number};");
        assert_eq!(mind.feed(feed(&session, number, &words)).await.said(), format!("echo {words}"));
        session = committed(session, number);
    }
    assert_eq!(api.requests().len(), 50);
    // Dropping the API looks whether any prefix has broken.
}

/// A mind that has answered the first line of its session.
async fn begun() -> Option<(Home, MessagesApi, Mind, Session)> {
    let (home, api) = real().await?;
    let (mut mind, session) = (home.mind(), session(1));
    assert_eq!(mind.feed(feed(&session, 1, "[mail]\none;")).await.said(), "echo [mail]\none;");
    Some((home, api, mind, session))
}

/// Changes the session's file while no process has it.
async fn rewrite(home: &Home, mind: &mut Mind, session: &Session, change: impl FnOnce(&str) -> String) {
    mind.stop(Stop::Idle).await;
    let file = home.session_file(session).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, change(&text)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_child_that_dies_is_told_and_replaced() {
    let Some((home, _api, mut mind, session)) = begun().await else { return };
    kill_program(&home);
    assert_eq!(mind.exited().await, "exit code 137");
    assert_eq!(mind.feed(feed(&session, 2, "[mail]\ntwo;")).await.said(), "echo [mail]\ntwo;");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_must_exist_and_does_not_is_gone() {
    let Some((home, api)) = real().await else { return };
    let mut mind = home.mind();
    let mut wanted = feed(&session(1), 1, "[mail]\nhello");
    wanted.must_exist = true;
    let ended = mind.feed(wanted).await;
    assert!(matches!(ended.ending, Ending::SessionGone { .. }), "{ended:?}");
    mind.exited().await;
    assert_eq!(api.requests().len(), 0);
    assert_eq!(mind.feed(feed(&session(2), 1, "[mail]\nhello")).await.said(), "echo [mail]\nhello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_file_without_the_last_committed_line_is_gone() {
    let Some((_home, _api, mut mind, session)) = begun().await else { return };
    mind.stop(Stop::Idle).await;
    let ended = mind.feed(feed(&committed(session, 7), 2, "[mail]\ntwo;")).await;
    assert!(matches!(ended.ending, Ending::SessionGone { .. }), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_file_lost_under_a_living_child_is_noticed() {
    let Some((home, _api, mut mind, session)) = begun().await else { return };
    std::fs::remove_file(home.session_file(&session).unwrap()).unwrap();
    let ended = mind.feed(feed(&committed(session, 1), 2, "[mail]\ntwo;")).await;
    assert!(matches!(ended.ending, Ending::SessionGone { .. }), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_holds_no_turn_yet_is_no_obstacle() {
    let Some((home, api, mut mind, session)) = begun().await else { return };
    // What a kill right after the line was queued leaves behind.
    let first_line = |text: &str| text.lines().next().unwrap().to_owned();
    rewrite(&home, &mut mind, &session, first_line).await;
    assert_eq!(mind.feed(feed(&session, 1, "[mail]\none;")).await.said(), "echo [mail]\none;");
    assert_eq!(api.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_last_line_is_no_obstacle() {
    let Some((home, api, mut mind, session)) = begun().await else { return };
    let torn = |text: &str| format!(r#"{text}{{"parentUuid":"23ea75"#);
    rewrite(&home, &mut mind, &session, torn).await;
    let session = committed(session, 1);
    assert_eq!(mind.feed(feed(&session, 2, "[mail]\ntwo;")).await.said(), "echo [mail]\ntwo;");
    assert_eq!(times_in_context(&api, "one;"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_generation_is_another_session() {
    let Some((home, api)) = real().await else { return };
    let mut mind = home.mind();
    mind.feed(feed(&session(1), 1, "[mail]\none;")).await;
    assert_eq!(mind.feed(feed(&session(2), 2, "[mail]\ntwo;")).await.said(), "echo [mail]\ntwo;");
    assert_eq!(times_in_context(&api, "one;"), 0);
    drop(mind.handle.commands);
    loop {
        match mind.handle.events.recv().await {
            Some(MindEvent::Exited { .. }) => {}
            other => break assert_eq!(other, None),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_tells_its_own_money_also_after_a_resume() {
    let Some((home, _api)) = real().await else { return };
    let mut mind = home.mind();
    let mut session = session(1);
    let prices = persona_bridge::config::prices::shipped().unwrap();
    let price = prices.find(&home.config.model).unwrap();
    for (number, stop) in [(1, false), (2, true), (3, false)] {
        let ended = mind.feed(feed(&session, number, "[mail]\nhello")).await;
        let [request] = ended.usage.requests.as_slice() else { panic!("{ended:?}") };
        let tokens = Tokens {
            input: request.input,
            read: request.cache_read,
            written_5m: request.written_5m,
            written_1h: request.written_1h,
            output: request.output,
        };
        let (told, reckoned) = (ended.usage.money.unwrap(), price.cost(&tokens).dollars());
        assert!(told > 0.0 && (told - reckoned).abs() < reckoned / 100.0, "{told} {reckoned} {request:?}");
        session = committed(session, number);
        if stop {
            mind.stop(Stop::Idle).await;
        }
    }
}
