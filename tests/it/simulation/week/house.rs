//! Where the week is played: a config as an operator would write it who says nothing of how, and minds that talk too much.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use persona_bridge::bridge::Config;
use persona_bridge::config::{self, Environment};
use persona_bridge::mind::scripted::{Outcome, Scripted, WEIGHED};
use persona_bridge::persona::Ending;

use super::super::stage::is_joined;
use super::super::world::{BEGIN, World, usual};
use super::people::Book;
use crate::company::{Account, Asked, Company, Line, Manner, Purse, Talker, Who};
use crate::fake::homeserver::Flavour;

/// The seed of everything that is drawn.
pub(super) const SEED: u64 = 20_266;
/// The shipped model.
const MODEL: &str = "claude-sonnet-4-5";

const PERSONAS: [&str; 5] = ["Eir", "Brage", "Saga", "Tyra", "Idun"];
const ROOMS: [&str; 3] = ["swarm", "minds", "burn"];
/// Who is in which rooms. Carol is the admin.
const PEOPLE: [(&str, &[&str]); 3] =
    [("alice", &["swarm", "burn"]), ("bob", &["swarm", "burn"]), ("carol", &["swarm", "minds", "burn"])];
/// Who talks with whom alone.
const DIRECT: [(&str, usize); 6] =
    [("alice", 0), ("alice", 1), ("bob", 1), ("bob", 2), ("carol", 3), ("carol", 4)];

/// A place in which somebody talks.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) room: String,
    pub(crate) register: &'static str,
    pub(crate) person: &'static str,
    /// The Persona of a direct chat.
    pub(crate) direct: Option<Who>,
}

/// The house with all in it.
pub(crate) struct House {
    pub(crate) world: World,
    pub(crate) personas: Vec<Who>,
    pub(crate) places: Vec<Place>,
    pub(crate) talker: Talker,
    /// What people have said.
    pub(crate) book: Book,
}

impl House {
    /// Makes it, with everybody where they belong; the change may leave out the last of the Personas.
    pub(crate) fn open(manner: Manner, change: impl FnOnce(&mut Config)) -> Self {
        let mut world = World::new(Flavour::Synapse);
        world.config = shipped();
        change(&mut world.config);
        let personas: Vec<Who> =
            PERSONAS.iter().take(world.config.personas.len()).map(|name| who(name)).collect();
        let places = world.play(async |stage| {
            let mut places = Vec::new();
            for register in ROOMS {
                let alias = format!("#persona_{register}:hs.test");
                let all_in = |room: &str| personas.iter().all(|who| is_joined(&stage.home, room, &who.user));
                stage
                    .until("all come in", || stage.home.alias(&alias).is_some_and(|room| all_in(&room)))
                    .await;
                let room = stage.home.alias(&alias).expect("it was just seen");
                for (person, _) in PEOPLE.iter().filter(|(_, rooms)| rooms.contains(&register)) {
                    stage.home.user(person).join(&room);
                    places.push(Place { room: room.clone(), register, person, direct: None });
                }
            }
            for (person, whom) in DIRECT {
                let Some(whom) = personas.get(whom) else { continue };
                let room = stage.dm(&stage.home.user(person), &whom.user).await;
                places.push(Place { room, register: "dm", person, direct: Some(whom.clone()) });
            }
            stage.pass(1_000).await;
            places
        });
        let people = PEOPLE.iter().map(|(name, _)| format!("@{name}:hs.test")).collect();
        let rooms = places.iter().map(|place| place.room.clone()).collect();
        let company = Company { personas: personas.clone(), people, rooms };
        let talker = Talker::new(SEED, manner, company);
        world.script = script(&talker);
        Self { world, personas, places, talker, book: Book::default() }
    }

    /// The room of a register.
    pub(crate) fn room(&self, register: &str) -> String {
        self.places.iter().find(|place| place.register == register).expect("a room of the house").room.clone()
    }

    /// What was said and asked so far.
    pub(crate) fn account(&self) -> Account {
        let said = self.book.lock().expect("not poisoned").clone();
        let mut asked = Vec::new();
        for who in &self.personas {
            asked.extend(self.world.fed(&who.id).into_iter().map(|fed| Asked {
                took: u64::try_from(self.talker.thinking(&fed.who, &fed.words).as_millis()).expect("short"),
                reply: self.talker.reply(&fed.who, &fed.words),
                who: fed.who,
                words: fed.words,
                at: fed.at,
            }));
        }
        asked.sort_by_key(|asked| asked.at);
        let lane = |place: &Place| {
            if place.direct.is_some() { place.room.clone() } else { place.register.to_owned() }
        };
        let lanes: BTreeMap<String, String> =
            self.places.iter().map(|place| (place.room.clone(), lane(place))).collect();
        let mut lines: Vec<Line> = lanes.keys().flat_map(|room| self.lines(room)).collect();
        lines.sort_by_key(|line| line.at);
        let registers = self.world.config.registers.iter();
        let waking =
            registers.filter(|(_, register)| register.heed.personas_wake).map(|(name, _)| name.to_string());
        Account { personas: self.personas.clone(), lanes, waking: waking.collect(), said, asked, lines }
    }

    fn lines(&self, room: &str) -> Vec<Line> {
        let events =
            self.world.home.timeline(room).into_iter().filter(|event| event.kind == "m.room.message");
        events.map(|event| Line::new(&event.content, room, &event.sender, event.at - BEGIN)).collect()
    }
}

fn who(name: &str) -> Who {
    let id = name.to_lowercase();
    Who { user: format!("@persona_{id}:hs.test"), id, name: name.to_owned() }
}

/// What the config reader makes of a text that leaves out whatever has a default.
fn shipped() -> Config {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("doctrine.md"), "Be yourself.\n").expect("it can be written");
    let mut text = "[homeserver]\nurl = \"http://127.0.0.1:8008\"\nserver_name = \"hs.test\"\n\
                    [mind]\nkind = \"scripted\"\n\
                    [permissions]\n\"hs.test\" = \"chat\"\n\"@carol:hs.test\" = \"admin\"\n"
        .to_owned();
    let aliases = ROOMS.map(|register| format!("#persona_{register}:hs.test"));
    for (alias, register) in aliases.iter().zip(ROOMS) {
        text.push_str(&format!("[[rooms]]\nalias = \"{alias}\"\nregister = \"{register}\"\n"));
    }
    for who in PERSONAS.map(who) {
        text.push_str(&format!(
            "[[personas]]\nid = \"{}\"\nname = \"{}\"\ndoctrine = [\"doctrine.md\"]\nrooms = {aliases:?}\n",
            who.id, who.name
        ));
    }
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).expect("it can be written");
    let environment = Environment { vars: BTreeMap::new(), program: "persona-bridge".into() };
    let settings = config::load(&file, environment).and_then(|loaded| loaded.settings());
    let config = settings.unwrap_or_else(|error| panic!("{error}")).bridge().clone();
    Config { mind_version: "scripted".to_owned(), ..config }
}

/// Minds that talk by the talker and pay by the shipped prices.
fn script(talker: &Talker) -> super::super::world::Script {
    let prices = config::prices::shipped().expect("well-formed");
    let minimum = prices.find(MODEL).expect("a shipped price").minimum;
    let purse = Mutex::new(Purse::new(MODEL, usize::try_from(minimum).expect("small")));
    let talker = talker.clone();
    Arc::new(move |who, words| {
        if words == WEIGHED {
            return usual();
        }
        let reply = talker.reply(who, words);
        let usage = purse.lock().expect("not poisoned").turn(who, words, &reply);
        let outcome = Outcome::Ends(Ending::Answered { reply: reply.to_string() });
        Scripted { thinking: talker.thinking(who, words), outcome, usage }
    })
}
