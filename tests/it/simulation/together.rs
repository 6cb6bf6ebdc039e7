//! Personas who talk too much, together with people: a week of it, and the worst that models and people may do.

use std::time::Duration;

use persona_bridge::bridge::Config;
use persona_bridge::persona::{Among, Limit};

use super::week::{Book, House, WEEK, play, say_in};
use crate::company::{Limits, Manner};
use crate::tools::aloud;

const HOUR: Duration = Duration::from_secs(3600);

#[track_caller]
fn none_of(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(20)]);
}

#[test]
fn a_week_of_personas_who_talk_too_much_keeps_every_law() {
    let week = play(Manner::Talkative, WEEK, |_| {});
    aloud(&format!("the week: {}", week.report()));
    aloud(&format!("operators were told: {:?}", week.told));
    none_of(&week.faults());
    let said = &week.account.said;
    assert!(said.len() > 200 && said.iter().filter(|said| !said.to.is_empty()).count() > 100);
}

#[test]
fn with_hop_and_pair_rules_switched_off_the_same_people_and_personas_break_them() {
    let off = |config: &mut Config| config.among = Among { max_hops: u32::MAX, pair: None, ..config.among };
    let faults = play(Manner::Talkative, WEEK, off).faults();
    let over = faults.iter().filter(|fault| fault.starts_with("hops: ") && fault.contains("are over 3"));
    assert!(over.count() > 0, "{} other faults: {faults:#?}", faults.len());
}

#[test]
fn a_model_that_says_something_everywhere_is_heard_only_where_it_was_asked() {
    let day = play(Manner::Everywhere, 15 * HOUR, |_| {});
    none_of(&day.faults());
    let refused = day.account.asked.iter().filter(|asked| asked.mends()).count();
    assert!(refused > 10, "it tried another room only {refused} times");
}

#[test]
fn two_who_always_answer_each_other_come_to_an_end_while_somebody_chats_on() {
    let mut house = House::open(Manner::Answering, |config| config.personas.truncate(2));
    let (swarm, book, eir) = (house.room("swarm"), house.book.clone(), house.personas[0].clone());
    house.world.play(async |stage| {
        say_in(&stage.home, &book, ("alice", &swarm), Some(&eir));
        for _ in 0..60 {
            stage.pass(20_000).await;
            say_in(&stage.home, &book, ("bob", &swarm), None);
        }
    });
    let evening = house.week();
    none_of(&evening.faults());
    let said = evening.account.lines.iter().filter(|line| line.hops.is_some()).count();
    assert!((4..=5).contains(&said), "{said}: as many as the hops allow, and one at a beat");
}

/// The longest storm: two who always answer each other, where no number of hops ends it.
fn storm(pair: Option<Limit>) -> Vec<String> {
    let mut house = House::open(Manner::Answering, |config| {
        config.personas.truncate(2);
        config.among = Among { max_hops: u32::MAX, pair, ..config.among };
    });
    let (swarm, book, eir) = (house.room("swarm"), house.book.clone(), house.personas[0].clone());
    house.world.play(async |stage| {
        say_in(&stage.home, &book, ("alice", &swarm), Some(&eir));
        for _ in 0..60 {
            stage.pass(20_000).await;
            say_in(&stage.home, &book, ("bob", &swarm), None);
        }
    });
    let week = house.week();
    week.account.faults(&Limits { max_hops: u32::MAX, ..week.limits() })
}

#[test]
fn the_pair_rule_alone_holds_two_who_always_answer_each_other() {
    none_of(&storm(Among::default().pair));
    let faults = storm(None);
    assert!(faults.iter().any(|fault| fault.starts_with("pair: ")), "{faults:#?}");
}

#[test]
fn an_admins_stop_ends_a_storm_in_its_middle() {
    let mut house = House::open(Manner::Answering, |_| {});
    let [swarm, burn] = ["swarm", "burn"].map(|register| house.room(register));
    let (book, personas) = (house.book.clone(), house.personas.clone());
    // What is asked of a room that is stopped may wait for as long as that lasts.
    let aside = Book::default();
    house.world.play(async |stage| {
        let by_personas =
            || personas.iter().map(|who| stage.home.bodies(&swarm, &who.user).len()).sum::<usize>();
        for who in personas.iter().cycle().take(20) {
            say_in(&stage.home, &aside, ("alice", &swarm), Some(who));
            stage.pass(2_000).await;
        }
        stage.home.user("carol").say(&swarm, "stop");
        stage.until("the word is taken", || stage.home.waiting() == 0).await;
        let (said_by_then, thoughts) = (by_personas(), stage.thoughts("eir"));
        say_in(&stage.home, &aside, ("bob", &swarm), Some(&personas[0]));
        say_in(&stage.home, &book, ("bob", &burn), Some(&personas[0]));
        stage.pass(1_000_000).await;
        assert!(said_by_then > 3 && by_personas() == said_by_then, "it is stopped");
        assert_eq!(stage.thoughts("eir"), thoughts + 1, "and she goes on elsewhere");
        stage.home.user("carol").say(&swarm, "!persona go");
        stage.pass(600_000).await;
    });
    let evening = house.week();
    none_of(&evening.faults());
    for said in aside.lock().expect("not poisoned").iter() {
        let heard =
            evening.account.asked.iter().any(|asked| asked.who == said.to[0] && asked.hears(&said.token));
        assert!(heard, "{said:?} is lost");
    }
}
