//! The brake: who is not to be asked, and where nothing is asked or said, whatever comes.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedRoomId, RoomId};

use crate::conversation::steer::{Steer, Word};
use crate::conversation::{Millis, PersonaId};

/// Whom in which room a word of an admin is about; none stands for everyone there.
pub type Place = (OwnedRoomId, Option<PersonaId>);

/// Whom the brake holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brake {
    /// Whether it holds everyone, whoever is named beside that.
    pub all: bool,
    /// These Personas.
    pub personas: BTreeSet<PersonaId>,
    /// What admins said last in rooms, and when. A word to go is kept: one that was said before it may come after it.
    pub words: BTreeMap<Place, (Word, Millis)>,
    /// When an operator last let everyone go: a word to stop that was said before that is overtaken.
    pub released: Millis,
    /// What operators last did to each, or to everyone, and when: a command in chat that was said before may be overtaken.
    pub pulls: BTreeMap<Option<PersonaId>, (Word, Millis)>,
}

/// What a word of an admin came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heeded {
    /// It changes whom it stops.
    Changes,
    /// All is so already.
    Same,
    /// Something newer was said of it.
    Overtaken,
    /// She is to go on alone where everyone is stopped.
    InVain,
}

impl Brake {
    /// It holds everyone.
    pub fn everyone() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// Whether it holds a Persona wherever she is.
    pub fn holds(&self, persona: &PersonaId) -> bool {
        self.all || self.personas.contains(persona)
    }

    /// Whether an admin has stopped a Persona in a room.
    pub fn stops(&self, persona: &PersonaId, room: &RoomId) -> bool {
        // Nearly always there is no word at all.
        !self.words.is_empty()
            && self.stopped().any(|(of, whom)| of == room && whom.is_none_or(|whom| whom == persona))
    }

    /// Whether an admin has stopped anybody anywhere.
    pub fn is_steered(&self) -> bool {
        self.stopped().next().is_some()
    }

    /// When anything was last said or done about it.
    pub fn latest(&self) -> Millis {
        let words = self.words.values().map(|(_, at)| *at).max().unwrap_or_default();
        let pulls = self.pulls.values().map(|(_, at)| *at).max().unwrap_or_default();
        words.max(self.released).max(pulls)
    }

    /// Whether what an admin said at a time comes too late: to hold her, or everyone, where that was released since, or to
    /// release where somebody of those was held since.
    pub fn is_overtaken(&self, word: Word, persona: Option<&PersonaId>, said: Millis) -> bool {
        let bears = |of: &Option<PersonaId>| match word {
            Word::Stop => of.is_none() || of.as_ref() == persona,
            Word::Go => persona.is_none() || of.as_ref() == persona,
        };
        self.pulls.iter().any(|(of, (done, at))| *at > said && *done != word && bears(of))
    }

    /// Notes what was done, unless something newer was.
    fn pull(&mut self, persona: Option<&PersonaId>, word: Word, at: Millis) {
        let last = self.pulls.entry(persona.cloned()).or_insert((word, at));
        if last.1 <= at {
            *last = (word, at);
        }
    }

    /// Holds a Persona, or everyone.
    pub fn hold(&mut self, persona: Option<&PersonaId>, now: Millis) {
        self.pull(persona, Word::Stop, now);
        match persona {
            Some(persona) => drop(self.personas.insert(persona.clone())),
            None => self.all = true,
        }
    }

    /// Lets a Persona go wherever she was stopped, or everyone. Where it holds everyone, or a room as a whole, one alone
    /// cannot be let go; who was stopped by a later word stays so.
    pub fn release(&mut self, persona: Option<&PersonaId>, now: Millis) {
        self.pull(persona, Word::Go, now);
        match persona {
            Some(persona) => drop(self.personas.remove(persona)),
            None => {
                (self.all, self.released) = (false, self.released.max(now));
                self.personas.clear();
            }
        }
        for ((_, whom), (word, at)) in &mut self.words {
            if *word == Word::Stop
                && *at <= now
                && persona.is_none_or(|persona| whom.as_ref() == Some(persona))
            {
                (*word, *at) = (Word::Go, now);
            }
        }
    }

    /// Heeds what an admin said in a room, unless something newer was said of it; answers what that came to. A word to go
    /// lets everyone it is about go, also those who were stopped by name.
    pub fn steer(&mut self, steer: &Steer) -> Heeded {
        let place = (steer.room.clone(), steer.whom.clone());
        let overtaken = |at: Millis| at > steer.at;
        if self.words.get(&place).is_some_and(|(_, at)| overtaken(*at))
            || (steer.word == Word::Stop && overtaken(self.released.max(self.gone(&steer.room))))
        {
            return Heeded::Overtaken;
        }
        let before: Vec<Place> = self.places();
        if steer.word == Word::Go && steer.whom.is_none() {
            let there =
                self.words.iter_mut().filter(|((room, _), (_, at))| *room == steer.room && !overtaken(*at));
            there.for_each(|(_, word)| *word = (Word::Go, steer.at));
        }
        self.words.insert(place, (steer.word, steer.at));
        let is_in_vain = |whom: &PersonaId| steer.word == Word::Go && self.stops(whom, &steer.room);
        if steer.whom.as_ref().is_some_and(is_in_vain) {
            Heeded::InVain
        } else if before == self.places() {
            Heeded::Same
        } else {
            Heeded::Changes
        }
    }

    /// A room takes the place of another one: what was said there counts in it too, unless something newer was said in it.
    /// Answers whether anything was said there.
    pub fn follow(&mut self, from: &OwnedRoomId, to: &OwnedRoomId) -> bool {
        let said = self.words.iter().filter(|((room, _), _)| room == from);
        let mut said: Vec<Steer> = said
            .map(|((_, whom), (word, at))| Steer {
                room: to.clone(),
                whom: whom.clone(),
                word: *word,
                at: *at,
            })
            .collect();
        said.sort_by_key(|steer| steer.at);
        for steer in &said {
            self.steer(steer);
        }
        !said.is_empty()
    }

    /// When everyone in a room was last let go.
    fn gone(&self, room: &RoomId) -> Millis {
        match self.words.get(&(room.to_owned(), None)) {
            Some((Word::Go, at)) => *at,
            Some((Word::Stop, _)) | None => Millis::default(),
        }
    }

    fn stopped(&self) -> impl Iterator<Item = (&RoomId, Option<&PersonaId>)> {
        let words = self.words.iter().filter(|(_, (word, _))| *word == Word::Stop);
        words.map(|((room, whom), _)| (&**room, whom.as_ref()))
    }

    fn places(&self) -> Vec<Place> {
        self.stopped().map(|(room, whom)| (room.to_owned(), whom.cloned())).collect()
    }

    /// Whom it holds wherever they are, in words; none where it holds nobody so.
    pub fn held(&self) -> Option<String> {
        if self.all {
            return Some("everyone".to_owned());
        }
        let names: Vec<&str> = self.personas.iter().map(PersonaId::as_str).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Whom it holds, and who is stopped where, in words; none where nobody is.
    pub fn told(&self) -> Option<String> {
        self.told_with(|room| room.to_string())
    }

    /// [`Brake::told`], with rooms that are called so; what reads the same stands there once.
    pub fn told_with(&self, name: impl Fn(&RoomId) -> String) -> Option<String> {
        let stopped = self.stopped().map(|(room, whom)| {
            format!("{} in {}", whom.map_or("everyone", |whom| whom.as_str()), name(room))
        });
        let mut all: Vec<String> = self.held().into_iter().collect();
        for of in stopped {
            if !all.contains(&of) {
                all.push(of);
            }
        }
        (!all.is_empty()).then(|| all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruma::room_id;

    use super::*;

    fn id(name: &str) -> PersonaId {
        PersonaId(name.to_owned())
    }

    fn said(word: Word, whom: Option<&str>, at: u64) -> Steer {
        Steer { room: room_id!("!a:hs.test").to_owned(), whom: whom.map(id), word, at: Millis(at) }
    }

    #[test]
    fn it_holds_whom_it_was_told_until_it_is_told_otherwise() {
        let mut brake = Brake::default();
        assert_eq!((brake.holds(&id("eir")), brake.held()), (false, None));
        brake.hold(Some(&id("eir")), Millis(1));
        brake.hold(Some(&id("bil")), Millis(1));
        assert_eq!(brake.held().as_deref(), Some("bil, eir"));
        brake.release(Some(&id("bil")), Millis(1));
        assert!(brake.holds(&id("eir")) && !brake.holds(&id("bil")));
        brake.hold(None, Millis(1));
        assert_eq!(brake.held().as_deref(), Some("everyone"));
        brake.release(Some(&id("bil")), Millis(2));
        assert!(brake.holds(&id("bil")), "everyone is everyone");
        brake.release(None, Millis(3));
        assert_eq!((brake.held(), brake.released), (None, Millis(3)));
    }

    #[test]
    fn what_was_said_before_the_contrary_was_done_is_overtaken_and_nothing_else_is() {
        let (eir, bil) = (id("eir"), id("bil"));
        let mut brake = Brake::default();
        brake.hold(Some(&eir), Millis(5));
        assert!(!brake.is_overtaken(Word::Stop, Some(&bil), Millis(4)), "another one");
        assert!(!brake.is_overtaken(Word::Stop, Some(&eir), Millis(4)), "the same again");
        assert!(!brake.is_overtaken(Word::Stop, None, Millis(4)));
        assert!(brake.is_overtaken(Word::Go, Some(&eir), Millis(4)));
        assert!(brake.is_overtaken(Word::Go, None, Millis(4)), "she was held since");
        assert!(!brake.is_overtaken(Word::Go, None, Millis(5)));
        assert!(!brake.is_overtaken(Word::Go, Some(&bil), Millis(4)));
        brake.release(None, Millis(7));
        for persona in [Some(&eir), Some(&bil), None] {
            assert!(brake.is_overtaken(Word::Stop, persona, Millis(6)), "{persona:?}");
            assert!(!brake.is_overtaken(Word::Stop, persona, Millis(7)), "{persona:?}");
        }
        brake.release(Some(&eir), Millis(9));
        assert!(!brake.is_overtaken(Word::Stop, None, Millis(8)), "one of them");
        brake.hold(Some(&eir), Millis(8));
        assert!(brake.is_overtaken(Word::Stop, Some(&eir), Millis(8)), "the newest stays");
        assert_eq!(brake.latest(), Millis(9));
    }

    #[test]
    fn an_admin_stops_a_room_or_one_persona_in_it() {
        let (here, there) = (room_id!("!a:hs.test"), room_id!("!b:hs.test"));
        let mut brake = Brake::default();
        assert_eq!(brake.steer(&said(Word::Stop, Some("eir"), 1)), Heeded::Changes);
        assert!(brake.stops(&id("eir"), here) && !brake.stops(&id("bil"), here));
        assert!(!brake.stops(&id("eir"), there) && !brake.holds(&id("eir")));
        assert_eq!(brake.steer(&said(Word::Stop, None, 2)), Heeded::Changes);
        assert!(brake.stops(&id("bil"), here));
        assert_eq!(
            (brake.held(), brake.told()),
            (None, Some("everyone in !a:hs.test, eir in !a:hs.test".into()))
        );
        assert_eq!(brake.steer(&said(Word::Go, Some("eir"), 3)), Heeded::InVain);
        assert!(brake.stops(&id("eir"), here), "the room is stopped");
        assert_eq!(brake.steer(&said(Word::Go, None, 4)), Heeded::Changes);
        assert_eq!((brake.stops(&id("bil"), here), brake.told()), (false, None));
        assert_eq!(brake.steer(&said(Word::Go, None, 5)), Heeded::Same);
    }

    #[test]
    fn a_room_that_goes_on_goes_on_as_a_whole_and_so_does_all_that_operators_release() {
        let here = room_id!("!a:hs.test");
        let stopped = || {
            let mut brake = Brake::default();
            brake.steer(&said(Word::Stop, None, 1));
            brake.steer(&said(Word::Stop, Some("eir"), 2));
            brake
        };
        let mut gone = stopped();
        gone.steer(&said(Word::Go, None, 3));
        assert!(!gone.stops(&id("eir"), here) && !gone.stops(&id("bil"), here));
        let mut eir = stopped();
        eir.release(Some(&id("eir")), Millis(3));
        assert_eq!(eir.told().as_deref(), Some("everyone in !a:hs.test"));
        let mut all = stopped();
        all.release(None, Millis(3));
        assert_eq!(all.told(), None);
        assert_eq!(all.steer(&said(Word::Stop, None, 2)), Heeded::Overtaken, "they were let go since");
        assert_eq!(all.steer(&said(Word::Stop, None, 4)), Heeded::Changes);
        all.release(None, Millis(3));
        assert!(all.stops(&id("eir"), here), "it was stopped since");
        assert_eq!(all.latest(), Millis(4));
    }

    #[test]
    fn what_was_said_in_a_room_counts_in_the_one_that_takes_its_place_unless_that_has_newer_words() {
        let (old, new) = (room_id!("!a:hs.test").to_owned(), room_id!("!b:hs.test").to_owned());
        let mut brake = Brake::default();
        assert!(!brake.follow(&old, &new), "nothing was said");
        brake.steer(&said(Word::Stop, Some("bil"), 1));
        brake.steer(&said(Word::Go, None, 2));
        brake.steer(&said(Word::Stop, Some("eir"), 3));
        assert!(brake.follow(&old, &new));
        assert!(brake.stops(&id("eir"), &new) && !brake.stops(&id("bil"), &new));
        brake.steer(&Steer { room: new.clone(), whom: Some(id("eir")), word: Word::Go, at: Millis(4) });
        brake.follow(&old, &new);
        assert!(!brake.stops(&id("eir"), &new), "who follows later stops nobody anew");
        assert!(brake.stops(&id("eir"), &old));
    }

    proptest! {
        #[test]
        fn whatever_order_words_are_heard_in_the_newest_of_all_that_bear_on_her_counts(
            words in Just((0_u64..6).collect::<Vec<_>>()).prop_shuffle(),
            kinds in prop::collection::vec((any::<bool>(), 0_usize..3), 6),
        ) {
            let of = |at: u64| {
                let (stops, whom) = kinds[usize::try_from(at).unwrap()];
                let word = if stops { Word::Stop } else { Word::Go };
                said(word, [None, Some("eir"), Some("bil")][whom], at + 1)
            };
            let heard = |order: &[u64]| {
                let mut brake = Brake::default();
                for at in order {
                    brake.steer(&of(*at));
                }
                let here = room_id!("!a:hs.test");
                [brake.stops(&id("eir"), here), brake.stops(&id("bil"), here)]
            };
            let mut in_order = words.clone();
            in_order.sort_unstable();
            prop_assert_eq!(heard(&words), heard(&in_order));
        }
    }
}
