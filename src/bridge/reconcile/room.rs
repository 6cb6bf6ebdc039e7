//! Looks at one room: from its checked mark to the end, or from where hearing begins there.

use std::sync::Arc;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::bridge::calls::Failed;
use crate::bridge::receive::read_page;
use crate::bridge::shared::{ReadBack, Shared};
use crate::bridge::start_line::{self, Start};
use crate::bridge::{BridgeError, invites};
use crate::conversation::{Content, Event, Membership, Millis, PersonaId};
use crate::homeserver::client::{CallErrorKind, Identity};
use crate::store::{Arrival, Mark, StartLine};

/// How many events a page asks for (Conduit gives no more).
const PAGE: u32 = 100;
/// How many pages are read back where reading forward stops short.
const BACK: usize = 20;

/// How reading a room went through one Persona.
enum Read {
    /// To the end; so much mail was new.
    Whole(usize),
    /// The server does not show her the event that reading begins behind.
    Hidden(Hidden),
}

/// What could not be read on from, and the newest event.
struct Hidden {
    mark: OwnedEventId,
    newest: Head,
}

/// Looks at one room through each Persona in it until one can read it; answers how much mail was new.
pub(super) async fn look(shared: &Arc<Shared>, room: &OwnedRoomId) -> Result<usize, Failed> {
    let (mut refused, mut hidden) = (None, None);
    let readers = shared.directory().readers(room);
    for reader in readers {
        match read_room(shared, room, &shared.identity(&reader)).await {
            Ok(Read::Whole(new)) => return Ok(new),
            Ok(Read::Hidden(from)) => hidden = Some(from),
            Err(Failed::Call(error)) if error.kind == CallErrorKind::Forbidden => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match (hidden, refused) {
        (Some(hidden), _) => give_up(shared, room, hidden).await.map(|()| 0),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Ok(0),
    }
}

async fn read_room(shared: &Arc<Shared>, room: &OwnedRoomId, reader: &Identity) -> Result<Read, Failed> {
    let page = shared.client.newest(reader, room, 1).await?;
    let Some(newest) = page.events.first().and_then(|raw| Head::read(raw)) else { return Ok(Read::Whole(0)) };
    let mark = shared.store.mark(room)?;
    let mark = match mark {
        Some(mark) if shared.store.knows(&mark)? => mark,
        sighted => match begin(shared, room, reader, &newest, sighted).await? {
            Some(mark) => mark,
            None => return Ok(Read::Whole(0)),
        },
    };
    find_lines(shared, room, reader, &mark).await?;
    let ahead = ahead(shared, room);
    if mark == newest.event_id && shared.store.knows(&mark)? {
        reached(shared, room, ahead).await?;
        return Ok(Read::Whole(0));
    }
    let mut new = 0;
    if !shared.store.knows(&mark)? {
        new += read_mark(shared, room, reader, &mark).await?;
    }
    let Some(from) = shared.client.after(reader, room, &mark).await? else {
        return Ok(Read::Hidden(Hidden { mark, newest }));
    };
    let (read, taken) = read_forward(shared, room, reader, from).await?;
    new += taken;
    if read == 0 && mark != newest.event_id {
        new += read_backward(shared, room, reader, &mark).await?;
    }
    begun(shared, room, &mark).await?;
    reached(shared, room, ahead).await?;
    Ok(Read::Whole(new))
}

/// Where reading begins in a room without a mark, or whose mark is an event that was only sighted; none where nothing
/// that is there already is mail.
async fn begin(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    newest: &Head,
    sighted: Option<OwnedEventId>,
) -> Result<Option<OwnedEventId>, Failed> {
    let seats = shared.directory().starts(room);
    let now = sighted.is_none().then(|| newest.at());
    let found = start_line::begin(shared, room, reader, &seats, now).await?;
    set_lines(shared, room, found.lines).await?;
    match (found.event, sighted) {
        (Some(event), _) => Ok(Some(event)),
        (None, sighted) => {
            if sighted.is_none() {
                begin_at(shared, room, newest.event_id.clone()).await?;
            }
            tell_was_here(shared, room).await?;
            Ok(sighted)
        }
    }
}

/// Finds the start lines of those who took a seat in a room that others have read up to the mark.
async fn find_lines(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    mark: &OwnedEventId,
) -> Result<(), Failed> {
    let unlined: Vec<Start> =
        shared.directory().starts(room).into_iter().filter(|start| start.line.is_none()).collect();
    if unlined.is_empty() {
        return Ok(());
    }
    let lines = start_line::against(shared, room, reader, &unlined, mark).await?;
    Ok(set_lines(shared, room, lines).await?)
}

/// The start lines that reading has not come to.
fn ahead(shared: &Shared, room: &OwnedRoomId) -> Vec<PersonaId> {
    let lines = shared.directory().lines(room).into_iter();
    lines.filter(|(_, line)| !line.passed).map(|(persona, _)| persona).collect()
}

/// Reading has come to the end, and so behind the start lines that were there when it began.
async fn reached(shared: &Arc<Shared>, room: &OwnedRoomId, ahead: Vec<PersonaId>) -> Result<(), BridgeError> {
    let lines = shared.directory().lines(room).into_iter();
    let lines = lines.filter(|(persona, line)| !line.passed && ahead.contains(persona));
    let lines = lines.map(|(persona, line)| (persona, StartLine { passed: true, ..line })).collect();
    set_lines(shared, room, lines).await?;
    shared.caught_up(room);
    Ok(())
}

async fn set_lines(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    lines: Vec<(PersonaId, StartLine)>,
) -> Result<(), BridgeError> {
    if !lines.is_empty() {
        shared.directory().set_lines(room, &lines);
        shared.store.set_lines(room.clone(), lines).await?;
    }
    Ok(())
}

/// The server shows the mark to nobody of us any more: reading begins at the newest.
async fn give_up(shared: &Arc<Shared>, room: &OwnedRoomId, hidden: Hidden) -> Result<(), Failed> {
    let Hidden { mark, newest } = hidden;
    let text =
        format!("the homeserver does not know {mark} in {room} any more; reading begins at the newest");
    shared.tell(&format!("mark:{room}:{mark}"), &text).await?;
    begin_at(shared, room, newest.event_id).await?;
    Ok(reached(shared, room, ahead(shared, room)).await?)
}

/// What is older than the newest event is context, never mail.
async fn begin_at(shared: &Arc<Shared>, room: &OwnedRoomId, newest: OwnedEventId) -> Result<(), BridgeError> {
    let arrival = Arrival { event: newest.clone(), effects: Vec::new() };
    let mark = Mark { room: room.clone(), event: newest, lines: Vec::new() };
    shared.store.accept(vec![arrival], Vec::new(), Some(mark), shared.clock.now()).await?;
    shared.caught_up(room);
    Ok(())
}

/// Where she was before the store was made, operators are told once that nothing from before is answered.
async fn tell_was_here(shared: &Arc<Shared>, room: &OwnedRoomId) -> Result<(), BridgeError> {
    let text = format!(
        "a Persona was in {room} before this store was made; what was said there before is not answered"
    );
    shared.tell(&format!("start:{room}"), &text).await
}

/// Where nothing came behind the start line, it is the mark.
async fn begun(shared: &Arc<Shared>, room: &OwnedRoomId, line: &OwnedEventId) -> Result<(), Failed> {
    if shared.store.mark(room)?.is_none() {
        let mark = Mark { room: room.clone(), event: line.clone(), lines: Vec::new() };
        shared.store.accept(Vec::new(), Vec::new(), Some(mark), shared.clock.now()).await?;
    }
    Ok(())
}

/// The mark itself was seen but not taken (nobody was known to sit there): it is read first.
async fn read_mark(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    mark: &OwnedEventId,
) -> Result<usize, Failed> {
    match shared.client.event(reader, room, mark).await? {
        Some(raw) => take(shared, room, &[raw], mark.clone()).await,
        None => Ok(0),
    }
}

/// Reads to the end; answers how many events there were and how much of them was new mail.
async fn read_forward(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    from: String,
) -> Result<(usize, usize), Failed> {
    let (mut read, mut new) = (0, 0);
    let mut from = Some(from);
    while let Some(token) = from {
        let page = shared.client.newer(reader, room, &token, PAGE).await?;
        read += page.events.len();
        if let Some(mark) = page.events.iter().rev().find_map(|raw| Head::id(raw)) {
            new += take(shared, room, &page.events, mark).await?;
        }
        from = page.end.filter(|end| *end != token && !page.events.is_empty());
    }
    Ok((read, new))
}

/// Conduit stops reading forward at a page without a visible event: what lies behind it is read from the newest back.
async fn read_backward(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    reader: &Identity,
    mark: &OwnedEventId,
) -> Result<usize, Failed> {
    let mut behind = Vec::new();
    let mut page = shared.client.newest(reader, room, PAGE).await?;
    for _ in 0..BACK {
        let end = page.end.take();
        let found = page.events.iter().position(|raw| Head::id(raw).as_ref() == Some(mark));
        behind.extend(page.events.into_iter().take(found.unwrap_or(usize::MAX)));
        let Some(end) = end.filter(|_| found.is_none()) else { break };
        page = shared.client.older(reader, room, &end, PAGE).await?;
    }
    behind.reverse();
    match behind.last().and_then(|raw| Head::id(raw)) {
        Some(mark) => take(shared, room, &behind, mark).await,
        None => Ok(0),
    }
}

/// Takes events in with the mark behind them.
async fn take(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    raw: &[Box<RawValue>],
    mark: OwnedEventId,
) -> Result<usize, Failed> {
    let (events, unreadable) = read_page(raw);
    for (persona, user) in invited(shared, &events) {
        invites::ask_for(shared, &user).await?;
        // Her invite is on this page: what follows it there is hers.
        shared.directory().expect_line(room, &persona);
    }
    let (done, taken) = oneshot::channel();
    let back = ReadBack { events, unreadable, room: room.clone(), mark, done };
    let gone = || BridgeError::Task { name: "receive".to_owned() };
    shared.read_back.send(back).await.map_err(|_| gone())?;
    Ok(taken.await.map_err(|_| gone())?)
}

/// Those of us who are invited by one of the events and have no seat yet.
fn invited(shared: &Shared, events: &[Event]) -> Vec<(PersonaId, OwnedUserId)> {
    let directory = shared.directory();
    let invites = events.iter().filter_map(|event| {
        let Content::Member(member) = &event.content else { return None };
        (member.membership == Membership::Invite).then_some((event, member))
    });
    let unseated = invites.filter_map(|(event, member)| {
        let persona = &directory.persona(&member.user)?.id;
        (!directory.sits(persona, &event.room)).then(|| (persona.clone(), member.user.clone()))
    });
    unseated.collect()
}

/// What every event has.
#[derive(Deserialize)]
struct Head {
    event_id: OwnedEventId,
    #[serde(default)]
    origin_server_ts: serde_json::Value,
}

impl Head {
    fn read(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// When it was said; the begin of time where that cannot be read.
    fn at(&self) -> Millis {
        Millis(self.origin_server_ts.as_u64().unwrap_or_default())
    }

    fn id(raw: &RawValue) -> Option<OwnedEventId> {
        Self::read(raw).map(|head| head.event_id)
    }
}
