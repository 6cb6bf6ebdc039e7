//! The law of two Personas in a room: too many turns in which they woke each other hold both there.

use std::collections::BTreeSet;

use super::account::{Account, Asked, Cause};
use super::laws::Limits;

/// What happens to two Personas in a room.
enum Step<'a> {
    /// A person addresses one of them.
    Addressed,
    /// Lines of Personas alone have woken one of them.
    Woken(&'a Asked),
    /// A turn ends for which the other's line woke one.
    Ends,
}

/// Two Personas in a room, as they are followed.
#[derive(Default)]
struct Pair {
    /// When their mutual turns ended, oldest first.
    ended: Vec<u64>,
    /// Since when they are held.
    held: Option<u64>,
    /// When a person has addressed one of them last.
    addressed: Option<u64>,
}

impl Account {
    /// Once two have had too many mutual turns in a room, no Persona's line there wakes either before a person addresses one.
    pub(super) fn entangled(&self, limits: &Limits) -> Vec<String> {
        let rooms: BTreeSet<&str> = self.lines.iter().map(|line| line.room.as_str()).collect();
        let mut faults = Vec::new();
        for (at, one) in self.personas.iter().enumerate() {
            for other in &self.personas[at + 1..] {
                for room in &rooms {
                    let steps = self.steps([&one.id, &other.id], room, limits);
                    let of = |fault| format!("pair: {} and {} in {room}: {fault}", one.id, other.id);
                    faults.extend(Pair::default().faults(&steps, limits).into_iter().map(of));
                }
            }
        }
        faults
    }

    /// What happens to two of them in a room, in order of time.
    fn steps(&self, two: [&String; 2], room: &str, limits: &Limits) -> Vec<(u64, Step<'_>)> {
        let known = self.known();
        let there = |token: &str| known.get(token).is_some_and(|line| line.room == room);
        let addressed = self.said.iter().filter(|said| there(&said.token));
        let addressed = addressed.filter(|said| said.to.iter().any(|to| two.contains(&to)));
        let mut steps: Vec<(u64, Step<'_>)> = addressed.map(|said| (said.at, Step::Addressed)).collect();
        for asked in self.asked.iter().filter(|asked| two.contains(&&asked.who)) {
            let woke = self.waking(asked, &known, limits.max_hops);
            let authors: Vec<&str> = woke
                .iter()
                .filter(|line| line.room == room)
                .filter_map(|line| Some(self.persona(&line.sender)?.id.as_str()))
                .collect();
            let is_by_personas = self.cause(asked, &known, limits.max_hops).0 == Cause::Persona;
            if is_by_personas && !authors.is_empty() && woke.iter().all(|line| line.room == room) {
                steps.push((asked.at, Step::Woken(asked)));
            }
            if authors.iter().any(|author| *author != asked.who && two.iter().any(|of| *of == author)) {
                steps.push((asked.end(), Step::Ends));
            }
        }
        steps.sort_by_key(|(at, _)| *at);
        steps
    }
}

impl Pair {
    /// What breaks the law in what happens to them.
    fn faults(mut self, steps: &[(u64, Step<'_>)], limits: &Limits) -> Vec<String> {
        let mut faults = Vec::new();
        for (at, step) in steps {
            match step {
                Step::Addressed if self.held.is_some() => {
                    self = Self { addressed: Some(*at), ..Self::default() }
                }
                Step::Addressed => self.addressed = Some(*at),
                Step::Ends => self.ends(*at, limits),
                Step::Woken(asked) => {
                    let held = self.held.filter(|held| *at > held + limits.way);
                    faults.extend(
                        held.map(|held| format!("held since {held}, and {} is woken at {at}", asked.who)),
                    );
                }
            }
        }
        faults
    }

    fn ends(&mut self, at: u64, limits: &Limits) {
        let (most, within) = limits.pair;
        self.ended.retain(|ended| at - ended < within);
        self.ended.push(at);
        if self.ended.len() <= most {
            return;
        }
        // Who is addressed at about this time may be so before or after it.
        if self.addressed.is_some_and(|addressed| addressed + limits.way >= at) {
            *self = Self::default();
        } else {
            self.held.get_or_insert(at);
        }
    }
}
