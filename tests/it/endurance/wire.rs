//! A connection that breaks between bridge and homeserver: what was taken is not said twice, what was not is said.

use std::sync::atomic::{AtomicU32, Ordering};

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::Kind;
use ruma::RoomId;

use super::ground::{Dice, account, all_answered_once, one, wait_for_answers, word};
use crate::bridge::{Bridge, Setup, alias, name, persona};
use crate::fake::proxy::{Asked, Outcome, Proxy, Verdict};
use crate::servers::{self, Server};
use crate::tools::{self, tools_folder};
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_after_the_put_doubles_nothing_on_synapse() {
    cut_after_put(Kind::Synapse, "a_connection_cut_after_the_put_doubles_nothing_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_after_the_put_doubles_nothing_on_conduit() {
    cut_after_put(Kind::Conduit, "a_connection_cut_after_the_put_doubles_nothing_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_homeserver_killed_in_the_middle_of_a_send_doubles_nothing_on_synapse() {
    killed_mid_send(Kind::Synapse, "a_homeserver_killed_in_the_middle_of_a_send_doubles_nothing_on_synapse")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_homeserver_killed_in_the_middle_of_a_send_doubles_nothing_on_conduit() {
    killed_mid_send(Kind::Conduit, "a_homeserver_killed_in_the_middle_of_a_send_doubles_nothing_on_conduit")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_limits_loses_and_reorders_nothing_on_synapse() {
    limited(Kind::Synapse, "a_storm_of_limits_loses_and_reorders_nothing_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_limits_loses_and_reorders_nothing_on_conduit() {
    limited(Kind::Conduit, "a_storm_of_limits_loses_and_reorders_nothing_on_conduit").await;
}

/// A bridge that speaks through a proxy and hears by reading back alone, so that no echo tells it what was taken.
async fn through_proxy(server: &Server) -> (Proxy, Setup) {
    let mouth = Proxy::start(0, server.homeserver.url().port().unwrap()).await;
    let setup = Setup {
        homeserver: Some(mouth.url()),
        listen: Some(persona_bridge::demo::homeserver::free_port().unwrap()),
        reconcile: "1s".to_owned(),
        ..one()
    };
    (mouth, setup)
}

/// The homeserver takes a PUT, the bridge hears nothing of that and dies, and the homeserver forgets what it took.
async fn cut_after_put(kind: Kind, test: &str) {
    let Some(mut server) = servers::server(kind, test).await else { return };
    let (mouth, setup) = through_proxy(&server).await;
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    for number in 1..=tools::scale() {
        let taken = |asked: &Asked, outcome| asked.is_send() && outcome == Outcome::Answered(200);
        let before = mouth.count(taken);
        let cut = AtomicU32::new(0);
        mouth.rule(move |asked| match cut.load(Ordering::Relaxed) {
            0 if asked.is_send() => {
                cut.store(1, Ordering::Relaxed);
                Verdict::CutAfter
            }
            0 => Verdict::Pass,
            _ => Verdict::Cut,
        });
        alice.say(&room, &format!("{}, {}?", name("eir"), word(number))).await;
        mouth.wait_beyond(before, taken).await;
        bridge.kill(Signal::KILL).await;
        assert_eq!(account(&alice, &room, &eir).await.1.len(), number as usize, "it was taken");
        server.homeserver.stop().await;
        forget_transactions(&server).await;
        server.homeserver.restart().await.unwrap();
        mouth.pass();
        bridge.restart().await;
        all_of(&mut alice, &room, &eir, number).await;
    }
    all_answered_once(&mut alice, &room, &eir).await;
}

/// Waits until the outbox is empty: a last word in the same room comes after all that waited.
async fn all_of(alice: &mut User, room: &RoomId, eir: &str, number: u32) {
    wait_for_answers(alice, room, eir, number as usize).await;
    let (asked, answered) = account(alice, room, eir).await;
    assert_eq!(answered, asked);
}

/// Erases what lets Synapse know a repeated transaction id after a restart. (Conduit keeps it for ever.)
async fn forget_transactions(server: &Server) {
    if server.homeserver.kind() != Kind::Synapse {
        return;
    }
    let python = tools_folder().join("synapse-1.163.2/bin/python");
    let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n\
                  print(db.execute('delete from event_txn_id_device_id').rowcount)\ndb.commit()";
    let file = server.homeserver.dir().join("homeserver.db");
    let erase = tokio::process::Command::new(python).args(["-c", script]).arg(file).output().await.unwrap();
    let erased = String::from_utf8_lossy(&erase.stdout).trim().parse::<u32>();
    assert!(erased.as_ref().is_ok_and(|erased| *erased > 0), "{erase:?}");
}

/// The homeserver dies at some moment around each send.
async fn killed_mid_send(kind: Kind, test: &str) {
    let Some(mut server) = servers::server(kind, test).await else { return };
    let rounds = match kind {
        Kind::Conduit => 5 * tools::scale(),
        Kind::Synapse => 2 * tools::scale(),
    };
    let mut dice = Dice::new(20_263);
    let mouth = Proxy::start(0, server.homeserver.url().port().unwrap()).await;
    let setup = Setup { homeserver: Some(mouth.url()), reconcile: "1s".to_owned(), ..one() };
    let bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");
    for number in 1..=rounds {
        let before = mouth.count(|asked, _| asked.is_send());
        alice.say(&room, &format!("{}, {}?", name("eir"), word(number))).await;
        mouth.wait_beyond(before, |asked, _| asked.is_send()).await;
        tokio::time::sleep(dice.time(if kind == Kind::Conduit { 6 } else { 60 })).await;
        server.homeserver.kill(Signal::KILL).await;
        server.homeserver.restart().await.unwrap();
        all_of(&mut alice, &room, &eir, number).await;
    }
    let unanswered = mouth.count(|asked, outcome| asked.is_send() && outcome == Outcome::Unanswered);
    tools::aloud(&format!("{test}: {unanswered} of {rounds} sends were cut off"));
    let said = all_answered_once(&mut alice, &room, &eir).await;
    assert_eq!(said.len(), rounds as usize + 1, "{}", bridge.log());
}

/// The homeserver asks to wait again and again while there is more and more to say.
async fn limited(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mouth = Proxy::start(0, server.homeserver.url().port().unwrap()).await;
    let setup = Setup { homeserver: Some(mouth.url()), ..one() };
    let _bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let left = AtomicU32::new(12);
    mouth.rule(move |asked| {
        let refused = asked.is_send()
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if refused { Verdict::Limit(100) } else { Verdict::Pass }
    });
    let direct = alice.create_dm(&persona("eir")).await;
    for number in 1..=5 {
        alice.say(&room, &format!("{}, {}?", name("eir"), word(number))).await;
        alice.say(&direct, &word(number)).await;
    }
    for room in [&room, &direct] {
        assert_eq!(all_answered_once(&mut alice, room, &persona("eir")).await.len(), 6);
    }
    let sends = mouth.count(|asked, _| asked.is_send());
    let taken = mouth.count(|asked, outcome| asked.is_send() && outcome == Outcome::Answered(200));
    assert_eq!(sends, taken + 12, "every 429 was one try");
}
