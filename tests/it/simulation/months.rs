//! A session over days on the real CLI, with a clock that jumps and a cache that forgets: every mail is answered once, the
//! cache holds what it should, and the money is what `simulate` says.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use persona_bridge::bridge::Mind;
use persona_bridge::config;
use persona_bridge::conversation::Millis;
use persona_bridge::mind::claude::{PINNED_VERSION, Ttl};
use persona_bridge::operate::simulate::{self, Arrival, Assumptions, Scene};
use persona_bridge::persona::session::{
    CacheVerdict, Entry, EntryKind, Price, Request, Tokens, Ttl as Kept, Usd,
};
use serde_json::Value;

use super::stage::{EIR, Stage, swarm};
use super::world::World;
use crate::child_clock::ChildClock;
use crate::fake::homeserver::Flavour;
use crate::fake::messages_api::{self, Answer, Gate, MessagesApi};
use crate::minds::{Home, kill_program};
use crate::tools::{aloud, claude_program, scale};

const MODEL: &str = "claude-sonnet-4-5";
const MINUTE: u64 = 60;

/// What becomes of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The CLI is killed while the API thinks.
    Kill,
    /// The bridge is cut off while the API thinks.
    Cut,
    /// The API refuses the request once.
    Refused,
}

/// One mail: so many seconds after the one before.
#[derive(Clone, Copy, Debug)]
struct Mail {
    number: u32,
    gap: u64,
    fault: Fault,
}

/// Days of talk: bursts with minutes between, pauses of hours, nights.
fn days(turns: u32) -> Vec<Mail> {
    let gap = |number: u32| match number % 30 {
        // The world begins at eight in the morning; the first night falls into the first burst.
        _ if number == 1 => (15 * 60 + 45) * MINUTE,
        0 => 10 * 60 * MINUTE,
        10 => 3 * 60 * MINUTE,
        17 | 24 => 40 * MINUTE,
        n => u64::from(n % 7 + 1) * MINUTE,
    };
    let fault = |number: u32| match number % 20 {
        5 => Fault::Kill,
        11 => Fault::Cut,
        16 => Fault::Refused,
        _ => Fault::None,
    };
    (1..=turns).map(|number| Mail { number, gap: gap(number), fault: fault(number) }).collect()
}

/// Some words of a length that a person writes, each time others.
fn words(number: u32) -> String {
    let mut text = format!("Eir, number-{number};");
    for n in 0..60 {
        let _ = write!(text, " {}", (number * 7919 + n * 104_729) % 100_003);
    }
    text
}

/// The days, as far as they are played.
struct Days {
    api: MessagesApi,
    home: Home,
    /// What the CLI's own clock is set by, if it can be.
    clock: Option<ChildClock>,
    minimum: usize,
    mails: Vec<Mail>,
    at: usize,
    /// Whether the mail at hand was said in the life before.
    is_said: bool,
}

impl Days {
    /// Plays until the bridge is cut off, or to the end.
    async fn play(&mut self, stage: &Stage) {
        let swarm = stage.swarm().await;
        while let Some(mail) = self.mails.get(self.at).copied() {
            if !std::mem::take(&mut self.is_said) {
                self.say(stage, &swarm, mail).await;
                if mail.fault == Fault::Cut {
                    self.is_said = true;
                    return;
                }
            }
            let answer = format!("answer-{};", mail.number);
            let is_there = || stage.home.bodies(&swarm, EIR).iter().any(|body| body.contains(&answer));
            stage.until(&answer, is_there).await;
            self.at += 1;
        }
    }

    async fn say(&self, stage: &Stage, swarm: &str, mail: Mail) {
        stage.jump(Duration::from_secs(mail.gap)).await;
        self.api.at(stage.now(), self.minimum);
        if let Some(clock) = &self.clock {
            clock.set(stage.now());
        }
        let asked = self.api.requests().len();
        match mail.fault {
            Fault::Kill | Fault::Cut => {
                self.api.script([Answer::Held(Gate::closed(), Box::new(Answer::say("never heard")))]);
            }
            Fault::Refused => {
                self.api.script([Answer::error(400, "invalid_request_error", "messages: nope")]);
            }
            Fault::None => {}
        }
        stage.alice().say(swarm, &words(mail.number));
        self.api.wait_for(asked + 1).await;
        if mail.fault == Fault::Kill {
            kill_program(&self.home);
        }
    }
}

/// The number of the newest mail in a request.
fn newest(request: &messages_api::Request) -> u32 {
    let text = request.body["messages"].to_string();
    let (_, rest) = text.rsplit_once("number-").expect("mail");
    rest.split(';').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// The requests of the ledger, and how often a generation began.
fn requests(entries: Vec<Entry>) -> (Vec<Request>, usize) {
    let (mut requests, mut begun) = (Vec::new(), 0);
    for entry in entries {
        match entry.kind {
            EntryKind::Request(request) => requests.push(request),
            EntryKind::Begun { .. } => begun += 1,
            EntryKind::Ping { .. } | EntryKind::Warmth { .. } | EntryKind::Probe { .. } => {}
        }
    }
    (requests, begun)
}

#[test]
fn days_of_talk_are_answered_once_from_the_cache_for_what_simulate_says() {
    let Some(program) = claude_program() else { return };
    let outside = tokio::runtime::Runtime::new().unwrap();
    let api = outside.block_on(MessagesApi::start());
    api.rule(|request| Answer::say(&format!("answer-{};", newest(request))));
    let mut home = Home::new(program, Some(api.url()));
    let clock = ChildClock::around(&home.config.program, home.path(), "days_of_talk");
    if let Some(clock) = &clock {
        home.config.program.clone_from(&clock.program);
    }
    (home.config.ttl, home.config.model) = (Ttl::OneHour, MODEL.to_owned());
    let prices = config::prices::shipped().unwrap();
    let price = prices.find(MODEL).expect("a shipped price");
    let mut world = World::new(Flavour::Synapse);
    world.without_beats();
    world.config.personas[0].doctrine = vec![words(0).repeat(20)];
    world.config.mind = Mind::Claude(Box::new(home.config.clone()));
    world.config.mind_version = PINNED_VERSION.to_string();
    world.config.prices = prices.clone();
    let mails = days(60 * scale().min(5));
    let mut days = Days { api, home, clock, minimum: price.minimum as usize, mails, at: 0, is_said: false };
    while days.at < days.mails.len() {
        world.play(async |stage| days.play(stage).await);
    }
    let (rows, begun) = requests(world.store().ledger(Millis::default()).unwrap());
    each_is_answered_once(&world, days.mails.len());
    if days.clock.is_some() {
        a_day_has_passed(&days.api.requests());
    }
    assert!(begun > 2, "{begun} sessions");
    the_cache_held_what_it_should(&rows);
    let booked: Usd = rows.iter().filter_map(|row| row.money).sum();
    let price_of =
        |usages: Vec<Value>| -> Usd { usages.iter().map(|usage| price.cost(&tokens(usage))).sum() };
    let (spent, answered) = (price_of(days.api.usages()), price_of(days.api.answered()));
    let simulated = simulated(&days.mails, &rows, &price);
    // `simulate` knows of no kills: what the API took for requests that were cut off comes on top, and is in no ledger.
    let [ratio, whole] = [answered, spent].map(|usd| usd.dollars() / simulated.ours.cost.dollars());
    let refreshes: u64 = simulated.ours.refreshes.values().sum();
    aloud(&format!(
        "{} turns, {} requests, {} sessions ({} by simulate): {ratio:.3} of simulate's, {whole:.3} with what was cut off; {booked} in the ledger",
        days.mails.len(),
        days.api.requests().len(),
        begun,
        refreshes + 1
    ));
    assert!((0.95..=1.05).contains(&ratio), "{ratio}");
    let faults = days.mails.iter().filter(|mail| mail.fault != Fault::None).count();
    assert_eq!(
        days.api.requests().len(),
        days.mails.len() + faults,
        "one more request for each fault, and no other"
    );
    let in_ledger = booked.dollars() / answered.dollars();
    assert!((0.99..=1.01).contains(&in_ledger), "{booked} in the ledger, {answered} was answered");
}

/// What the API counted of a request.
fn tokens(usage: &Value) -> Tokens {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Tokens {
        input: count("input_tokens"),
        read: count("cache_read_input_tokens"),
        written_1h: count("cache_creation_input_tokens"),
        output: count("output_tokens"),
        ..Tokens::default()
    }
}

/// A session that has seen midnight is told so, behind all that it held before; and later sessions begin on later days.
fn a_day_has_passed(requests: &[messages_api::Request]) {
    let texts: Vec<String> = requests.iter().map(|request| request.body["messages"].to_string()).collect();
    let changed: Vec<&str> = texts.iter().filter_map(|text| text.split("date has changed").nth(1)).collect();
    let dates: BTreeSet<&str> =
        texts.iter().filter_map(|text| text.split("Today's date is ").nth(1)?.get(..10)).collect();
    aloud(&format!("{} requests behind a midnight; sessions begun on {dates:?}", changed.len()));
    assert!(!changed.is_empty() && dates.len() > 1);
}

fn each_is_answered_once(world: &World, count: usize) {
    let swarm = swarm(&world.home).unwrap();
    let said = world.home.bodies(&swarm, EIR);
    let expected: Vec<String> = (1..=count).map(|number| format!("answer-{number};")).collect();
    assert_eq!(said, expected);
    let alarms: Vec<String> =
        world.told().into_iter().filter(|text| !text.contains("begins session")).collect();
    assert_eq!(alarms, [] as [String; 0]);
}

/// No prefix is broken, and within its time to live nearly all of it is read.
fn the_cache_held_what_it_should(rows: &[Request]) {
    let of = |verdict| rows.iter().filter(move |row| row.verdict == verdict);
    assert_eq!(of(CacheVerdict::Broken).count(), 0);
    let (read, expected) = of(CacheVerdict::Hit).fold((0, 0), |(read, expected), row| {
        (read + row.tokens.read.min(row.expected), expected + row.expected)
    });
    assert!(expected > 0 && read * 100 >= expected * 99, "{read} of {expected}");
}

/// What `simulate` says of the same arrivals, with the sizes that were measured.
fn simulated(mails: &[Mail], rows: &[Request], price: &Price) -> simulate::Report {
    let mean = |of: Vec<u64>| of.iter().sum::<u64>() / of.len().max(1) as u64;
    let reply = mean(rows.iter().map(|row| row.tokens.output).collect());
    let hits = || rows.iter().filter(|row| row.verdict == CacheVerdict::Hit);
    let grown = mean(hits().map(|row| row.new).collect());
    let rebuilt = || rows.iter().filter(|row| row.verdict == CacheVerdict::Rebuilt);
    let first = mean(rebuilt().map(|row| row.tokens.prompt()).collect());
    let fixed = rebuilt().map(|row| row.tokens.read).filter(|read| *read > 0).min().expect("a warm refresh");
    let delivery = grown - reply;
    let assumed = Assumptions { fixed, rehydrated: first - delivery, delivery, reply, ..simulate::ASSUMED };
    let mut at = Duration::ZERO;
    let arrival = |mail: &Mail| {
        at += Duration::from_secs(mail.gap);
        Arrival { at, deliveries: 1 }
    };
    let arrivals: Vec<Arrival> = mails.iter().map(arrival).collect();
    simulate::simulate(&arrivals, &Scene { price, ttl: Kept::OneHour, assumed })
}
