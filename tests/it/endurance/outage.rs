//! A homeserver that goes down, forgets, or cannot reach the bridge at all: what was said is heard, once, in order.

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::{Kind, free_port};

use super::ground::{Dice, account, all_answered_once, each_answered_once, one, wait_for_answers, word};
use crate::bridge::{Bridge, Setup, alias, name, persona};
use crate::fake::proxy::{Asked, Proxy, Verdict};
use crate::servers::{self, Server};
use crate::tools;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn a_homeserver_that_goes_down_loses_nothing_on_synapse() {
    goes_down(Kind::Synapse, "a_homeserver_that_goes_down_loses_nothing_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_homeserver_that_goes_down_loses_nothing_on_conduit() {
    goes_down(Kind::Conduit, "a_homeserver_that_goes_down_loses_nothing_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_restart_lost_is_read_back_on_synapse() {
    lost(Kind::Synapse, "what_a_restart_lost_is_read_back_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_restart_lost_is_read_back_on_conduit() {
    lost(Kind::Conduit, "what_a_restart_lost_is_read_back_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_back_alone_delivers_on_synapse() {
    reading_alone(Kind::Synapse, "reading_back_alone_delivers_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_back_alone_delivers_on_conduit() {
    reading_alone(Kind::Conduit, "reading_back_alone_delivers_on_conduit").await;
}

/// SIGTERM and SIGKILL of the homeserver while people talk, repeating with the same transaction id what failed.
async fn goes_down(kind: Kind, test: &str) {
    let Some(mut server) = servers::server(kind, test).await else { return };
    let setup = Setup { reconcile: "2s".to_owned(), ..one() };
    let _bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let bob = User::register(&server, "bob").await;
    let room = alice.join(&alias("swarm")).await;
    bob.join(&alias("swarm")).await;
    let direct = alice.create_dm(&persona("eir")).await;
    let rounds = tools::scale();
    let messages = 20 * rounds;
    let talk = |number: u32| format!("{}, {}?", name("eir"), word(number));
    let alices = async {
        for number in 1..=messages {
            alice.say_until_taken(&room, &format!("a{number}"), &talk(number)).await;
            alice.say_until_taken(&direct, &format!("d{number}"), &word(1000 + number)).await;
        }
    };
    let bobs = async {
        for number in 1..=messages {
            bob.say_until_taken(&room, &format!("b{number}"), &talk(2000 + number)).await;
        }
    };
    let falls = async {
        let mut dice = Dice::new(20_264);
        for signal in (0..rounds).flat_map(|_| [Signal::TERM, Signal::KILL]) {
            tokio::time::sleep(dice.time(400)).await;
            server.homeserver.kill(signal).await;
            server.homeserver.restart().await.unwrap();
        }
    };
    tokio::join!(alices, bobs, falls);
    let said = each_answered_once(&mut alice, &room, &persona("eir")).await;
    assert!(said > 2 * messages as usize, "all of them were taken");
    each_answered_once(&mut alice, &direct, &persona("eir")).await;
}

/// The ear hears nothing of what the homeserver holds when it is killed: once in a quiet direct room that nobody writes
/// in any more, and once in a room where a message comes after the three that were lost.
async fn lost(kind: Kind, test: &str) {
    let Some(mut server) = servers::server(kind, test).await else { return };
    let listen = free_port().unwrap();
    let ear = Proxy::start(server.appservice.port, listen).await;
    let mouth = Proxy::start(0, server.homeserver.url().port().unwrap()).await;
    let setup =
        Setup { homeserver: Some(mouth.url()), listen: Some(listen), reconcile: "2s".to_owned(), ..one() };
    let bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let eir = persona("eir");
    let direct = alice.create_dm(&eir).await;
    alice.say(&direct, &word(0)).await;
    wait_for_answers(&mut alice, &direct, &eir, 1).await;
    lose(&mut server, &ear, &mouth, async || {
        alice.say(&direct, &word(1)).await;
    })
    .await;
    wait_for_answers(&mut alice, &direct, &eir, 2).await;
    if kind == Kind::Synapse {
        assert!(bridge.log().contains("read back what no transaction brought"), "{}", bridge.log());
    }

    let room = alice.join(&alias("swarm")).await;
    alice.say(&room, &format!("{}, {}?", name("eir"), word(2))).await;
    wait_for_answers(&mut alice, &room, &eir, 1).await;
    lose(&mut server, &ear, &mouth, async || {
        for number in 3..6 {
            alice.say(&room, &format!("{}, {}?", name("eir"), word(number))).await;
        }
    })
    .await;
    alice.say(&room, &format!("{}, {}?", name("eir"), word(6))).await;
    wait_for_answers(&mut alice, &room, &eir, 5).await;
    let (asked, answered) = account(&alice, &room, &eir).await;
    assert_eq!((asked.len(), answered), (5, asked), "in the room's order");
    for room in [&direct, &room] {
        all_answered_once(&mut alice, room, &eir).await;
    }
}

/// Has something said that neither a transaction nor reading back brings before the homeserver is killed.
async fn lose(server: &mut Server, ear: &Proxy, mouth: &Proxy, say: impl AsyncFnOnce()) {
    let reads = |asked: &Asked, _| asked.path.contains("/messages");
    let before = mouth.count(reads);
    mouth.rule(|_| Verdict::Cut);
    // Both of her rooms.
    mouth.wait_beyond(before + 1, reads).await;
    let held = ear.count(|asked, _| asked.is_transaction());
    ear.rule(|asked| if asked.is_transaction() { Verdict::Swallow } else { Verdict::Pass });
    say().await;
    ear.wait_beyond(held, |asked, _| asked.is_transaction()).await;
    server.homeserver.kill(Signal::KILL).await;
    ear.pass();
    server.homeserver.restart().await.unwrap();
    mouth.pass();
}

/// The homeserver calls a port where nobody listens.
async fn reading_alone(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let setup = Setup { listen: Some(free_port().unwrap()), reconcile: "1s".to_owned(), ..one() };
    let _bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    // Her invite is found by asking, and what was said behind it by reading.
    let direct = alice.create_dm(&persona("eir")).await;
    for number in 0..3 * tools::scale() {
        alice.say(&room, &format!("{}, {}?", name("eir"), word(2 * number))).await;
        alice.say(&direct, &word(2 * number + 1)).await;
    }
    for room in [&room, &direct] {
        all_answered_once(&mut alice, room, &persona("eir")).await;
    }
}
