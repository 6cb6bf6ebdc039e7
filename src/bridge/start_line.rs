//! Where hearing begins for a Persona in a room: her invite, else her join, found by a look back through the room.

use std::collections::BTreeMap;
use std::sync::Arc;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde_json::value::RawValue;

use super::shared::Shared;
use crate::conversation::{Content, Event, Membership, Millis, PersonaId};
use crate::homeserver::client::{CallError, Identity};
use crate::homeserver::event;
use crate::store::StartLine;

/// How many pages are looked through.
const PAGES: usize = 10;
/// How many events a page asks for.
const PAGE: u32 = 100;

/// A seat, and what is known of where hearing begins for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) persona: PersonaId,
    pub(crate) user: OwnedUserId,
    pub(crate) invite: Option<OwnedEventId>,
    pub(crate) line: Option<StartLine>,
}

/// Where reading begins in a room, and the start lines as they are seen from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Right after this event; none where nothing that is there already is mail.
    pub(crate) event: Option<OwnedEventId>,
    pub(crate) lines: Vec<(PersonaId, StartLine)>,
}

/// Where reading begins in a room without a mark: at the oldest stay that began after the store was made. For who was
/// there before the store, hearing begins `now`, which is none where an event was sighted to begin at.
pub(crate) async fn begin(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    seats: &[Start],
    now: Option<Millis>,
) -> Result<Begin, CallError> {
    if let [Start { persona, invite: Some(invite), line: Some(line), .. }] = seats {
        let line = StartLine { passed: true, ..*line };
        return Ok(Begin { event: Some(invite.clone()), lines: vec![(persona.clone(), line)] });
    }
    let scan = look_back(shared, room, reader, seats, None).await?;
    Ok(scan.begin(seats, shared.store.made(), now.unwrap_or_default()))
}

/// The start lines of seats in a room that is read up to the mark.
pub(crate) async fn against(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    seats: &[Start],
    mark: &OwnedEventId,
) -> Result<Vec<(PersonaId, StartLine)>, CallError> {
    let scan = look_back(shared, room, reader, seats, Some(mark)).await?;
    Ok(seats.iter().map(|seat| (seat.persona.clone(), scan.line(&seat.user))).collect())
}

async fn look_back(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    seats: &[Start],
    mark: Option<&OwnedEventId>,
) -> Result<Scan, CallError> {
    let mut scan = Scan::new(seats.iter().map(|seat| seat.user.clone()), mark.cloned());
    let mut page = shared.client.newest(reader, room, PAGE).await?;
    for _ in 0..PAGES {
        for raw in &page.events {
            if let Ok(event) = event::read(raw) {
                scan.take(&event, is_rename(raw));
            }
        }
        let Some(end) = page.end.filter(|_| !scan.is_over() && !page.events.is_empty()) else { break };
        page = shared.client.older(reader, room, &end, PAGE).await?;
    }
    Ok(scan)
}

/// Whether a join only changes how a member is shown.
fn is_rename(raw: &RawValue) -> bool {
    let event: serde_json::Value = serde_json::from_str(raw.get()).unwrap_or_default();
    event.pointer("/unsigned/prev_content/membership").is_some_and(|before| before == "join")
}

/// Where somebody's present stay begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stay {
    event: OwnedEventId,
    at: Millis,
    /// How many events are newer.
    depth: usize,
}

/// Goes backwards through a room for the begins of present stays, and for the mark.
struct Scan {
    stays: BTreeMap<OwnedUserId, Option<Stay>>,
    /// Those whose begin may lie further back.
    open: Vec<OwnedUserId>,
    mark: Option<OwnedEventId>,
    marked: Option<(usize, Millis)>,
    depth: usize,
}

impl Scan {
    fn new(users: impl Iterator<Item = OwnedUserId>, mark: Option<OwnedEventId>) -> Self {
        let open: Vec<_> = users.collect();
        let stays = open.iter().map(|user| (user.clone(), None)).collect();
        Self { stays, open, mark, marked: None, depth: 0 }
    }

    /// Takes one more event, newest first.
    fn take(&mut self, event: &Event, is_rename: bool) {
        if self.mark.as_ref() == Some(&event.id) {
            self.marked = Some((self.depth, event.at));
        }
        if let Content::Member(member) = &event.content
            && let Some(place) = self.open.iter().position(|user| *user == member.user)
        {
            let here = Stay { event: event.id.clone(), at: event.at, depth: self.depth };
            match member.membership {
                Membership::Join if is_rename => {}
                Membership::Join => drop(self.stays.insert(member.user.clone(), Some(here))),
                Membership::Invite => {
                    self.stays.insert(member.user.clone(), Some(here));
                    self.open.swap_remove(place);
                }
                Membership::Leave | Membership::Ban | Membership::Knock => drop(self.open.swap_remove(place)),
            }
        }
        self.depth += 1;
    }

    fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    fn stay(&self, user: &OwnedUserId) -> Option<&Stay> {
        self.stays.get(user).and_then(Option::as_ref)
    }

    /// Her start line as the mark sees it. Where neither was met, her own event will be when reading comes there.
    fn line(&self, user: &OwnedUserId) -> StartLine {
        match (self.stay(user), self.marked) {
            (Some(stay), Some((depth, at))) if stay.depth >= depth => StartLine { at, passed: true },
            (Some(stay), _) => StartLine { at: stay.at, passed: false },
            (None, Some((_, at))) => StartLine { at, passed: true },
            (None, None) => StartLine { at: Millis(0), passed: false },
        }
    }

    fn begin(&self, seats: &[Start], made: Millis, now: Millis) -> Begin {
        let stay = |seat: &Start| {
            let found = self.stay(&seat.user).filter(|stay| stay.at >= made).cloned();
            // An invite that was pushed is a begin even where nobody can look back so far.
            let pushed = || Some((seat.invite.clone()?, seat.line?.at));
            found.or_else(|| pushed().map(|(event, at)| Stay { event, at, depth: usize::MAX }))
        };
        let stays: Vec<_> = seats.iter().map(|seat| (seat.persona.clone(), stay(seat))).collect();
        let oldest =
            stays.iter().filter_map(|(_, stay)| stay.as_ref()).max_by_key(|stay| stay.depth).cloned();
        let line = |stay: Option<Stay>| match stay {
            Some(stay) => StartLine { at: stay.at, passed: oldest.as_ref() == Some(&stay) },
            None => StartLine { at: now, passed: oldest.is_none() },
        };
        let lines = stays.into_iter().map(|(persona, stay)| (persona, line(stay))).collect();
        Begin { event: oldest.as_ref().map(|stay| stay.event.clone()), lines }
    }
}

#[cfg(test)]
mod tests {
    use ruma::{event_id, room_id, user_id};
    use serde_json::json;

    use super::*;
    use crate::conversation::Member;

    const EIR: &str = "@eir:hs.test";
    const BRAGE: &str = "@brage:hs.test";
    use Membership::{Invite, Join, Leave};

    fn event(id: &str, at: u64, content: Content) -> Event {
        Event {
            id: OwnedEventId::try_from(id).unwrap(),
            room: room_id!("!r:hs.test").to_owned(),
            sender: user_id!("@a:hs.test").to_owned(),
            at: Millis(at),
            request: None,
            cause: None,
            content,
        }
    }

    fn member(id: &str, user: &str, membership: Membership, at: u64) -> Event {
        let user = OwnedUserId::try_from(user).unwrap();
        event(id, at, Content::Member(Member { user, membership, display_name: None, is_direct: false }))
    }

    fn seat(id: &str) -> Start {
        let user = OwnedUserId::try_from(format!("@{id}:hs.test")).unwrap();
        Start { persona: PersonaId(id.to_owned()), user, invite: None, line: None }
    }

    /// Looks through events, newest first; those whose ids begin with `$rename` are renames.
    fn scan(events: &[Event], mark: Option<&str>) -> Scan {
        let users = [EIR, BRAGE].map(|user| OwnedUserId::try_from(user).unwrap());
        let mut scan = Scan::new(users.into_iter(), mark.map(|id| OwnedEventId::try_from(id).unwrap()));
        events.iter().for_each(|event| scan.take(event, event.id.as_str().starts_with("$rename")));
        scan
    }

    #[track_caller]
    fn begins(events: &[Event], made: u64, expect: Option<&str>, passed: [bool; 2]) {
        let begin = scan(events, None).begin(&[seat("eir"), seat("brage")], Millis(made), Millis(90));
        assert_eq!(begin.event.as_ref().map(|event| event.as_str()), expect);
        assert_eq!([begin.lines[0].1.passed, begin.lines[1].1.passed], passed, "{begin:?}");
    }

    #[test]
    fn the_invite_before_her_join_is_the_begin() {
        let events = [
            member("$rename", EIR, Join, 40),
            member("$other", "@x:hs.test", Leave, 35),
            member("$join", EIR, Join, 30),
            member("$invite", EIR, Invite, 20),
            member("$old", EIR, Leave, 10),
        ];
        begins(&events, 15, Some("$invite"), [true, false]);
    }

    #[test]
    fn a_join_by_alias_is_the_begin_and_an_earlier_stay_is_not() {
        begins(
            &[member("$join", EIR, Join, 30), member("$left", EIR, Leave, 25)],
            15,
            Some("$join"),
            [true, false],
        );
    }

    #[test]
    fn of_two_the_older_is_the_begin_and_the_other_is_ahead() {
        let events = [
            member("$brage", BRAGE, Join, 40),
            member("$join", EIR, Join, 30),
            member("$invite", EIR, Invite, 20),
        ];
        begins(&events, 15, Some("$invite"), [true, false]);
        begins(&events, 25, Some("$brage"), [false, true]);
    }

    #[test]
    fn a_stay_that_began_before_the_store_is_no_begin() {
        begins(&[member("$join", EIR, Join, 30)], 31, None, [true, true]);
        begins(&[], 0, None, [true, true]);
    }

    #[test]
    fn an_invite_that_was_pushed_is_a_begin_though_it_is_not_met() {
        let line = Some(StartLine { at: Millis(5), passed: false });
        let eir = Start { invite: Some(event_id!("$pushed").to_owned()), line, ..seat("eir") };
        let begin = scan(&[], None).begin(&[eir], Millis(0), Millis(90));
        assert_eq!(begin.event.as_deref(), Some(event_id!("$pushed")));
        assert_eq!(begin.lines[0].1, StartLine { at: Millis(5), passed: true });
    }

    #[test]
    fn the_mark_tells_whether_a_line_is_passed() {
        let other = |id, at| event(id, at, Content::Encryption);
        let line = |events: &[Event]| scan(events, Some("$mark")).line(&OwnedUserId::try_from(EIR).unwrap());
        let (ahead, passed) = (
            |at| StartLine { at: Millis(at), passed: false },
            |at| StartLine { at: Millis(at), passed: true },
        );
        assert_eq!(line(&[member("$i", EIR, Invite, 30), other("$mark", 20)]), ahead(30));
        assert_eq!(line(&[other("$mark", 40), member("$i", EIR, Invite, 30)]), passed(40));
        assert_eq!(line(&[member("$mark", EIR, Join, 30)]), passed(30));
        assert_eq!(line(&[member("$rename", EIR, Join, 50), other("$mark", 40)]), passed(40));
        let joined = [member("$j", EIR, Join, 50), other("$mark", 40), member("$i", EIR, Invite, 30)];
        assert_eq!(line(&joined), passed(40));
        assert_eq!(line(&[other("$x", 50)]), ahead(0));
    }

    #[test]
    fn a_rename_is_told_by_what_was_before() {
        let rename = |before: serde_json::Value| {
            let event = json!({ "unsigned": { "prev_content": { "membership": before } } });
            is_rename(&serde_json::value::to_raw_value(&event).unwrap())
        };
        assert!(rename(json!("join")));
        assert!(!rename(json!("invite")) && !rename(json!(7)));
        assert!(!is_rename(&serde_json::value::to_raw_value(&json!({})).unwrap()));
    }
}
