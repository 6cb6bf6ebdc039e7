//! The shell: carries out what the pure core decides. The only user of clocks, random ids and spawned tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ruma::{OwnedRoomAliasId, OwnedRoomId, OwnedServerName, OwnedUserId};

use crate::conversation::{Bots, Lane, Permissions, Persona, Register, RegisterName};
use crate::mind;
use crate::persona::decide::Settle;
use crate::persona::memory::DmMemories;
use crate::persona::session::{Policy, Prices};
use crate::persona::{Among, Budget, Heart, Places, State};

/// What the bridge runs with, gathered by [`crate::config`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The homeserver's name.
    pub server_name: OwnedServerName,
    /// The bot.
    pub bot: OwnedUserId,
    /// The appservice's id, for pings and as the store's owner.
    pub appservice: String,
    /// The prefix of Personas' localparts and of our aliases.
    pub user_prefix: String,
    /// The Personas in order.
    pub personas: Vec<PersonaConfig>,
    /// The registers in use, the one of direct chats among them.
    pub registers: BTreeMap<RegisterName, Register>,
    /// Configured rooms, by alias.
    pub rooms: BTreeMap<OwnedRoomAliasId, RoomKind>,
    /// Those of them in which only what is addressed becomes mail.
    pub addressed_only: BTreeSet<OwnedRoomAliasId>,
    /// The register of rooms that are neither configured nor direct.
    pub default_register: Option<RegisterName>,
    /// Who may do what.
    pub permissions: Permissions,
    /// Users who are machines of other people.
    pub bots: Bots,
    /// How far Personas go on among themselves.
    pub among: Among,
    /// Where memories of direct rooms may be recalled.
    pub dm_memories: DmMemories,
    /// The longest message that is shown in whole, in bytes.
    pub trim_over: usize,
    /// When mail that wakes her is due.
    pub settle: Settle,
    /// When the rest is heard.
    pub heart: Heart,
    /// Whether it waits for senders of it who go on typing.
    pub typing_waits: bool,
    /// How often every room is read back.
    pub reconcile: Duration,
    /// How many minds may live, and how much memory they may take.
    pub places: Places,
    /// Which mind.
    pub mind: Mind,
    /// The version of the mind's program, part of each session's fingerprint.
    pub mind_version: String,
    /// What may be spent.
    pub budget: Budget,
    /// What models cost.
    pub prices: Prices,
    /// What is to become of sessions.
    pub care: Policy,
    /// For how long the files of earlier sessions are kept.
    pub archive_keep: Duration,
    /// For how long it is kept what Personas heard and said last; nothing is where that is no time.
    pub transcript_keep: Duration,
    /// How long the first signal waits for a turn in hand.
    pub grace: Duration,
    /// Where a build for tests kills itself.
    pub halt: Option<Halt>,
}

/// Which mind the Personas have.
#[derive(Clone, Debug)]
pub enum Mind {
    /// The claude CLI.
    Claude(Box<mind::claude::Config>),
    /// The stand-in.
    Scripted(mind::scripted::Config),
}

/// A Persona as configured.
#[derive(Clone, Debug)]
pub struct PersonaConfig {
    /// As others see her.
    pub persona: Persona,
    /// Her avatar, an `mxc://` URI.
    pub avatar: Option<String>,
    /// Doctrine files' text in order (at most 96 KiB together).
    pub doctrine: Vec<String>,
    /// Her state at her first start; afterwards the store has it.
    pub state: Option<State>,
    /// Aliases of her rooms.
    pub rooms: Vec<OwnedRoomAliasId>,
}

/// How a configured room is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomKind {
    /// In the lane of a register.
    Register(RegisterName),
    /// As a direct chat: a lane of its own, and every message addresses her.
    Direct,
}

impl RoomKind {
    /// The lane of a room of this kind.
    pub(crate) fn lane(&self, room: &OwnedRoomId) -> Lane {
        match self {
            Self::Register(register) => Lane::Register(register.clone()),
            Self::Direct => Lane::Direct(room.clone()),
        }
    }
}

mod barred;
mod books;
mod calls;
pub mod campaigns;
pub mod clock;
mod commands;
mod context;
mod deliver;
mod describe;
mod desk;
mod directory;
mod encryption;
mod flights;
mod guard;
mod halt;
mod hearing;
mod heart;
mod identities;
pub mod inspect;
mod invites;
mod live;
mod memories;
pub mod minds;
mod news;
pub mod orders;
mod presence;
mod probe;
mod readiness;
mod receive;
mod reconcile;
pub mod reminders;
mod rooms;
mod run;
mod seats;
mod session;
mod shared;
pub mod signals;
mod silence;
mod slots;
mod speech;
mod spend;
mod start_line;
pub mod states;
mod steering;
mod tally;
mod threads;
mod translate;
mod turn;
mod typing;
mod upgrade;
mod watched;

pub use halt::Halt;
pub use run::{MindMaker, Parts, run};

/// Why the bridge ended.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// The homeserver refuses the appservice's token.
    #[error(
        "the homeserver refuses the appservice's token ({error}): it must run with the registration named in [appservice] \
         registration; copy that file, restart the homeserver, and run `persona-bridge doctor`"
    )]
    TokenRefused {
        /// What it said.
        error: crate::homeserver::client::CallError,
    },
    /// The homeserver refuses something that the service cannot do without.
    #[error("{error}: {remedy}")]
    Homeserver {
        /// What it said.
        error: crate::homeserver::client::CallError,
        /// What to do.
        remedy: String,
    },
    /// The store belongs to another homeserver database.
    #[error(
        "the control room {room} of this store is gone: the store belongs to another homeserver database. Set [store] path to \
         a new folder, or bring the homeserver's database back"
    )]
    ControlRoomGone {
        /// The room.
        room: OwnedRoomId,
    },
    /// The ear's socket failed.
    #[error("the ear at [appservice] listen failed: {0}")]
    Ear(std::io::Error),
    /// A task ended that must not.
    #[error("the task {name} ended unexpectedly")]
    Task {
        /// Which.
        name: String,
    },
}
