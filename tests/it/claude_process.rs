//! The mind's contract with a process that does not behave: a shell script in the CLI's place.

use std::time::{Duration, Instant};

use persona_bridge::conversation::Millis;
use persona_bridge::mind::{Feed, MindCommand, MindEvent, Purpose, claude};
use persona_bridge::persona::Ending;
use persona_bridge::persona::decide::Stop;
use persona_bridge::persona::session::identity::VERSION;
use persona_bridge::persona::session::{Fingerprint, Reason, Session};

use crate::minds::{Ended, Home, feed, forked, group, line, members, session};

/// A home whose CLI does what `model` names in `fake/claude.sh`.
fn fake(model: &str) -> Home {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake/claude.sh");
    let mut home = Home::new(program.into(), None);
    home.config.model = model.to_owned();
    home.config.silence = Duration::from_secs(5);
    home
}

async fn fed(model: &str) -> Ended {
    fake(model).mind().feed(feed(&session(1), 1, "words")).await
}

async fn check(model: &str, expect: impl Fn(&Ending) -> bool) {
    let ended = fed(model).await;
    assert!(expect(&ended.ending), "{model} ended as {:?}", ended.ending);
}

fn lost(ending: &Ending) -> bool {
    matches!(ending, Ending::Lost { .. })
}

fn died(ending: &Ending) -> bool {
    matches!(ending, Ending::Died { .. })
}

fn gone(ending: &Ending) -> bool {
    matches!(ending, Ending::SessionGone { .. })
}

fn poisoned(ending: &Ending) -> bool {
    matches!(ending, Ending::Poisoned { .. })
}

fn invalid(ending: &Ending) -> bool {
    matches!(ending, Ending::Invalid { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_before_the_line_was_heard_is_told_as_lost_and_a_later_one_as_that() {
    for model in ["dies-at-once", "dies-after-reading", "closes-its-output"] {
        check(model, lost).await;
    }
    for model in ["dies-after-hearing", "dies-in-a-line"] {
        check(model, died).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_names_the_exit_code() {
    let ended = fed("dies-after-hearing").await;
    assert_eq!(
        ended.ending,
        Ending::Died { reason: "the process ended in the middle: exit code 3".to_owned() }
    );
    assert!(ended.heard);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_written_before_death_is_taken_from_the_record() {
    let home = fake("dies-after-writing");
    let mut mind = home.mind();
    assert!(died(&mind.feed(feed(&session(1), 1, "words")).await.ending));
    let again = mind.feed(feed(&session(1), 1, "words")).await;
    assert_eq!((again.said().as_str(), again.from_record), ("done", true));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_is_told_before_anything_is_asked_of_a_session_that_it_did_not_begin() {
    let home = fake("answers");
    let begun_with = Fingerprint([(VERSION.to_owned(), "2.1.197".to_owned())].into());
    let [first, second] = [1, 2].map(|number| Session { fingerprint: begun_with.clone(), ..session(number) });
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&first, 1, "words")).await.said(), "done");
    mind.stop(Stop::Idle).await;
    std::fs::write(home.root().join("home/version"), "2.1.400").unwrap();
    let told = |session: &Session, begun| MindEvent::Version {
        session: session.id,
        version: "2.1.400".to_owned(),
        begun,
    };
    mind.send(MindCommand::Feed(Box::new(feed(&first, 2, "words")))).await;
    assert_eq!(mind.event().await, told(&first, false));
    let ended = mind.turn_end(line(2)).await;
    assert_eq!(ended.ending, Ending::Unsettled { why: Reason::CliVersion });
    mind.exited().await;
    let again = mind.feed(feed(&first, 1, "words")).await;
    assert_eq!((again.said().as_str(), again.from_record), ("done", true));
    mind.exited().await;
    mind.send(MindCommand::Feed(Box::new(feed(&second, 3, "words")))).await;
    assert_eq!(mind.event().await, told(&second, true));
    assert_eq!(mind.turn_end(line(3)).await.said(), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_only_to_be_settled_is_not_written_to_a_living_process() {
    let home = fake("answers");
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&session(1), 1, "words")).await.said(), "done");
    let settled =
        |number| Feed { purpose: Purpose::Settle(Reason::Cold), ..feed(&session(1), number, "words") };
    assert_eq!(mind.feed(settled(2)).await.ending, Ending::Unsettled { why: Reason::Cold });
    assert_eq!(mind.feed(settled(1)).await.said(), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_a_file_that_cannot_be_made_durable_is_none_yet() {
    let ended = fed("no-durable-file").await;
    let Ending::Lost { reason } = &ended.ending else { panic!("{ended:?}") };
    assert!(reason.contains("could not be made durable"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_strange_lines_and_huge_lines_are_borne() {
    for model in ["floods", "strange", "huge", "stale", "unnamed"] {
        assert_eq!(fed(model).await.said(), "done", "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_typed_reply_is_invalid() {
    for model in ["null", "text", "list"] {
        check(model, invalid).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_the_cli_in_a_success_are_what_they_say() {
    check("limit-as-success", |ending| matches!(ending, Ending::Transient { .. })).await;
    check("too-long-as-success", |ending| *ending == Ending::TooLong).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_changed_under_us_is_never_used_again() {
    let (other, compacted) = ("the CLI has changed to another session", "the CLI has compacted the session");
    for (model, alarms) in [
        ("changes-session", vec![other]),
        ("compacts", vec![compacted]),
        ("does-not-know", vec![]),
        ("no-file", vec![]),
        ("in-use", vec![]),
    ] {
        let home = fake(model);
        let mut mind = home.mind();
        let ended = mind.feed(feed(&session(1), 1, "words")).await;
        let expect = if alarms.is_empty() { gone } else { poisoned };
        assert!(expect(&ended.ending), "{model} ended as {:?}", ended.ending);
        assert_eq!(ended.alarms, alarms, "{model}");
        mind.exited().await;
    }
    let mut mind = fake("compacts").mind();
    mind.feed(feed(&session(1), 1, "words")).await;
    assert!(poisoned(&mind.feed(feed(&session(1), 2, "words")).await.ending));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_that_stands_in_a_spoilt_file_is_taken_and_nothing_else_is_asked_there() {
    let home = fake("compacts-after-writing");
    let mut mind = home.mind();
    let ended = mind.feed(feed(&session(1), 1, "words")).await;
    assert_eq!((ended.said().as_str(), ended.from_record, ended.alarms.len()), ("done", true, 1));
    mind.exited().await;
    mind.crash().await;
    let mut mind = home.mind();
    let again = mind.feed(feed(&session(1), 1, "words")).await;
    assert_eq!((again.said().as_str(), again.from_record, again.alarms.len()), ("done", true, 1));
    mind.exited().await;
    assert!(poisoned(&mind.feed(feed(&session(1), 2, "words")).await.ending));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_spoilt_session_is_put_aside_and_kept_like_others() {
    let home = fake("answers");
    let mut mind = home.mind();
    mind.feed(feed(&session(1), 1, "words")).await.said();
    let (file, now) = (home.session_file(&session(1)).unwrap(), feed(&session(1), 1, "").now);
    mind.send(MindCommand::Quarantine { session: session(1).id, now }).await;
    mind.exited().await;
    assert_eq!((home.session_file(&session(1)), members(group(&home))), (None, vec![]));
    let aside = file.with_extension("jsonl.quarantined");
    assert!(std::fs::read_to_string(&aside).unwrap().contains("words"));
    mind.send(MindCommand::Quarantine { session: session(1).id, now }).await;
    mind.exited().await;
    assert_eq!(mind.feed(feed(&session(2), 2, "words")).await.said(), "done");
    assert!(aside.exists());
    assert!(claude::prune(&home.config, &home.persona, Millis(now.0 + 1)).unwrap() >= 1);
    assert!(!aside.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_compacted_between_turns_is_an_alarm_at_once() {
    let home = fake("compacts-later");
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&session(1), 1, "words")).await.said(), "done");
    mind.exited().await;
    let reason = "the CLI has compacted the session";
    assert_eq!(mind.event().await, MindEvent::Poisoned { session: session(1).id, reason });
    assert!(poisoned(&mind.feed(feed(&session(1), 2, "words")).await.ending));
    assert_eq!(mind.feed(feed(&session(2), 2, "words")).await.said(), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_id_in_use_is_read_once_more() {
    assert_eq!(fed("late-file").await.said(), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_the_process_and_the_line_is_lost() {
    for model in ["stalls", "does-not-read", "deaf"] {
        let mut home = fake(model);
        home.config.silence = Duration::from_millis(300);
        let mut mind = home.mind();
        let ended = mind.feed(feed(&session(1), 1, &"long ".repeat(100_000))).await;
        assert_eq!(ended.ending, Ending::Lost { reason: "it was silent".to_owned() }, "{model}");
        mind.exited().await;
        assert_eq!(members(group(&home)), [], "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_ends_even_a_deaf_process() {
    for model in ["stalls", "deaf"] {
        let home = fake(model);
        let mut mind = home.mind();
        mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "words")))).await;
        heard(&mut mind).await;
        mind.send(MindCommand::Stop(Stop::Busy)).await;
        assert!(lost(&mind.turn_end(line(1)).await.ending));
        mind.exited().await;
        assert_eq!(members(group(&home)), [], "{model}");
    }
}

async fn heard(mind: &mut crate::minds::Mind) {
    while !matches!(mind.event().await, MindEvent::Heard { .. }) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_process_ends_by_itself_when_its_input_is_closed() {
    let home = fake("answers");
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&session(1), 1, "words")).await.said(), "done");
    assert_eq!(mind.stop(Stop::Idle).await, "exit code 0");
    assert_eq!(mind.stop(Stop::Idle).await, "no process was running");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_process_started_ends_with_it() {
    let home = fake("forks");
    let mut mind = home.mind();
    mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "words")))).await;
    heard(&mut mind).await;
    let group = group(&home);
    assert!(members(group).len() >= 3, "guard, script and sleep");
    assert_eq!(forked(&home).len(), 2);
    mind.send(MindCommand::Stop(Stop::Busy)).await;
    mind.turn_end(line(1)).await;
    mind.exited().await;
    assert_eq!(members(group), []);
    assert_eq!(forked(&home), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_zombie_is_left() {
    let home = fake("dies-after-hearing");
    let mut mind = home.mind();
    for _ in 0..3 {
        assert!(died(&mind.feed(feed(&session(1), 1, "words")).await.ending));
        mind.exited().await;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", group(&home).as_raw_nonzero()));
        assert!(stat.is_err(), "{stat:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_owner_is_refused_and_the_first_goes_on() {
    let home = fake("answers");
    let mut first = home.mind();
    first.feed(feed(&session(1), 1, "words")).await.said();
    // Another living bridge, as far as the record tells: the process that runs the tests' parent.
    let record = home.root().join("owner.json");
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap();
    let started: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let mut holder: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    holder["bridge"] = parent.into();
    holder["bridge_started"] = started.into();
    std::fs::write(&record, holder.to_string()).unwrap();
    let ended = home.mind().feed(feed(&session(1), 2, "words")).await;
    let Ending::Lost { reason } = ended.ending else { panic!("{ended:?}") };
    assert!(reason.contains("another bridge"), "{reason}");
    assert_eq!(first.feed(feed(&session(1), 3, "words")).await.said(), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_cli_is_refused_by_name() {
    let home = fake("answers");
    std::fs::create_dir_all(&home.config.state).unwrap();
    let reason = claude::version(&home.config).await.unwrap_err();
    assert!(reason.contains("2.1.197") && reason.contains("2.1.332"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_missing_is_told_as_lost() {
    let mut home = fake("answers");
    home.config.program = "/nowhere/claude".into();
    check_home(&home, lost).await;
    assert!(claude::version(&home.config).await.unwrap_err().contains("/nowhere/claude"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_a_git_tree_is_refused() {
    let home = fake("answers");
    std::fs::create_dir_all(home.path().join(".git")).unwrap();
    check_home(&home, |ending| matches!(ending, Ending::Refused { reason } if reason.contains("git"))).await;
}

async fn check_home(home: &Home, expect: impl Fn(&Ending) -> bool) {
    let ended = home.mind().feed(feed(&session(1), 1, "words")).await;
    assert!(expect(&ended.ending), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_and_prompt_are_readable_by_us_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = fake("answers");
    home.mind().feed(feed(&session(3), 1, "words")).await.said();
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.root()), 0o700);
    assert_eq!(mode(home.root().join("config")), 0o700);
    assert_eq!(mode(home.root().join("prompts/3.md")), 0o600);
    assert_eq!(mode(home.root().join("stderr.log")), 0o600);
    assert_eq!(std::fs::read_to_string(home.root().join("prompts/3.md")).unwrap(), "You are Eir.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_line_in_flight_is_turned_away() {
    let home = fake("stalls");
    let mut mind = home.mind();
    mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "words")))).await;
    heard(&mut mind).await;
    assert!(lost(&mind.feed(feed(&session(1), 2, "words")).await.ending));
    mind.send(MindCommand::Stop(Stop::Busy)).await;
    assert!(lost(&mind.turn_end(line(1)).await.ending));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mind_that_nobody_commands_any_more_ends_its_process() {
    let home = fake("stalls");
    let mut mind = home.mind();
    mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "words")))).await;
    heard(&mut mind).await;
    drop(mind.handle.commands);
    mind.task.join_next().await.unwrap().unwrap();
    assert_eq!(members(group(&home)), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mind_that_is_dropped_leaves_nothing() {
    let home = fake("deaf");
    let mut mind = home.mind();
    mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "words")))).await;
    heard(&mut mind).await;
    let group = group(&home);
    mind.crash().await;
    let begun = Instant::now();
    // The script's own child sleeps for a second and is not in the way of the next mind.
    while members(group).len() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", members(group));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_a_later_attempt_are_short_only_where_the_session_holds_an_earlier_one() {
    let home = fake("answers");
    let mut mind = home.mind();
    let mut second = feed(&session(1), 2, "words");
    second.earlier = vec![line(1)];
    mind.feed(second.clone()).await.said();
    second.line = line(3);
    second.earlier = vec![line(1), line(2)];
    mind.feed(second).await.said();
    assert_eq!(std::fs::read_to_string(home.root().join("home/fed")).unwrap(), "words\n(retry)\n");
}
