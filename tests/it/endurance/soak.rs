//! Many turns in one life of the bridge: its memory and its descriptors stay as they are, and its store stays in bounds.

use std::ops::Range;
use std::path::Path;

use persona_bridge::conversation::Millis;
use persona_bridge::store::{Config, Opening, Owner, Size, Store};
use ruma::OwnedRoomId;
use serde_json::json;
use uuid::Uuid;

use super::ground::{Mind, mail, word, words};
use crate::bridge::{Bridge, Setup, alias, persona};
use crate::fake::messages_api::{Answer, Request};
use crate::servers::{self, SERVER_NAME, Server};
use crate::tools::{aloud, scale};
use crate::user::User;

const PERSONAS: [&str; 2] = ["eir", "brage"];

/// How many turns are looked at in one go.
const ROUND: u32 = 10;
/// Of how many turns one is remembered, one of each Persona is taken back, and one ends her session by an order.
const REMEMBERS: u32 = 5;
const TAKEN_BACK: u32 = 50;
const REFRESHED: u32 = 200;

/// Files of the store up to this size are never too large.
const SMALL: u64 = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_turns_leave_the_bridge_as_it_was() {
    let test = "thousands_of_turns_leave_the_bridge_as_it_was";
    let Some(server) = servers::synapse(test).await else { return };
    let mind = Mind::start().await;
    mind.api.rule(reply);
    let Some(setup) = mind.setup(&server) else { return };
    let setup = Setup {
        personas: PERSONAS.map(str::to_owned).to_vec(),
        rooms: ["swarm", "lounge"].map(str::to_owned).to_vec(),
        ..setup
    };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut talks = [Talk::begin(&server, 0).await, Talk::begin(&server, 1).await];
    let mut seen = Vec::new();
    for begin in (0..turns()).step_by(ROUND as usize) {
        talk(&mut talks, &bridge, begin..begin + ROUND).await;
        mind.api.forget_requests();
        seen.push(Seen::of(&bridge));
    }
    it_stays_as_it_was(&seen);
    bridge.stop().await;
    let closed = size(&bridge.dir);
    let live = closed.live >> 10;
    aloud(&format!("the store: {live} KiB live, {} KiB of files after a reopen", closed.disk >> 10));
    assert!(closed.disk <= SMALL.max(3 * closed.live), "{closed:?}");
    bridge.start().await;
    bridge.ready().await;
    talk(&mut talks, &bridge, turns()..turns() + 2).await;
    bridge.stop().await;
}

/// What the API answers: the words asked about, and sometimes something to be remembered.
fn reply(request: &Request) -> Answer {
    let words = mail(request);
    let number = words.last().and_then(|word| word[1..].parse::<u32>().ok()).unwrap_or_default();
    let mut reply = json!({"say": [{"text": format!("Yes, {}.", words.join(" "))}], "react": []});
    if number.is_multiple_of(REMEMBERS) {
        let text = format!("She said {number}.");
        reply["remember"] = json!([{"text": text, "about": ["numbers"], "salience": 0.5}]);
    }
    Answer::Typed(reply)
}

/// The memory of the second half is that of its beginning, a tenth more or less, and descriptors do not pile up. In a short run
/// what is kept in memory of the store still gathers.
fn it_stays_as_it_was(seen: &[Seen]) {
    let late = &seen[seen.len() / 2..];
    let (first, last) = (late[0].resident, late[late.len() - 1].resident);
    let most = |part: &[Seen]| part.iter().map(|seen| seen.descriptors).max().unwrap_or_default();
    let (before, after) = (most(&seen[..seen.len().div_ceil(2)]), most(late));
    let shown: Vec<String> = seen.iter().step_by(10).map(|seen| (seen.resident >> 20).to_string()).collect();
    aloud(&format!("the bridge: {} MiB, at most {before} and {after} descriptors", shown.join(" ")));
    assert!(after <= before + 4, "{before} {after}");
    assert!(last.abs_diff(first) * 10 <= first, "{first} {last}");
}

/// Both go on at the same time.
async fn talk(talks: &mut [Talk; 2], bridge: &Bridge, numbers: Range<u32>) {
    let [first, second] = talks;
    tokio::join!(first.go_on(bridge, numbers.clone()), second.go_on(bridge, numbers));
}

fn turns() -> u32 {
    if scale() >= 10 { 2_000 } else { 40 * scale() }
}

/// What the bridge takes.
#[derive(Clone, Copy, Debug)]
struct Seen {
    resident: u64,
    descriptors: usize,
}

impl Seen {
    fn of(bridge: &Bridge) -> Self {
        let process = Path::new("/proc").join(bridge.pid().unwrap().to_string());
        let status = std::fs::read_to_string(process.join("status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident = resident.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
        Self { resident, descriptors: std::fs::read_dir(process.join("fd")).unwrap().count() }
    }
}

/// Somebody who talks with one Persona in several rooms.
struct Talk {
    user: User,
    who: &'static str,
    number: usize,
    rooms: Vec<OwnedRoomId>,
}

impl Talk {
    async fn begin(server: &Server, number: usize) -> Self {
        let who = PERSONAS[number];
        let user = User::register(server, ["alice", "bob"][number]).await;
        let mut rooms = Vec::new();
        for room in ["swarm", "lounge"] {
            rooms.push(user.join(&alias(room)).await);
        }
        rooms.push(user.create_dm(&persona(who)).await);
        Self { user, who, number, rooms }
    }

    async fn go_on(&mut self, bridge: &Bridge, numbers: Range<u32>) {
        for number in numbers.skip(self.number).step_by(2) {
            let room = self.rooms[number as usize / 2 % self.rooms.len()].clone();
            let asked = self.user.say_to(&room, &persona(self.who), &format!("and {}?", word(number))).await;
            let answer = self.user.answer(&room, &asked, &persona(self.who)).await;
            assert!(words(answer.body()).contains(&word(number)), "{answer:?}");
            if number % TAKEN_BACK >= TAKEN_BACK - 2 {
                self.user.redact(&room, &asked).await;
            }
            if number % REFRESHED >= REFRESHED - 2 {
                assert!(bridge.command(&["refresh", "--persona", self.who]).await.0);
            }
        }
    }
}

/// The size of a bridge's store while it does not run.
fn size(dir: &Path) -> Size {
    let owner = Owner { server_name: SERVER_NAME.to_owned(), appservice: "persona-bridge".to_owned() };
    let opening = Opening { owner, epoch: Uuid::from_u128(1), now: Millis(0) };
    Store::open(&Config { path: dir.join("store"), min_free: 0 }, opening).unwrap().size().unwrap()
}
