//! Personas on the real CLI and three people, in rooms of several registers and alone, on a real homeserver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use persona_bridge::demo::homeserver::Kind;
use ruma::OwnedRoomId;
use serde_json::Value;

use super::super::ground::{Mind, PATIENCE};
use crate::bridge::{Bridge, Setup, alias, name, persona};
use crate::company::{Account, Asked, Company, Dice, Limits, Line, Manner, Said, Talker, Who, filler, token};
use crate::fake::messages_api::{Answer, Request};
use crate::servers::{self, SERVER_NAME, Server};
use crate::tools::{now, scale};
use crate::user::User;

/// The seed of everything that is drawn.
const SEED: u64 = 20_266;
const PERSONAS: [&str; 5] = ["eir", "brage", "saga", "tyra", "idun"];
const ROOMS: [&str; 3] = ["swarm", "minds", "burn"];
/// How many lines are said in one go, before it is waited for what they ask.
const BURST: usize = 5;
/// How long the API thinks: so many thoughts, and each so long.
const THOUGHTS: (u32, Duration) = (2, Duration::from_millis(50));
/// What a process that begins and a machine with other work may take, in ms.
const WAY: u64 = 20_000;
/// After so long it is looked again for what was heard.
const LOOK: Duration = Duration::from_secs(1);
/// The beat of these excerpts, in ms.
const BEAT: u64 = 3_000;

pub(super) const ALICE: usize = 0;
pub(super) const BOB: usize = 1;
/// The admin.
pub(super) const CAROL: usize = 2;

/// How many lines people say.
pub(super) fn lines() -> usize {
    40 * scale() as usize
}

/// Everybody, and all that was said and asked.
pub(super) struct Gathering {
    pub(super) mind: Mind,
    pub(super) bridge: Bridge,
    pub(super) talker: Talker,
    pub(super) people: Vec<User>,
    pub(super) personas: Vec<Who>,
    /// Rooms with their lanes, and whose they are where they are direct.
    places: Vec<(OwnedRoomId, Option<usize>)>,
    asked: Arc<Mutex<Vec<Asked>>>,
    said: Vec<Said>,
    /// How many words were made by which lines are known.
    words: usize,
    dice: Dice,
    began: Instant,
    _server: Server,
}

impl Gathering {
    /// None (said aloud) where the homeserver or the CLI cannot be had.
    pub(super) async fn begin(kind: Kind, test: &str, manner: Manner) -> Option<Self> {
        let began = Instant::now();
        let server = servers::server(kind, test).await?;
        let mind = Mind::start().await;
        let ids = &PERSONAS[..if scale() >= 10 { PERSONAS.len() } else { 2 }];
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let setup = Setup {
            settle: "300ms".to_owned(),
            // So much is said here within a minute that the shipped limit would hold it for ten.
            talk: "room_limit = \"1000 per 10m\"\n".to_owned(),
            heart: "beat = \"3s\"\nbeat_min = \"3s\"\nbeat_max = \"3s\"\ncooldown = \"1s\"\n".to_owned(),
            personas: own(ids),
            rooms: own(&ROOMS),
            permissions: format!("\"{SERVER_NAME}\" = \"chat\"\n\"@carol:{SERVER_NAME}\" = \"admin\"\n"),
            ..mind.setup(&server)?
        };
        let bridge = Bridge::spawn(&server, &setup).await;
        let mut people = Vec::new();
        for name in ["alice", "bob", "carol"] {
            people.push(User::register(&server, name).await);
        }
        let places = rooms(&people, ids).await;
        let personas: Vec<Who> =
            ids.iter().map(|id| Who { id: (*id).to_owned(), user: persona(id), name: name(id) }).collect();
        let company = Company {
            personas: personas.clone(),
            people: people.iter().map(|user| user.id.clone()).collect(),
            rooms: places.iter().map(|(room, _)| room.to_string()).collect(),
        };
        let talker = Talker::new(SEED, manner, company);
        let asked = listen(&mind, &talker, &personas);
        let dice = Dice(SEED);
        let (said, words) = (Vec::new(), 0);
        Some(Self {
            mind,
            bridge,
            talker,
            people,
            personas,
            places,
            asked,
            said,
            words,
            dice,
            began,
            _server: server,
        })
    }

    /// The room of a register.
    pub(super) fn room(&self, register: &str) -> OwnedRoomId {
        let at = ROOMS.iter().position(|name| *name == register).expect("a room of this test");
        self.places[at].0.clone()
    }

    /// People say so many lines, in bursts, and wait after each until all that is addressed is heard.
    pub(super) async fn talk(&mut self, count: usize) {
        for number in 1..=count {
            let who = usize::try_from(self.dice.roll(3)).expect("small");
            let is_near = |(at, (_, direct)): &(usize, &(OwnedRoomId, Option<usize>))| match direct {
                Some(person) => *person == who,
                None => ROOMS[*at] != "minds" || who == CAROL,
            };
            let near: Vec<usize> = self.places.iter().enumerate().filter(is_near).map(|(at, _)| at).collect();
            let place = *self.dice.pick(&near);
            let whom = self.dice.happens(60).then(|| self.dice.pick(&self.personas).id.clone());
            self.say(who, place, whom.as_deref()).await;
            if number % BURST == 0 || number == count {
                self.heard().await;
            }
        }
    }

    /// Somebody says something, to a Persona or to nobody.
    async fn say(&mut self, who: usize, place: usize, whom: Option<&str>) {
        let (room, direct) = self.places[place].clone();
        // The Personas of the direct rooms are those in order.
        let whom =
            direct.map_or(whom.map(str::to_owned), |_| Some(self.personas[place - ROOMS.len()].id.clone()));
        self.say_in(who, &room, whom.as_deref()).await;
    }

    /// Somebody says something in a room, to a Persona or to nobody.
    pub(super) async fn say_in(&mut self, who: usize, room: &OwnedRoomId, whom: Option<&str>) {
        let (at, (token, text)) = (now(), self.words());
        match whom {
            Some(whom) => self.people[who].say_to(room, &persona(whom), &text).await,
            None => self.people[who].say(room, &text).await,
        };
        self.said.push(Said { token, at, to: whom.map(str::to_owned).into_iter().collect() });
    }

    /// Somebody says something to a Persona who may not be let to hear it now: to whom, and the word by which it is known.
    pub(super) async fn say_aside(&mut self, who: usize, room: &OwnedRoomId, whom: &str) -> (String, String) {
        let (token, text) = self.words();
        self.people[who].say_to(room, &persona(whom), &text).await;
        (whom.to_owned(), token)
    }

    /// A word that is new, and a text with it.
    fn words(&mut self) -> (String, String) {
        self.words += 1;
        let token = token(SEED, &format!("line {}", self.words));
        let text = format!("{token} {}", filler(&mut self.dice, 3, 20));
        (token, text)
    }

    /// Waits until all that is addressed is heard.
    pub(super) async fn heard(&self) {
        let all =
            self.said.iter().flat_map(|said| said.to.iter().map(|who| (who.clone(), said.token.clone())));
        self.hear_since(&all.collect::<Vec<_>>(), 0).await;
    }

    /// Waits until each of some words is heard by whom it is for, at some time or later.
    pub(super) async fn hear_since(&self, words: &[(String, String)], since: u64) {
        let is_heard = |(who, token): &(String, String)| {
            let asked = self.asked.lock().expect("not poisoned");
            asked.iter().any(|asked| asked.who == *who && asked.at >= since && asked.hears(token))
        };
        let all = async {
            let mut seen = self.mind.api.count();
            while !words.iter().all(is_heard) {
                // A request counts before it stands in the book, so that one may have been missed.
                let more = self.mind.api.wait_for(seen + 1);
                let _ = tokio::time::timeout(LOOK, more).await;
                seen = self.mind.api.count();
            }
        };
        let missing = || words.iter().filter(|word| !is_heard(word)).collect::<Vec<_>>();
        assert!(tokio::time::timeout(PATIENCE, all).await.is_ok(), "not heard: {:#?}", missing());
    }

    /// Waits until a room is stopped.
    pub(super) async fn is_stopped(&self, room: &OwnedRoomId) {
        let stopped = async {
            while !self.stats().await["braked"].to_string().contains(room.as_str()) {
                self.people[CAROL].timeline(room).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, stopped).await.is_ok(), "{}", self.stats().await);
    }

    /// What Personas have said in a room.
    pub(super) async fn said_by_personas(&self, room: &OwnedRoomId) -> Vec<String> {
        let events = self.people[CAROL].timeline(room).await;
        let ours =
            events.iter().filter(|event| self.personas.iter().any(|who| event.is_message_of(&who.user)));
        ours.map(|event| event.body().to_owned()).collect()
    }

    /// Lets nobody say anything any more, and waits until what was said stands in the rooms.
    pub(super) async fn rest(&mut self) {
        self.talker.becomes(Manner::Silent);
        let swarm = self.room("swarm");
        for who in self.personas.clone() {
            self.say_in(CAROL, &swarm, Some(&who.id)).await;
        }
        self.heard().await;
        // Reading the room is what takes its time here.
        let sent = async {
            while self.stats().await["outbox"] != 0 {
                self.people[CAROL].timeline(&swarm).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, sent).await.is_ok(), "left: {}", self.stats().await);
    }

    /// What /stats shows.
    pub(super) async fn stats(&self) -> Value {
        let (status, body) = self.bridge.get("stats").await.expect("it runs");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Comes to rest and asserts that all laws were kept; what was said and asked.
    pub(super) async fn keeps_the_laws(mut self, test: &str) -> Account {
        self.rest().await;
        let account = self.account().await;
        let limits = limits();
        let causes = account.causes(limits.max_hops);
        crate::tools::aloud(&format!(
            "{test}: {} lines of people, turns by cause {causes:?}, in {} s",
            account.said.len(),
            self.began.elapsed().as_secs()
        ));
        let faults = account.faults(&limits);
        assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(20)]);
        let stats = self.stats().await;
        for left in ["held", "outbox", "parked", "quarantined"] {
            assert_eq!(stats[left], 0, "{left}: {stats}");
        }
        assert_eq!(self.mind.api.take_faults(), [""; 0]);
        account
    }

    /// What was said and asked so far, as people read it.
    pub(super) async fn account(&self) -> Account {
        let (mut lines, mut lanes) = (Vec::new(), BTreeMap::new());
        for (at, (room, direct)) in self.places.iter().enumerate() {
            let lane = if direct.is_some() { room.to_string() } else { ROOMS[at].to_owned() };
            lanes.insert(room.to_string(), lane);
            for event in self.people[direct.unwrap_or(CAROL)].timeline(room).await {
                if event.kind == "m.room.message" {
                    lines.push(Line::new(&event.content, room.as_str(), &event.sender, event.at));
                }
            }
        }
        lines.sort_by_key(|line| line.at);
        let asked = self.asked.lock().expect("not poisoned").clone();
        let waking = ["swarm", "minds"].map(str::to_owned).into();
        Account { personas: self.personas.clone(), lanes, waking, said: self.said.clone(), asked, lines }
    }
}

fn limits() -> Limits {
    Limits {
        settle_max: 10_000,
        way: WAY,
        max_hops: 3,
        room: (1_000, 600_000),
        pair: (20, 600_000),
        beat: BEAT,
    }
}

/// The rooms of the registers with who may come in, and a direct room with each Persona.
async fn rooms(people: &[User], ids: &[&str]) -> Vec<(OwnedRoomId, Option<usize>)> {
    let mut places = Vec::new();
    for register in ROOMS {
        let room = people[CAROL].join(&alias(register)).await;
        if register != "minds" {
            people[ALICE].join(room.as_str()).await;
            people[BOB].join(room.as_str()).await;
        }
        places.push((room, None));
    }
    for (at, id) in ids.iter().enumerate() {
        let person = at % people.len();
        places.push((people[person].create_dm(&persona(id)).await, Some(person)));
    }
    places
}

/// Lets the API answer by the talker, and takes down what it is asked.
fn listen(mind: &Mind, talker: &Talker, personas: &[Who]) -> Arc<Mutex<Vec<Asked>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (book, talker, personas) = (asked.clone(), talker.clone(), personas.to_vec());
    mind.api.rule(move |request| {
        let words = if request.words() == "(retry)" { request.unanswered() } else { request.words() };
        let who = thinker(request, &personas);
        let reply = talker.reply(&who, &words);
        let took = u64::try_from(THOUGHTS.1.as_millis()).expect("short") * u64::from(THOUGHTS.0);
        book.lock().expect("not poisoned").push(Asked { who, words, at: now(), took, reply: reply.clone() });
        Answer::Thinking(THOUGHTS.0, THOUGHTS.1, Box::new(Answer::Typed(reply)))
    });
    asked
}

/// Who asks, by her system prompt.
fn thinker(request: &Request, personas: &[Who]) -> String {
    let system = request.body["system"].to_string();
    let is_her = |who: &&Who| system.contains(&format!("You are {} ({}).", who.name, who.user));
    personas.iter().find(is_her).expect("a Persona of this test").id.clone()
}
