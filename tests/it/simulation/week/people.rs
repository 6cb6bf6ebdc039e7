//! People: a rhythm of days, bursts of a few lines in one place each, some of them to a Persona.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::world::BEGIN;
use super::house::{House, Place, SEED};
use crate::company::{Dice, Said, Who, filler, token};
use crate::fake::homeserver::FakeHomeserver;

const HOUR: u64 = 3_600_000;
/// Every world begins at eight in the morning; this is until nobody talks any more.
const AWAKE: u64 = 15 * HOUR;
/// Bursts that each person begins a day, at least and at most.
const BURSTS: (u64, u64) = (3, 7);
/// Lines of a burst.
const LINES: (u64, u64) = (1, 6);
/// Between two lines of a burst.
const GAP: (u64, u64) = (2_000, 70_000);

/// To whom a line is, and how that is shown.
#[derive(Clone, Copy)]
enum Way {
    Nobody,
    Mention,
    Name,
    /// In reply to what a Persona said last in the room; by mention where none has.
    Reply,
}

/// What was said so far.
pub(crate) type Book = Arc<Mutex<Vec<Said>>>;

/// Fills the world with what people will say; it stands in the book once it is said.
pub(super) fn talk(house: &mut House, time: Duration) {
    let mut dice = Dice(SEED);
    let end = u64::try_from(time.as_millis()).expect("short");
    let begin = house.world.elapsed();
    let mut deeds = Vec::new();
    for day in 0..end.div_ceil(24 * HOUR) {
        for person in ["alice", "bob", "carol"] {
            let places: Vec<Place> =
                house.places.iter().filter(|place| place.person == person).cloned().collect();
            for _ in 0..dice.between(BURSTS.0, BURSTS.1) {
                let place = dice.pick(&places);
                let mut at = day * 24 * HOUR + dice.roll(AWAKE);
                for _ in 0..dice.between(LINES.0, LINES.1) {
                    let number = deeds.len();
                    deeds.push((at, Saying::draw(&mut dice, place, &house.personas, number)));
                    at += dice.between(GAP.0, GAP.1);
                }
            }
        }
    }
    for (at, saying) in deeds.into_iter().filter(|(at, _)| *at < end) {
        let book = house.book.clone();
        house.world.deed(begin + at, move |home| saying.say(home, &book));
    }
}

/// A person says something in a room, to a Persona or to nobody: the word by which it is known.
pub(crate) fn say_in(
    home: &FakeHomeserver,
    book: &Book,
    (person, room): (&str, &str),
    whom: Option<&Who>,
) -> String {
    let token = token(SEED, &format!("said in {room} behind {}", home.timeline(room).len()));
    let text = format!("{token} {}", filler(&mut Dice::of(SEED, &token), 3, 20));
    let user = home.user(person);
    let event = match whom {
        Some(whom) => user.say_to(room, &whom.user, &text),
        None => user.say(room, &text),
    };
    let to = whom.map(|who| who.id.clone()).into_iter().collect();
    take_down(home, book, (room, &event), Said { token: token.clone(), at: 0, to });
    token
}

fn take_down(home: &FakeHomeserver, book: &Book, (room, event): (&str, &str), said: Said) {
    let at =
        home.timeline(room).iter().rfind(|other| other.id == event).expect("it was just said").at - BEGIN;
    book.lock().expect("not poisoned").push(Said { at, ..said });
}

/// A line that somebody will say.
struct Saying {
    place: Place,
    way: Way,
    whom: Who,
    personas: Vec<Who>,
    token: String,
    words: String,
}

impl Saying {
    fn draw(dice: &mut Dice, place: &Place, personas: &[Who], number: usize) -> Self {
        let way = match dice.roll(10) {
            0..5 => Way::Nobody,
            5 | 6 => Way::Mention,
            7 | 8 => Way::Name,
            _ => Way::Reply,
        };
        let whom = place.direct.clone().unwrap_or_else(|| dice.pick(personas).clone());
        let token = token(SEED, &format!("line {number}"));
        let words = format!("{token} {}", filler(dice, 3, 40));
        Self { place: place.clone(), way, whom, personas: personas.to_vec(), token, words }
    }

    fn say(self, home: &FakeHomeserver, book: &Book) {
        let Self { place, way, whom, personas, token, words } = self;
        let (user, room) = (home.user(place.person), place.room.as_str());
        let newest = home.timeline(room).into_iter().rev().filter(|event| event.kind == "m.room.message");
        let newest = newest
            .filter_map(|event| Some((event.id, personas.iter().find(|who| who.user == event.sender)?)))
            .next();
        let (event, to) = match (way, newest) {
            (Way::Nobody, _) => (user.say(room, &words), None),
            (Way::Name, _) => (user.say(room, &format!("{}, {words}", whom.name)), Some(&whom)),
            (Way::Reply, Some((event, author))) => (user.reply(room, &event, &words), Some(author)),
            (Way::Mention | Way::Reply, _) => (user.say_to(room, &whom.user, &words), Some(&whom)),
        };
        let to = place.direct.as_ref().or(to).map(|who| who.id.clone()).into_iter().collect();
        take_down(home, book, (room, &event), Said { token, at: 0, to });
    }
}
