//! What must hold of Personas and people together. Each law answers what breaks it, so that a test can also see that it fails.

use std::collections::BTreeMap;

use super::account::{Account, Asked, Cause, Line, tokens};

/// What is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The longest that addressed mail settles, in ms.
    pub(crate) settle_max: u64,
    /// What the way there and back may take, in ms.
    pub(crate) way: u64,
    /// From how many hops on a line wakes nobody.
    pub(crate) max_hops: u32,
    /// The most lines of Personas in a room, and within how many ms.
    pub(crate) room: (usize, u64),
    /// The most mutual turns of two Personas in a room, and within how many ms.
    pub(crate) pair: (usize, u64),
    /// The least time between two turns that nobody's line woke, in ms.
    pub(crate) beat: u64,
}

impl Account {
    /// All that breaks a law.
    pub(crate) fn faults(&self, limits: &Limits) -> Vec<String> {
        let laws = [
            self.late(limits),
            self.over_hops(limits),
            self.mixed(),
            self.causeless(),
            self.off_the_beat(limits),
            self.crowded(limits),
            self.entangled(limits),
        ];
        laws.concat()
    }

    /// Whatever a person addressed to a Persona is in her mail within settling, and after each other turn of hers in between;
    /// once; and what she says to it stands in the room when she has thought.
    fn late(&self, limits: &Limits) -> Vec<String> {
        let known = self.known();
        let mut faults = Vec::new();
        for said in &self.said {
            for who in &said.to {
                let heard: Vec<&Asked> =
                    self.asked.iter().filter(|asked| asked.who == *who && asked.hears(&said.token)).collect();
                let [asked] = heard[..] else {
                    faults.push(format!("late: {who} was fed {} {} times", said.token, heard.len()));
                    continue;
                };
                let between = self
                    .asked
                    .iter()
                    .filter(|other| other.who == *who && other.at < asked.at && other.end() > said.at);
                let busy: u64 = between.map(|other| other.took + limits.way).sum();
                let most = said.at + limits.settle_max + busy + limits.way;
                if asked.at > most {
                    faults.push(format!(
                        "late: {who} was fed {} {} ms too late",
                        said.token,
                        asked.at - most
                    ));
                }
                if !self.is_refused(asked) {
                    faults.extend(unsaid(asked, &known, limits));
                }
            }
        }
        faults
    }

    /// No line goes further than the hops allow; each tells how far it went, and so.
    fn over_hops(&self, limits: &Limits) -> Vec<String> {
        let (known, origins) = (self.known(), self.origins());
        let mut faults = Vec::new();
        for line in self.lines.iter().filter(|line| self.persona(&line.sender).is_some()) {
            let Some(hops) = line.hops else {
                faults.push(format!("hops: {:?} does not tell", line.body));
                continue;
            };
            let Some(asked) = tokens(&line.body).find_map(|token| origins.get(token)) else { continue };
            let (cause, should) = self.cause(asked, &known, limits.max_hops);
            if hops > limits.max_hops {
                faults
                    .push(format!("hops: {hops} are over {} in {:?}, {cause:?}", limits.max_hops, line.body));
            } else if cause != Cause::NoMail && should != hops {
                faults.push(format!("hops: {hops} of {:?}, which should be {should}, {cause:?}", line.body));
            }
        }
        faults
    }

    /// The turns that no line woke.
    fn beats(&self, limits: &Limits) -> Vec<&Asked> {
        let known = self.known();
        let is_beat = |asked: &&Asked| self.cause(asked, &known, limits.max_hops).0 == Cause::Beat;
        self.asked.iter().filter(is_beat).collect()
    }

    /// What is fed is of one lane, and what is said to it goes nowhere else.
    fn mixed(&self) -> Vec<String> {
        let (known, origins) = (self.known(), self.origins());
        let mut faults = Vec::new();
        for asked in &self.asked {
            let Some(lane) = self.lane(asked, &known) else { continue };
            let of = |token: &str| known.get(token).and_then(|line| self.lanes.get(&line.room));
            let foreign = tokens(&asked.words).find(|token| of(token).is_some_and(|other| *other != lane));
            faults.extend(foreign.map(|token| format!("lanes: {token} was fed to {} in {lane}", asked.who)));
        }
        for line in &self.lines {
            let Some(asked) = tokens(&line.body).find_map(|token| origins.get(token)) else { continue };
            let lane = self.lane(asked, &known);
            if lane.as_ref() != self.lanes.get(&line.room) {
                faults.push(format!(
                    "lanes: what was asked in {lane:?} is answered in {}: {:?}",
                    line.room, line.body
                ));
            }
        }
        faults
    }

    /// No turn begins without mail.
    fn causeless(&self) -> Vec<String> {
        let bare = |asked: &&Asked| {
            let goes_on = asked.mends() || asked.words == "(retry)";
            !goes_on && asked.batch().is_none_or(|batch| batch.mail.is_empty())
        };
        self.asked
            .iter()
            .filter(bare)
            .map(|asked| format!("no cause: {} was fed {:?}", asked.who, asked.words))
            .collect()
    }

    /// Over all Personas there are no more turns that no line woke than beats.
    fn off_the_beat(&self, limits: &Limits) -> Vec<String> {
        let beats = self.beats(limits);
        let mut faults = Vec::new();
        for (begin, first) in beats.iter().enumerate() {
            let too_many = (begin + 1..beats.len()).find(|end| {
                let time = beats[*end].at - first.at + limits.way;
                (end - begin) as u64 * limits.beat > time
            });
            let told = |end: usize| {
                let (count, time) = (end - begin + 1, beats[end].at - first.at);
                format!("beat: {count} turns that no line woke within {time} ms from {} on", first.at)
            };
            faults.extend(too_many.map(told));
        }
        faults
    }

    /// No more lines of Personas stand in a room within the time than its limit allows.
    fn crowded(&self, limits: &Limits) -> Vec<String> {
        let (most, within) = limits.room;
        let mut rooms: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| self.persona(&line.sender).is_some()) {
            rooms.entry(&line.room).or_default().push(line.at);
        }
        let mut faults = Vec::new();
        for (room, times) in rooms {
            let crowd = times.windows(most + 1).find(|times| times[most] - times[0] + limits.way < within);
            faults.extend(
                crowd.map(|times| format!("crowd: over {most} lines in {room} from {} on", times[0])),
            );
        }
        faults
    }
}

/// What she said to it and does not stand in its room in time.
fn unsaid(asked: &Asked, known: &BTreeMap<&str, &Line>, limits: &Limits) -> Vec<String> {
    let reply = asked.reply.to_string();
    let late = |token: &&str| known.get(token).is_none_or(|line| line.at > asked.end() + limits.way);
    tokens(&reply)
        .filter(late)
        .map(|token| format!("late: {token} of {} is not said in time", asked.who))
        .collect()
}
