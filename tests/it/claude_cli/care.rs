//! One session after the other on the real CLI, and what a change of what it is resumed with does to the prompt cache.

use persona_bridge::conversation::prompt::PING;
use persona_bridge::conversation::{Millis, TurnId};
use persona_bridge::mind::claude::{Config, Resuming, fingerprint, prune};
use persona_bridge::persona::decide::Stop;
use persona_bridge::persona::session::{
    Account, Attempt, CacheVerdict, Cause, Fingerprint, Request, Session, Ttl,
};

use uuid::Uuid;

use super::real;
use crate::fake::messages_api::{Answer, MessagesApi};
use crate::minds::{Ended, Home, Mind, SCHEMA, feed, line, session};

const VERSION: &str = "2.1.332";
const PROMPT: &str = "You are Eir.";

/// Longer than the shortest prompt that any model's cache keeps.
fn long(words: &str) -> String {
    format!("[mail]\n{words}{}", " and so on".repeat(4_000))
}

/// A schema that asks for the same and has other bytes.
fn another_schema() -> &'static str {
    let other = SCHEMA.replacen(r#""react":{"#, r#""react":{"maxItems":9,"#, 1);
    assert_ne!(other, SCHEMA);
    Box::leak(other.into_boxed_str())
}

/// A session whose first turn is over and whose process has ended, and its account.
struct Begun {
    home: Home,
    api: MessagesApi,
    session: Session,
    account: Account,
    first: Request,
}

/// What the second turn of a session came to.
struct Resumed {
    request: Request,
    cause: Cause,
    model: String,
    /// Where the prefix was not as before, by what the API saw.
    faults: Vec<String>,
}

fn count(account: &mut Account, ended: &Ended, second: u64) -> Request {
    let (fed, done) = (Millis(second * 1_000), Millis(second * 1_000 + 500));
    let usage = &ended.usage;
    let ttl = Ttl::FiveMinutes;
    let attempt = Attempt {
        generation: 1,
        turn: TurnId(Uuid::from_u128(second.into())),
        attempt: 1,
        fed,
        ended: done,
        recalled: false,
        usage,
        ttl,
        mail: 0,
        shared: 0,
        goes_on: false,
        flush: None,
    };
    let mut counted = account.count(&attempt, &persona_bridge::config::prices::shipped().unwrap());
    assert_eq!(counted.requests.len(), 1, "{ended:?}");
    counted.requests.remove(0)
}

async fn begun() -> Option<Begun> {
    let (home, api) = real().await?;
    let print = fingerprint(&home.config, &home.persona, VERSION, PROMPT, SCHEMA);
    let mut session = Session { fingerprint: print, ..session(1) };
    let mut mind = home.mind();
    let ended = mind.feed(feed(&session, 1, &long("one;"))).await;
    mind.stop(Stop::Idle).await;
    session.last_committed = Some(line(1));
    let mut account = Account::default();
    let first = count(&mut account, &ended, 1);
    assert_eq!(first.verdict, CacheVerdict::First);
    Some(Begun { home, api, session, account, first })
}

impl Begun {
    /// Resumes it after a change of the config, with this schema and prompt.
    async fn resume(
        mut self,
        change: impl FnOnce(&mut Config),
        schema: &'static str,
        prompt: &str,
    ) -> Resumed {
        change(&mut self.home.config);
        let now: Fingerprint = fingerprint(&self.home.config, &self.home.persona, VERSION, prompt, schema);
        let mut mind = self.home.mind_with(schema);
        let mut wanted = feed(&self.session, 2, "[mail]\ntwo;");
        wanted.prompt = prompt.to_owned();
        let ended = mind.feed(wanted).await;
        assert_eq!(ended.said(), "echo [mail]\ntwo;");
        let request = count(&mut self.account, &ended, 10);
        assert!(request.expected >= self.first.tokens.prompt() && request.expected > 4_096, "{request:?}");
        let model = self.api.requests().pop().unwrap().body["model"].as_str().unwrap().to_owned();
        let cause = Cause::of(&self.session.fingerprint, &now);
        Resumed { request, cause, model, faults: self.api.take_faults() }
    }
}

fn unguarded(config: &mut Config) {
    config.resuming = Resuming::AsConfigured;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_as_it_was_begun_and_reads_its_prefix() {
    let Some(begun) = begun().await else { return };
    let model = begun.home.config.model.clone();
    let change = |config: &mut Config| {
        config.model = "claude-opus-4-5".to_owned();
        config.effort = Some("low".to_owned());
    };
    let resumed = begun.resume(change, another_schema(), "You are somebody else.").await;
    assert_eq!((resumed.request.verdict, resumed.model), (CacheVerdict::Hit, model));
    assert_eq!(resumed.faults, [""; 0]);
    assert_eq!(resumed.cause.to_string(), "effort, model, prompt, schema");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_guard_a_changed_schema_breaks_the_prefix_and_is_named() {
    let Some(begun) = begun().await else { return };
    let resumed = begun.resume(unguarded, another_schema(), PROMPT).await;
    assert_eq!(resumed.request.verdict, CacheVerdict::Broken, "{:?}", resumed.request);
    assert_eq!(resumed.cause.to_string(), "schema");
    assert!(resumed.faults.iter().any(|fault| fault.contains("tools")), "{:?}", resumed.faults);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_guard_a_changed_model_breaks_the_prefix_and_is_named() {
    let Some(begun) = begun().await else { return };
    let change = |config: &mut Config| {
        unguarded(config);
        config.model = "claude-opus-4-5".to_owned();
    };
    let resumed = begun.resume(change, SCHEMA, PROMPT).await;
    assert_eq!(resumed.request.verdict, CacheVerdict::Broken, "{:?}", resumed.request);
    assert_eq!((resumed.cause.to_string().as_str(), resumed.model.as_str()), ("model", "claude-opus-4-5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_guard_a_changed_prompt_file_alone_still_reads_its_prefix() {
    let Some(begun) = begun().await else { return };
    let prompt = "You are somebody else.";
    let file = begun.home.root().join("prompts/1.md");
    std::fs::write(&file, prompt).unwrap();
    let resumed = begun.resume(unguarded, SCHEMA, prompt).await;
    assert_eq!(resumed.request.verdict, CacheVerdict::Hit, "{:?}", resumed.request);
    assert_eq!(resumed.cause.to_string(), "prompt");
    assert_eq!(resumed.faults, [""; 0], "the CLI keeps the prompt that it recorded");
}

/// The names of all files of sessions, put aside or not.
fn files(home: &Home) -> Vec<String> {
    let projects = std::fs::read_dir(home.root().join("config/projects")).unwrap();
    let files = projects.flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap());
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.contains(".jsonl"));
    names.sort();
    names
}

async fn say(mind: &mut Mind, session: &Session, number: u32) {
    let words = format!("[mail]\nnumber {number};");
    assert_eq!(mind.feed(feed(session, number, &words)).await.said(), format!("echo {words}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_session_puts_the_file_of_the_one_before_aside_and_knows_nothing_of_it() {
    let Some((home, api)) = real().await else { return };
    let mut mind = home.mind();
    let [before, next] = [session(1), session(2)];
    say(&mut mind, &before, 1).await;
    let words = std::fs::read(home.session_file(&before).unwrap()).unwrap();
    say(&mut mind, &next, 2).await;
    say(&mut mind, &next, 3).await;
    let aside = format!("{}.jsonl.archived", before.id);
    let mut expected = vec![aside.clone(), format!("{}.jsonl", next.id)];
    expected.sort();
    assert_eq!(files(&home), expected);
    let file = home.session_file(&next).unwrap().with_file_name(&aside);
    assert!(std::fs::read(file).unwrap().starts_with(&words), "nothing of it is lost");
    let last = api.requests().pop().unwrap().body["messages"].to_string();
    assert!(last.contains("number 2;") && !last.contains("number 1;"), "{last}");
    mind.stop(Stop::Idle).await;
    let later = Millis(feed(&next, 4, "").now.0 + 1);
    assert!(prune(&home.config, &home.persona, later).unwrap() >= 1);
    assert_eq!(files(&home), [format!("{}.jsonl", next.id)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_reads_the_sessions_prefix_and_leaves_its_file_and_its_process_as_they_are() {
    let Some((home, api)) = real().await else { return };
    let mut mind = home.mind();
    let mut session = session(1);
    api.script([Answer::say("yes")]);
    let first = mind.feed(feed(&session, 1, &long("one;"))).await;
    let prefix = first.usage.requests[0].prefix();
    session.last_committed = Some(line(1));
    for closed in [false, true] {
        if closed {
            mind.stop(Stop::Idle).await;
        }
        let file = home.session_file(&session).unwrap();
        let before = std::fs::read(&file).unwrap();
        let usage = mind.ping(feed(&session, 90 + u32::from(closed), PING)).await;
        let [request] = usage.requests.as_slice() else { panic!("{usage:?}") };
        assert!(request.cache_read >= prefix, "{request:?} of {prefix}");
        assert!(request.written_5m < 500, "{request:?}");
        assert!(std::fs::read(&file).unwrap() == before, "the file is as it was");
        assert_eq!(files(&home), [format!("{}.jsonl", session.id)], "the fork is thrown away");
    }
    let second = mind.feed(feed(&session, 2, "[mail]\ntwo;")).await;
    assert_eq!(second.said(), "echo [mail]\ntwo;");
    assert!(second.usage.requests[0].cache_read >= prefix, "{second:?}");
    let asked = api.requests().pop().unwrap().body["messages"].to_string();
    assert!(!asked.contains("keeps your session warm"), "she knows nothing of it");
}
