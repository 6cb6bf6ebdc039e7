//! Personas who talk too much, together with people: what holds on virtual time holds with the real CLI on real homeservers.

mod gathering;

use persona_bridge::demo::homeserver::Kind;

use crate::company::Manner;
use crate::tools::now;
use gathering::{ALICE, BOB, CAROL, Gathering, lines};

#[tokio::test(flavor = "multi_thread")]
async fn personas_who_talk_too_much_keep_the_laws_on_synapse() {
    talkative(Kind::Synapse, "personas_who_talk_too_much_keep_the_laws_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn personas_who_talk_too_much_keep_the_laws_on_conduit() {
    talkative(Kind::Conduit, "personas_who_talk_too_much_keep_the_laws_on_conduit").await;
}

async fn talkative(kind: Kind, test: &str) {
    let Some(mut gathering) = Gathering::begin(kind, test, Manner::Talkative).await else { return };
    gathering.talk(lines()).await;
    let account = gathering.keeps_the_laws(test).await;
    assert!(account.said.len() >= lines() && !account.asked.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn personas_who_always_answer_each_other_come_to_an_end_on_synapse() {
    answering(Kind::Synapse, "personas_who_always_answer_each_other_come_to_an_end_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn personas_who_always_answer_each_other_come_to_an_end_on_conduit() {
    answering(Kind::Conduit, "personas_who_always_answer_each_other_come_to_an_end_on_conduit").await;
}

async fn answering(kind: Kind, test: &str) {
    let Some(mut gathering) = Gathering::begin(kind, test, Manner::Answering).await else { return };
    gathering.talk(lines()).await;
    gathering.keeps_the_laws(test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_speaks_everywhere_is_heard_only_where_it_was_asked_on_synapse() {
    everywhere(Kind::Synapse, "a_model_that_speaks_everywhere_is_heard_only_where_it_was_asked_on_synapse")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_speaks_everywhere_is_heard_only_where_it_was_asked_on_conduit() {
    everywhere(Kind::Conduit, "a_model_that_speaks_everywhere_is_heard_only_where_it_was_asked_on_conduit")
        .await;
}

async fn everywhere(kind: Kind, test: &str) {
    let Some(mut gathering) = Gathering::begin(kind, test, Manner::Everywhere).await else { return };
    gathering.talk(lines()).await;
    let account = gathering.keeps_the_laws(test).await;
    assert!(account.asked.iter().any(|asked| asked.mends()), "it never tried another room");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admins_stop_ends_a_storm_in_its_middle_on_synapse() {
    stopped(Kind::Synapse, "an_admins_stop_ends_a_storm_in_its_middle_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admins_stop_ends_a_storm_in_its_middle_on_conduit() {
    stopped(Kind::Conduit, "an_admins_stop_ends_a_storm_in_its_middle_on_conduit").await;
}

async fn stopped(kind: Kind, test: &str) {
    let Some(mut gathering) = Gathering::begin(kind, test, Manner::Answering).await else { return };
    gathering.talk(lines() / 2).await;
    let [swarm, burn] = ["swarm", "burn"].map(|register| gathering.room(register));
    let personas = gathering.personas.clone();
    let mut asides = Vec::new();
    for who in &personas {
        asides.push(gathering.say_aside(BOB, &swarm, &who.id).await);
    }
    gathering.people[CAROL].say(&swarm, "stop").await;
    gathering.is_stopped(&swarm).await;
    let said_by_then = gathering.said_by_personas(&swarm).await;
    asides.push(gathering.say_aside(ALICE, &swarm, &personas[0].id).await);
    for number in 0..lines() / 2 {
        gathering.say_in(ALICE, &burn, Some(&personas[number % personas.len()].id)).await;
        gathering.heard().await;
    }
    assert_eq!(gathering.said_by_personas(&swarm).await, said_by_then, "{test}: it is stopped");
    let go = now();
    gathering.people[CAROL].say(&swarm, "!persona go").await;
    gathering.hear_since(&asides, go).await;
    gathering.keeps_the_laws(test).await;
}
