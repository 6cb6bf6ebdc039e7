//! A whole bridge in this process: the real store, ear and mouth on loopback sockets, a homeserver in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::clock::Clock;
use persona_bridge::bridge::minds::minds;
use persona_bridge::bridge::{self, BridgeError, Config, Mind, Parts, PersonaConfig, RoomKind};
use persona_bridge::conversation::{
    Bots, Heed, Level, Permissions, Persona, PersonaId, Register, RegisterName,
};
use persona_bridge::homeserver::client::{Client, ReqwestTransport};
use persona_bridge::homeserver::serve::Listen;
use persona_bridge::persona::decide::Settle;
use persona_bridge::persona::session::{Policy, Prices};
use persona_bridge::persona::{Among, Places};
use persona_bridge::store::{self, Opening, Owner, Store};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ear::Ear;
use super::events::{message, transaction};
use super::fake::homeserver::{FakeHomeserver, Flavour, serve};
use super::until;

/// The first Persona's user.
pub(crate) const FIRST: &str = "@persona_p0:hs.test";
/// Where the numbers of events begin that are only there to see whether the room is heard.
const PROBES: u64 = 1 << 40;

/// A running bridge, with all its Personas in one room.
pub(crate) struct House {
    pub(crate) home: FakeHomeserver,
    pub(crate) store: Store,
    /// The room's id.
    pub(crate) room: String,
    ear: SocketAddr,
    stop: CancellationToken,
    running: JoinSet<Result<(), BridgeError>>,
}

impl House {
    /// Starts a bridge and waits until all of its Personas hear their room.
    pub(crate) async fn open(folder: &Path, personas: usize, mind: Mind, mind_version: &str) -> Self {
        let home = FakeHomeserver::new(Flavour::Synapse);
        let server = serve(home.clone()).await;
        let transport = ReqwestTransport::new(Duration::from_secs(60)).expect("an HTTP client");
        let url = format!("http://{server}").parse().expect("an address");
        let setup = home.setup();
        let client = Client::new(Arc::new(transport), url, setup.as_token.as_str().into());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let ear = listener.local_addr().expect("a bound socket");
        let store = store(folder);
        let stop = CancellationToken::new();
        let config = Config { mind_version: mind_version.to_owned(), ..config(personas, mind) };
        let parts = Parts {
            minds: minds(&config),
            config,
            store: store.clone(),
            client,
            hs_token: setup.hs_token.as_str().into(),
            listen: Listen::Socket(listener),
            clock: Clock::Wall,
            stop: stop.clone(),
        };
        let mut running = JoinSet::new();
        running.spawn(bridge::run(parts));
        let mut house = Self { home, store, room: String::new(), ear, stop, running };
        house.settle_in(personas).await;
        house
    }

    async fn settle_in(&mut self, personas: usize) {
        let alias = "#persona_swarm:hs.test";
        until("the room", || self.home.alias(alias).is_some()).await;
        self.room = self.home.alias(alias).expect("it is there");
        self.home.user("alice").join(&self.room);
        let mut ear = self.ear().await;
        let mut number = PROBES;
        loop {
            let before = self.store.counts().waiting;
            ear.put(&format!("probe{number}"), &transaction(&[message(number, &self.room, None)])).await;
            if self.store.counts().waiting - before == personas as u64 {
                return;
            }
            number += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// One more connection to its ear.
    pub(crate) async fn ear(&self) -> Ear {
        Ear::connect(self.ear, &self.home.setup().hs_token).await
    }

    /// Stops the bridge.
    pub(crate) async fn leave(mut self) {
        self.stop.cancel();
        self.running.join_next().await.expect("it runs").expect("no panic").expect("it leaves in peace");
    }
}

/// Opens a store that belongs to the homeserver in memory.
pub(crate) fn store(folder: &Path) -> Store {
    let owner = Owner { server_name: "hs.test".to_owned(), appservice: "persona-bridge".to_owned() };
    let opening = Opening { owner, epoch: Uuid::from_u128(7), now: Clock::Wall.now() };
    let config = store::Config { path: folder.join("store"), min_free: 0 };
    Store::open(&config, opening).expect("the store opens")
}

fn config(personas: usize, mind: Mind) -> Config {
    let persona = |number: usize| PersonaConfig {
        persona: Persona {
            id: PersonaId(format!("p{number}")),
            user: format!("@persona_p{number}:hs.test").parse().expect("a user id"),
            name: format!("Persona{number}"),
        },
        avatar: None,
        doctrine: vec!["Be brief.".to_owned()],
        state: None,
        rooms: vec!["#persona_swarm:hs.test".parse().expect("an alias")],
    };
    let swarm = RegisterName("swarm".to_owned());
    let register = Register {
        voice: "plain".to_owned(),
        heed: Heed { names_address: true, ..Heed::default() },
        ..Register::default()
    };
    Config {
        server_name: "hs.test".parse().expect("a server name"),
        bot: "@persona-bridge:hs.test".parse().expect("a user id"),
        appservice: "persona-bridge".to_owned(),
        user_prefix: "persona_".to_owned(),
        personas: (0..personas).map(persona).collect(),
        registers: BTreeMap::from([(swarm.clone(), register)]),
        rooms: BTreeMap::from([(
            "#persona_swarm:hs.test".parse().expect("an alias"),
            RoomKind::Register(swarm),
        )]),
        addressed_only: BTreeSet::new(),
        default_register: None,
        dm_memories: Default::default(),
        trim_over: usize::MAX,
        permissions: Permissions(BTreeMap::from([("hs.test".to_owned(), Level::Chat)])),
        bots: Bots::default(),
        among: Among::default(),
        settle: Settle { quiet: Duration::ZERO, cap: Duration::ZERO },
        heart: persona_bridge::persona::Heart::default(),
        typing_waits: false,
        reconcile: Duration::from_secs(3600),
        places: Places { most: 8, thinking: 8, resident: None },
        mind,
        mind_version: String::new(),
        budget: persona_bridge::persona::Budget::default(),
        prices: Prices::default(),
        care: Policy::default(),
        archive_keep: Duration::from_secs(3600),
        transcript_keep: Duration::from_secs(7 * 24 * 3600),
        grace: Duration::from_secs(5),
        halt: None,
    }
}
