//! Every verb, looked at before and after the store was opened again.

mod base;
mod compact;
mod group;
mod guard;
mod inbox;
mod ledger;
mod memories;
mod open;
mod outbox;
mod reactions;
mod redact;
mod reminders;
mod rooms;
mod succession;
mod transcript;
mod turns;

use std::future::Future;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use tempfile::TempDir;
use uuid::Uuid;

use super::table::Table;
use super::*;
use crate::conversation::{DeliveryKind, RegisterName};
use crate::persona::session::Account;

/// The time at which all of this happens.
const NOW: Millis = Millis(1_000);

fn persona(name: &str) -> PersonaId {
    PersonaId(name.to_owned())
}

fn eir() -> PersonaId {
    persona("eir")
}

fn user(name: &str) -> OwnedUserId {
    format!("@{name}:x.org").try_into().unwrap()
}

fn room(name: &str) -> OwnedRoomId {
    format!("!{name}:x.org").try_into().unwrap()
}

fn event(name: &str) -> OwnedEventId {
    format!("${name}").try_into().unwrap()
}

fn lane() -> Lane {
    Lane::Register(RegisterName("public".to_owned()))
}

fn mail(name: &str, text: &str) -> Delivery {
    Delivery {
        seq: 0,
        lane: lane(),
        room: room("swarm"),
        sender: user("alice"),
        sender_name: Some("Alice".to_owned()),
        event: event(name),
        kind: DeliveryKind::Text,
        text: text.to_owned(),
        thread: Some(event("root")),
        reply_to: None,
        addressed: true,
        wakes: true,
        hops: None,
        again: None,
        late: false,
        said: Millis(900),
        heard: NOW,
    }
}

fn numbered(seq: u64, mail: Delivery) -> Delivery {
    Delivery { seq, ..mail }
}

fn arrival(name: &str, effects: Vec<Effect>) -> Arrival {
    Arrival { event: event(name), effects }
}

fn heard_by(persona: &PersonaId, name: &str, text: &str) -> Arrival {
    arrival(name, vec![Effect::Deliver(persona.clone(), mail(name, text))])
}

fn turn(id: u128, seqs: &[u64]) -> OpenTurn {
    OpenTurn {
        wake: crate::persona::Wake::Mail,
        id: TurnId(Uuid::from_u128(id)),
        lane: lane(),
        seqs: seqs.to_vec(),
        attempt: 1,
        not_before: Millis(5),
        as_of: Millis(4),
        spent: crate::persona::session::Usd::default(),
        flush: None,
        reminders: Vec::new(),
        news: None,
        troubles: crate::persona::Troubles { transient: 3, ..Default::default() },
    }
}

/// The end of a turn of Eir's with nothing said and nothing that follows.
fn plain(turn: TurnId) -> Commit {
    Commit {
        persona: eir(),
        turn,
        hops: 2,
        says: Vec::new(),
        guard: Default::default(),
        session: session(1),
        ledger: Vec::new(),
        memory: Remembering::default(),
        pulse: None,
        reminders: Reminding::default(),
        show: BTreeSet::new(),
        said: None,
        now: NOW,
    }
}

fn session(generation: u32) -> Session {
    Session {
        generation,
        id: Uuid::from_u128(9),
        fingerprint: Default::default(),
        begun: Millis(4),
        last_committed: None,
        seeded: false,
        account: Account::default(),
    }
}

fn books(session: Session) -> Books {
    Books { session: Some(session), ledger: Vec::new() }
}

fn say(request: &str, to: &str) -> NewSay {
    NewSay {
        sender: user("eir"),
        room: room(to),
        request: RequestId(request.to_owned()),
        kind: "m.room.message".to_owned(),
        body: format!(r#"{{"body":"{request}"}}"#),
        cause: "cause".to_owned(),
        part: "0".to_owned(),
    }
}

fn refused(reason: &str) -> Parking {
    Parking::Refused(reason.to_owned())
}

fn opening() -> Opening {
    let owner = Owner { server_name: "x.org".to_owned(), appservice: "bridge".to_owned() };
    Opening { owner, epoch: Uuid::from_u128(1), now: NOW }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap().block_on(future)
}

struct World {
    folder: TempDir,
    store: Option<Store>,
}

impl World {
    fn new() -> Self {
        let mut world = Self { folder: tempfile::tempdir().unwrap(), store: None };
        world.reopen();
        world
    }

    fn config(&self) -> Config {
        Config { path: self.folder.path().join("store"), min_free: 0 }
    }

    fn reopen(&mut self) {
        drop(self.store.take());
        self.store = Some(Store::open(&self.config(), opening()).unwrap());
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn accept(&self, arrivals: Vec<Arrival>) -> Vec<bool> {
        block(self.store().accept(arrivals, Vec::new(), None, NOW)).unwrap()
    }

    /// Looks twice, the second time after opening the store again.
    fn look(&mut self, look: impl Fn(&Store)) {
        look(self.store());
        self.reopen();
        look(self.store());
    }

    fn waiting(&self, persona: &PersonaId) -> Vec<u64> {
        self.store().waiting(persona).unwrap().into_iter().map(|head| head.seq).collect()
    }
}
