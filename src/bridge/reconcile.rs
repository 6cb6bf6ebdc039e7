//! Reads back what transactions missed: each room forwards from its checked mark, in the server's own order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::BridgeError;
use super::receive::read_page;
use super::seats;
use super::shared::{Poke, ReadBack, Shared};
use super::start_line::{self, StartLine};
use crate::homeserver::client::{CallError, CallErrorKind, Identity};
use crate::store::Arrival;

/// The pause between two rooms of a pass.
const PACE: Duration = Duration::from_millis(20);
/// How soon a failed pass is tried again.
const AGAIN: Duration = Duration::from_secs(15);
/// How soon the next pass begins where the homeserver brings nothing by itself until its own delay is over.
const BEHIND: Duration = Duration::from_secs(5);
/// The break after a pass that failed.
const BREATH: Duration = Duration::from_secs(1);
/// How many events a page asks for (Conduit gives no more).
const PAGE: u32 = 100;

/// How many pages are read back where reading forward stops short.
const BACK: usize = 20;

/// What a look at one room may end in, beside success.
enum Failed {
    Call(CallError),
    Bridge(BridgeError),
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<BridgeError> for Failed {
    fn from(error: BridgeError) -> Self {
        Self::Bridge(error)
    }
}

impl From<crate::store::StoreError> for Failed {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Bridge(error.into())
    }
}

/// Runs passes: at `reconcile`, when poked, and again soon after a failure; until the service has drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut pokes: mpsc::UnboundedReceiver<Poke>,
) -> Result<(), BridgeError> {
    let mut full = shared.clock.now().plus(shared.config.reconcile);
    let mut caught_up = false;
    loop {
        let mut asked = BTreeSet::new();
        tokio::select! {
            biased;
            () = shared.drained.cancelled() => return Ok(()),
            Some(poke) = pokes.recv() => { asked.insert(poke); }
            () = shared.clock.sleep_until(Some(full)) => { asked.insert(Poke::All); }
        }
        while let Ok(poke) = pokes.try_recv() {
            asked.insert(poke);
        }
        if shared.clock.now() >= full {
            asked.insert(Poke::All);
        }
        let whole = asked.contains(&Poke::All);
        let pass = async {
            if !super::receive::has_room(&shared)? {
                return Ok(false);
            }
            if whole { whole_pass(&shared).await } else { rooms_pass(&shared, asked).await }
        };
        let done = tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            done = pass => done?,
        };
        if !done {
            // A call that fails each time must not make one pass follow the other without a break.
            tokio::time::sleep(BREATH).await;
        }
        if whole && done && !std::mem::replace(&mut caught_up, true) {
            tracing::info!("caught up: every room is read back");
        }
        let next = shared.clock.now().plus(pause(&shared, done));
        full = if whole { next } else { full.min(next) };
    }
}

/// How long the next pass may wait after one that succeeded, or did not.
fn pause(shared: &Shared, done: bool) -> Duration {
    let reconcile = shared.config.reconcile;
    match done {
        false => reconcile.min(AGAIN),
        true if shared.is_behind() => reconcile.min(BEHIND),
        true => reconcile,
    }
}

/// One pass over seats, invites and all rooms; answers whether every look succeeded.
pub(crate) async fn whole_pass(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    let mut good = seats::compare(shared).await?;
    super::rooms::unjoined(shared).await?;
    good &= super::invites::ask(shared).await?;
    let rooms = shared.directory().seated();
    Ok(look_at(shared, rooms).await? && good)
}

async fn rooms_pass(shared: &Arc<Shared>, asked: BTreeSet<Poke>) -> Result<bool, BridgeError> {
    let rooms = asked.into_iter().filter_map(|poke| match poke {
        Poke::Room(room) => Some(room),
        Poke::All => None,
    });
    let rooms: Vec<OwnedRoomId> = rooms.collect();
    let unseated =
        rooms.iter().any(|room| shared.directory().room(room).is_none_or(|room| room.seats.is_empty()));
    let good = if unseated { seats::compare(shared).await? } else { true };
    Ok(look_at(shared, rooms).await? && good)
}

async fn look_at(shared: &Arc<Shared>, rooms: Vec<OwnedRoomId>) -> Result<bool, BridgeError> {
    let mut good = true;
    for room in rooms {
        match look(shared, &room).await {
            Ok(new) if new > 0 => {
                tracing::info!(%room, new, "read back what no transaction brought");
                shared.note_missed();
            }
            Ok(_) => {}
            Err(Failed::Call(error)) => {
                tracing::debug!(%room, %error, "a room could not be read back");
                use CallErrorKind as Kind;
                match error.kind {
                    // It may come back without what it held: what it brings then waits for what is read.
                    Kind::NotSent | Kind::Uncertain => shared.directory().unmark(Some(&room)),
                    Kind::Limited(_) => {}
                    Kind::Unauthorized
                    | Kind::Forbidden
                    | Kind::NotFound
                    | Kind::TooLarge
                    | Kind::Server
                    | Kind::Already
                    | Kind::Refused => hear_all_the_same(shared, &room)?,
                }
                good = false;
            }
            Err(Failed::Bridge(error)) => return Err(error),
        }
        tokio::time::sleep(PACE).await;
    }
    Ok(good)
}

/// The homeserver does not let the room be read; what it brings by itself is better than nothing.
fn hear_all_the_same(shared: &Shared, room: &OwnedRoomId) -> Result<(), BridgeError> {
    if shared.store.mark(room)?.is_some() {
        shared.caught_up(room);
    }
    Ok(())
}

/// Those who may read a room: joined by the server's word. Conduit hides for ever what somebody asks for too early.
fn readers(shared: &Shared, room: &OwnedRoomId) -> Vec<OwnedUserId> {
    let directory = shared.directory();
    let Some(room) = directory.room(room) else { return Vec::new() };
    let seated = directory.personas.iter().filter(|persona| room.seats.contains_key(&persona.id));
    seated.map(|persona| persona.user.clone()).filter(|user| room.members.contains_key(user)).collect()
}

/// Looks at one room through each Persona in it until one can read it; answers how much mail was new.
async fn look(shared: &Arc<Shared>, room: &OwnedRoomId) -> Result<usize, Failed> {
    let mut last = None;
    for reader in readers(shared, room) {
        match read_room(shared, room, &shared.identity(&reader)).await {
            Err(Failed::Call(error)) if error.kind == CallErrorKind::Forbidden => last = Some(error),
            other => return other,
        }
    }
    last.map_or(Ok(0), |error| Err(error.into()))
}

async fn read_room(shared: &Arc<Shared>, room: &OwnedRoomId, reader: &Identity) -> Result<usize, Failed> {
    let newest = shared.client.newest(reader, room, 1).await?;
    let Some(newest) = newest.events.first().and_then(|raw| event_id(raw)) else { return Ok(0) };
    let mark = match shared.store.mark(room)? {
        Some(mark) if mark == newest && shared.store.knows(&mark)? => {
            shared.caught_up(room);
            return Ok(0);
        }
        Some(mark) if shared.store.knows(&mark)? => mark,
        sighted => match (start_line::find(shared, room, reader).await?, sighted) {
            (StartLine::At(event), _) => event,
            (StartLine::Newest, Some(first)) => {
                tell_was_here(shared, room).await?;
                first
            }
            (StartLine::Newest, None) => {
                begin_at(shared, room, newest).await?;
                tell_was_here(shared, room).await?;
                return Ok(0);
            }
        },
    };
    let mut new = 0;
    if !shared.store.knows(&mark)? {
        new += read_mark(shared, room, reader, &mark).await?;
    }
    match shared.client.after(reader, room, &mark).await? {
        Some(from) => {
            let (read, taken) = read_forward(shared, room, reader, from).await?;
            new += taken;
            if read == 0 && mark != newest {
                new += read_backward(shared, room, reader, &mark).await?;
            }
            begun(shared, room, &mark).await?;
            Ok(new)
        }
        None => {
            let text = format!(
                "the homeserver does not know {mark} in {room} any more; reading begins at the newest"
            );
            shared.tell(&format!("mark:{room}:{mark}"), &text).await?;
            begin_at(shared, room, newest).await?;
            Ok(new)
        }
    }
}

/// What is older than the newest event is context, never mail.
async fn begin_at(shared: &Arc<Shared>, room: &OwnedRoomId, newest: OwnedEventId) -> Result<(), BridgeError> {
    let arrival = Arrival { event: newest.clone(), effects: Vec::new() };
    let now = shared.clock.now();
    shared.store.accept(vec![arrival], Vec::new(), Some((room.clone(), newest)), now).await?;
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

/// Reading has caught up: mail is fed from here on. Where nothing came behind the start line, it is the mark.
async fn begun(shared: &Arc<Shared>, room: &OwnedRoomId, line: &OwnedEventId) -> Result<(), Failed> {
    if shared.store.mark(room)?.is_none() {
        let mark = Some((room.clone(), line.clone()));
        shared.store.accept(Vec::new(), Vec::new(), mark, shared.clock.now()).await?;
    }
    shared.caught_up(room);
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
        if let Some(mark) = page.events.iter().rev().find_map(|raw| event_id(raw)) {
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
        let found = page.events.iter().position(|raw| event_id(raw).as_ref() == Some(mark));
        behind.extend(page.events.into_iter().take(found.unwrap_or(usize::MAX)));
        let Some(end) = end.filter(|_| found.is_none()) else { break };
        page = shared.client.older(reader, room, &end, PAGE).await?;
    }
    behind.reverse();
    match behind.last().and_then(|raw| event_id(raw)) {
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
    let (done, taken) = oneshot::channel();
    let back = ReadBack { events, unreadable, room: room.clone(), mark, done };
    let gone = || BridgeError::Task { name: "receive".to_owned() };
    shared.read_back.send(back).await.map_err(|_| gone())?;
    Ok(taken.await.map_err(|_| gone())?)
}

#[derive(Deserialize)]
struct Head {
    event_id: OwnedEventId,
}

/// The id of a raw event.
pub(crate) fn event_id(raw: &RawValue) -> Option<OwnedEventId> {
    serde_json::from_str::<Head>(raw.get()).ok().map(|head| head.event_id)
}
