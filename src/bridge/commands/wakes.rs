//! Who wakes whom in a room, and why not: what holds there, and its words.

use ruma::OwnedRoomId;

use super::show;
use crate::bridge::shared::Shared;
use crate::conversation::prompt::moment;
use crate::conversation::register::{Heed, Listen, Wakes};
use crate::conversation::{Bots, Lane, Millis, Room};
use crate::persona::Limit;

/// What keeps a Persona from being woken in a room, whatever is said there.
#[derive(Debug, Default)]
struct Bars {
    /// An admin has stopped her there.
    stopped: bool,
    /// The brake holds her.
    held: bool,
    /// She and another woke each other there too often.
    paired: bool,
    /// Her budget, in words.
    spent: Option<String>,
}

/// What is so of a room for all in it.
struct Here<'a> {
    room: &'a Room,
    bots: &'a Bots,
    max_hops: u32,
    /// Until when it bears nothing more of Personas, and by which limit.
    full: Option<(Limit, Millis)>,
}

/// Who wakes whom in a room, and why not.
pub(super) fn wakes(shared: &Shared, here: &OwnedRoomId, named: Option<&str>) -> String {
    let Some(room) = find(shared, here, named) else {
        return "no Persona sits there; name a room of theirs, as `wakes #room:example.org`".to_owned();
    };
    let among = shared.config.among;
    let full = among.room.and_then(|limit| Some((limit, shared.is_full_until(&room.id, true)?)));
    let here = Here { room: &room, bots: &shared.config.bots, max_hops: among.max_hops, full };
    let mut lines = room_lines(&here);
    lines.extend(room.seats.iter().map(|(id, seat)| {
        let bars = Bars {
            stopped: shared.stops(id, &room.id),
            held: shared.brake().holds(id),
            paired: shared.held_in(id).contains(&room.id),
            spent: show::spent(shared, id),
        };
        let (by_people, by_personas) = (by_people(seat.heed, &seat.lane), by_personas(seat.heed, &here));
        format!("{id} (register {}): {by_people}; {by_personas}{}", seat.lane.register(), bars.told())
    }));
    lines.join("\n")
}

/// The room that is named, else the one where it is asked, if a Persona sits there.
fn find(shared: &Shared, here: &OwnedRoomId, named: Option<&str>) -> Option<Room> {
    let directory = shared.directory();
    let room = match named {
        Some(name) => directory.rooms().find(|room| room.id == name || room.alias.as_deref() == Some(name)),
        None => directory.room(here),
    };
    room.filter(|room| !room.seats.is_empty()).cloned()
}

fn room_lines(here: &Here<'_>) -> Vec<String> {
    let room = here.room;
    let mut lines = vec![format!("in {}:", room.alias.as_deref().unwrap_or(room.id.as_str()))];
    if room.encrypted {
        lines.push("it is encrypted: nobody hears anything".to_owned());
    }
    if room.listen == Listen::Addressed {
        lines.push("listen = \"addressed\": what is addressed to nobody is not even heard".to_owned());
    }
    if !here.bots.0.is_empty() {
        lines.push(format!("bots wake nobody: {}, and whatever is a notice", here.bots.0.join(", ")));
    }
    if let Some((limit, until)) = here.full {
        lines.push(format!(
            "room_limit ({limit}) is reached: nothing said here wakes anybody until {}",
            moment(until)
        ));
    }
    lines
}

impl Bars {
    fn told(&self) -> String {
        let bars = [
            self.stopped.then_some("she is stopped here"),
            self.held.then_some("the brake holds her"),
            self.paired.then_some(
                "she and another woke each other too often: nothing wakes her here until a person addresses one of them",
            ),
            self.spent.as_deref(),
        ];
        bars.into_iter().flatten().map(|bar| format!("; {bar}")).collect()
    }
}

fn by_people(heed: Heed, lane: &Lane) -> String {
    let name = if heed.names_address { ", or by her name" } else { "" };
    let room = if heed.room_mention { ", or by @room" } else { "" };
    match heed.wakes {
        Wakes::Nobody => "nobody wakes her by what is said, but an admin who names her".to_owned(),
        _ if matches!(lane, Lane::Direct(_)) => "people wake her with all they say".to_owned(),
        Wakes::Addressed => {
            format!("people wake her by a mention, a reply or a thread that asked her{name}{room}")
        }
        Wakes::Anyone => format!("people wake her with all that is not said to somebody else{name}{room}"),
    }
}

fn by_personas(heed: Heed, here: &Here<'_>) -> String {
    if here.room.seats.len() < 2 {
        "no other Persona is here".to_owned()
    } else if !heed.personas_wake {
        "Personas do not wake her: personas_wake is off".to_owned()
    } else if heed.wakes == Wakes::Nobody {
        "nor do Personas".to_owned()
    } else if here.max_hops == 0 {
        "Personas do not wake her: max_hops is 0".to_owned()
    } else {
        format!("Personas wake her by what they say to her, {} hops from a person at most", here.max_hops)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use ruma::room_id;

    use super::*;
    use crate::conversation::{PersonaId, RegisterName, Seat};

    fn room(heed: Heed, personas: &[&str]) -> Room {
        let seat = || Seat { lane: Lane::Register(RegisterName("swarm".into())), heed };
        Room {
            id: room_id!("!r:hs.test").to_owned(),
            alias: None,
            name: None,
            topic: None,
            encrypted: false,
            listen: Listen::All,
            seats: personas.iter().map(|id| (PersonaId((*id).to_owned()), seat())).collect(),
            members: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn check_room(
        change: impl FnOnce(&mut Room),
        bots: &[&str],
        full: Option<(Limit, Millis)>,
        expect: &[&str],
    ) {
        let mut room = room(Heed::default(), &["eir"]);
        change(&mut room);
        let bots = Bots(bots.iter().map(|&bot| bot.to_owned()).collect());
        let lines = room_lines(&Here { room: &room, bots: &bots, max_hops: 3, full });
        assert_eq!(lines[0], "in !r:hs.test:");
        assert_eq!(lines[1..], *expect);
    }

    #[test]
    fn what_keeps_a_room_from_waking_anybody_is_told_with_its_limit() {
        check_room(|_| {}, &[], None, &[]);
        check_room(
            |room| (room.encrypted, room.listen) = (true, Listen::Addressed),
            &["@*bot:hs.test", "@x:hs.test"],
            Some((Limit { most: 30, within: Duration::from_secs(600) }, Millis(1_800_000_000_000))),
            &[
                "it is encrypted: nobody hears anything",
                "listen = \"addressed\": what is addressed to nobody is not even heard",
                "bots wake nobody: @*bot:hs.test, @x:hs.test, and whatever is a notice",
                "room_limit (30 per 10m) is reached: nothing said here wakes anybody until 2027-01-15 08:00 UTC",
            ],
        );
    }

    #[track_caller]
    fn check_personas(heed: Heed, personas: &[&str], max_hops: u32, expect: &str) {
        let room = room(heed, personas);
        let said = by_personas(heed, &Here { room: &room, bots: &Bots::default(), max_hops, full: None });
        assert_eq!(said, expect);
    }

    #[test]
    fn why_personas_do_not_wake_her_is_told_by_what_is_to_be_changed() {
        let wakes = Heed { personas_wake: true, ..Heed::default() };
        let two = ["eir", "brage"];
        check_personas(wakes, &["eir"], 3, "no other Persona is here");
        check_personas(Heed::default(), &two, 3, "Personas do not wake her: personas_wake is off");
        check_personas(Heed { wakes: Wakes::Nobody, ..wakes }, &two, 3, "nor do Personas");
        check_personas(wakes, &two, 0, "Personas do not wake her: max_hops is 0");
        check_personas(
            wakes,
            &two,
            3,
            "Personas wake her by what they say to her, 3 hops from a person at most",
        );
    }

    #[test]
    fn whatever_holds_her_is_told() {
        assert_eq!(Bars::default().told(), "");
        let all = Bars { stopped: true, held: true, paired: true, spent: Some("her budget is spent".into()) };
        assert_eq!(
            all.told(),
            "; she is stopped here; the brake holds her; she and another woke each other too often: nothing wakes her here \
             until a person addresses one of them; her budget is spent"
        );
    }
}
