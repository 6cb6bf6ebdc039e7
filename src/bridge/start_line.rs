//! Where hearing begins in a room without a mark: her invite, else her join, if that lies after the store was made.

use std::sync::Arc;

use ruma::{OwnedEventId, OwnedRoomId};

use super::receive::read_page;
use super::shared::Shared;
use crate::conversation::{Content, Event, Membership, Millis};
use crate::homeserver::client::{CallError, Identity};

/// How many pages are looked through for her membership.
const PAGES: usize = 10;

/// Where hearing begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartLine {
    /// Right after this event.
    At(OwnedEventId),
    /// She was in the room before the store was made: after the newest event, or at the first that was pushed.
    Newest,
}

/// Finds the start line of a room for its reader.
pub(crate) async fn find(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
) -> Result<StartLine, CallError> {
    if let Some(invite) = shared.directory().invite(room) {
        return Ok(StartLine::At(invite));
    }
    let mut scan = Scan::new(reader.user.clone(), shared.store.made());
    let mut page = shared.client.newest(reader, room, 100).await?;
    for _ in 0..PAGES {
        let (events, _) = read_page(&page.events);
        if events.iter().any(|event| scan.settles(event)) {
            break;
        }
        let Some(end) = page.end.filter(|_| !page.events.is_empty()) else { break };
        page = shared.client.older(reader, room, &end, 100).await?;
    }
    Ok(scan.end())
}

/// Goes backwards through a room for the begin of her present stay.
struct Scan {
    user: ruma::OwnedUserId,
    made: Millis,
    stay: Option<(OwnedEventId, Millis)>,
}

impl Scan {
    fn new(user: ruma::OwnedUserId, made: Millis) -> Self {
        Self { user, made, stay: None }
    }

    /// Takes one more event, newest first; answers whether the begin is found.
    fn settles(&mut self, event: &Event) -> bool {
        let Content::Member(member) = &event.content else { return false };
        if member.user != self.user {
            return false;
        }
        match member.membership {
            Membership::Join => {
                self.stay = Some((event.id.clone(), event.at));
                false
            }
            Membership::Invite => {
                self.stay = Some((event.id.clone(), event.at));
                true
            }
            Membership::Leave | Membership::Ban | Membership::Knock => true,
        }
    }

    fn end(self) -> StartLine {
        match self.stay {
            Some((event, at)) if at >= self.made => StartLine::At(event),
            _ => StartLine::Newest,
        }
    }
}

#[cfg(test)]
mod tests {
    use ruma::{event_id, room_id, user_id};

    use super::*;
    use crate::conversation::Member;

    fn member(id: &str, user: &str, membership: Membership, at: u64) -> Event {
        Event {
            id: OwnedEventId::try_from(id).unwrap(),
            room: room_id!("!r:hs.test").to_owned(),
            sender: user_id!("@a:hs.test").to_owned(),
            at: Millis(at),
            request: None,
            content: Content::Member(Member {
                user: ruma::OwnedUserId::try_from(user).unwrap(),
                membership,
                display_name: None,
                is_direct: false,
            }),
        }
    }

    fn check(events: &[Event], made: u64) -> StartLine {
        let mut scan = Scan::new(user_id!("@eir:hs.test").to_owned(), Millis(made));
        for event in events {
            if scan.settles(event) {
                break;
            }
        }
        scan.end()
    }

    const EIR: &str = "@eir:hs.test";

    #[test]
    fn the_invite_before_her_join_is_the_line() {
        let events = [
            member("$rename", EIR, Membership::Join, 40),
            member("$other", "@x:hs.test", Membership::Leave, 35),
            member("$join", EIR, Membership::Join, 30),
            member("$invite", EIR, Membership::Invite, 20),
            member("$old", EIR, Membership::Leave, 10),
        ];
        assert_eq!(check(&events, 15), StartLine::At(event_id!("$invite").to_owned()));
    }

    #[test]
    fn a_join_by_alias_is_the_line_and_an_earlier_stay_is_not() {
        let events =
            [member("$join", EIR, Membership::Join, 30), member("$left", EIR, Membership::Leave, 25)];
        assert_eq!(check(&events, 15), StartLine::At(event_id!("$join").to_owned()));
    }

    #[test]
    fn a_stay_that_began_before_the_store_begins_at_the_newest() {
        let events = [member("$join", EIR, Membership::Join, 30)];
        assert_eq!(check(&events, 31), StartLine::Newest);
        assert_eq!(check(&[], 0), StartLine::Newest);
    }
}
