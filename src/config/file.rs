//! The file as it is written: every key, optional here; what is required is said where it is gathered.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};

use super::units::{Rate, Size, Span};

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// `[homeserver]`
    pub homeserver: Homeserver,
    /// `[appservice]`
    pub appservice: Appservice,
    /// `[store]`
    pub store: Store,
    /// `[mind]`
    pub mind: Mind,
    /// `[budget]`
    pub budget: Budget,
    /// `[session]`
    pub session: Session,
    /// `[talk]`
    pub talk: Talk,
    /// `[heart]`
    pub heart: Heart,
    /// `[memory]`
    pub memory: Memory,
    /// `[registers.NAME]`
    pub registers: BTreeMap<String, Register>,
    /// `[[rooms]]`
    pub rooms: Vec<Room>,
    /// `[[personas]]`
    pub personas: Vec<Persona>,
    /// `[permissions]`
    pub permissions: BTreeMap<String, Permission>,
}

/// `[homeserver]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Homeserver {
    /// Where its client API is.
    pub url: Option<String>,
    /// Its name, the part of user ids after the colon.
    pub server_name: Option<String>,
    /// How often every room is read back.
    pub reconcile: Option<Span>,
}

/// `[appservice]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Appservice {
    /// The address to bind.
    pub listen: Option<String>,
    /// The url the homeserver calls.
    pub url: Option<String>,
    /// The registration file.
    pub registration: Option<PathBuf>,
    /// The appservice's id, when generating.
    pub id: Option<String>,
    /// The bot's localpart, when generating.
    pub bot: Option<String>,
    /// The prefix of Personas' localparts and of aliases.
    pub user_prefix: Option<String>,
}

/// `[store]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// Its folder.
    pub path: Option<PathBuf>,
    /// Acceptance stops below this much free disk.
    pub min_free: Option<Size>,
}

/// `[mind]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mind {
    /// Which mind.
    pub kind: Option<MindKind>,
    /// Live minds at most.
    pub max_live: Option<u32>,
    /// Of which so many think at once at most.
    pub max_thinking: Option<u32>,
    /// Resident memory of all of them at most.
    pub max_rss: Option<Size>,
    /// Above this resident memory a mind is closed after its turn, or while it is idle.
    pub recycle_rss: Option<Size>,
    /// `[mind.claude]`
    pub claude: Claude,
    /// `[mind.scripted]`
    pub scripted: Scripted,
}

/// Which mind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MindKind {
    /// The claude CLI.
    #[default]
    Claude,
    /// The stand-in.
    Scripted,
}

/// `[mind.claude]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claude {
    /// The binary, a path or a name on PATH.
    pub program: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The effort.
    pub effort: Option<String>,
    /// The folder of the Personas' sessions.
    pub state: Option<PathBuf>,
    /// Another API address.
    pub base_url: Option<String>,
    /// Where the credential is.
    pub credential: Option<Credential>,
    /// What it is.
    pub credential_kind: Option<CredentialKind>,
    /// The prompt cache's time to live.
    pub ttl: Option<Ttl>,
    /// The longest silence of a busy child.
    pub silence: Option<Span>,
}

/// Where a secret is: one of the two.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credential {
    /// The variable that holds it.
    pub env: Option<String>,
    /// The file that holds it, mode 0600.
    pub file: Option<PathBuf>,
}

/// What the credential is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// An API key.
    #[default]
    ApiKey,
    /// An OAuth token.
    OauthToken,
}

/// The prompt cache's time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Ttl {
    /// What the credential gives.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    OneHour,
}

/// `[mind.scripted]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scripted {
    /// The folder of its sessions.
    pub state: Option<PathBuf>,
}

/// `[budget]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// What all Personas may spend a day, in USD.
    pub per_day: Option<f64>,
    /// What each Persona may spend a day, in USD.
    pub per_persona_per_day: Option<f64>,
    /// What the attempts at one turn may spend, in USD.
    pub per_turn: Option<f64>,
    /// Whether people are told in their direct rooms that their mail waits.
    pub courtesy: Option<bool>,
}

/// `[session]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// When a change of what sessions are begun with takes effect.
    pub apply: Option<Apply>,
    /// Whether an expiring session is pinged.
    pub keep_warm: Option<KeepWarm>,
    /// Whether she notes what has become of open tasks before a session ends.
    pub flush: Option<Flush>,
    /// How much of the context window may be full.
    pub watermark: Option<f64>,
    /// The operator's own price file.
    pub prices: Option<PathBuf>,
    /// For how long the files of earlier sessions are kept.
    pub archive_keep: Option<Span>,
    /// For how long it is kept what was heard and said last.
    pub transcript_keep: Option<Span>,
    /// What becomes of a session that has heard what was taken back since.
    pub on_redaction: Option<OnRedaction>,
}

/// What becomes of a session that has heard what was taken back since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRedaction {
    /// The next one begins.
    #[default]
    Refresh,
    /// It goes on.
    Note,
}

/// Whether an expiring session is pinged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepWarm {
    /// Never.
    #[default]
    Off,
    /// Where her own gaps say that it pays.
    Auto,
}

/// Whether she notes what has become of open tasks before a session ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    /// Where that may not be remembered.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// When a change takes effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Apply {
    /// When a session ends anyway.
    #[default]
    Cheap,
    /// At the next turn boundary.
    Now,
}

/// `[talk]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Talk {
    /// Quiet time before addressed mail is due.
    pub settle: Option<Span>,
    /// The longest wait.
    pub settle_max: Option<Span>,
    /// The register of rooms that are neither configured nor direct.
    pub default_register: Option<String>,
    /// Whether mail waits for senders of it who go on typing.
    pub typing_waits: Option<bool>,
    /// The longest message that is shown in whole.
    pub trim_over: Option<Size>,
    /// From how many hops on a Persona's line wakes nobody.
    pub max_hops: Option<u32>,
    /// How many mutual turns two Personas may have in a room.
    pub pair_limit: Option<Rate>,
    /// How many events of Personas a room bears.
    pub room_limit: Option<Rate>,
}

/// `[heart]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Heart {
    /// The time between two beats while nobody votes.
    pub beat: Option<Span>,
    /// The shortest that votes come to.
    pub beat_min: Option<Span>,
    /// The longest that votes come to.
    pub beat_max: Option<Span>,
    /// How long after the end of her last turn she is not picked.
    pub cooldown: Option<Span>,
    /// Whether somebody is picked where no mail waits.
    pub wake_on_silence: Option<bool>,
    /// How often that is on one day at most.
    pub wakes_per_day: Option<u32>,
}

/// `[memory]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Where memories of direct rooms may be recalled.
    pub dm_memories: Option<DmMemories>,
}

/// Where memories of direct rooms may be recalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DmMemories {
    /// In that direct room alone.
    #[default]
    DmOnly,
    /// Also elsewhere, while everybody who told it has mail at hand there.
    SamePerson,
    /// Everywhere.
    Everywhere,
}

/// `[registers.NAME]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Register {
    /// How it is spoken in.
    pub voice: Option<String>,
    /// How long what is said there should be.
    pub length: Option<String>,
    /// Which messages wake.
    pub wakes: Option<Wakes>,
    /// Whether a bare name addresses.
    pub names_address: Option<bool>,
    /// Whether a mention of the whole room addresses.
    pub room_mention: Option<bool>,
    /// Whether Personas wake each other there.
    pub personas_wake: Option<bool>,
    /// Where answers stand.
    pub reply: Option<ReplyIn>,
    /// The registers whose mail lets her speak there, too.
    pub speak_from: Option<Vec<String>>,
    /// Whether direct chats may be among them.
    pub allow_from_dm: Option<bool>,
}

/// Where answers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyIn {
    /// Where it was asked.
    AsAsked,
    /// In a thread.
    Thread,
    /// In the timeline.
    Timeline,
}

/// Which messages of people wake a Persona.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wakes {
    /// Those that are addressed to her.
    Addressed,
    /// All but those that are addressed to others alone.
    Anyone,
    /// None.
    Nobody,
}

/// `[[rooms]]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Room {
    /// The alias.
    pub alias: Option<String>,
    /// Its register.
    pub register: Option<String>,
    /// The id of the Persona for whom it is a direct chat.
    pub direct: Option<String>,
    /// What of its talk becomes mail.
    pub listen: Option<Listen>,
}

/// What of a room's talk becomes mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listen {
    /// All of it.
    #[default]
    All,
    /// What is addressed to a Persona.
    Addressed,
}

/// `[[personas]]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Persona {
    /// Her id.
    pub id: Option<String>,
    /// Her name.
    pub name: Option<String>,
    /// Her avatar, an `mxc://` URI.
    pub avatar: Option<String>,
    /// Doctrine files.
    pub doctrine: Vec<PathBuf>,
    /// Her state file.
    pub state: Option<PathBuf>,
    /// Aliases of her rooms.
    pub rooms: Vec<String>,
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Not heard.
    Block,
    /// Heard.
    Chat,
    /// May also steer.
    Admin,
}

/// A value of `[permissions]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// What somebody may do.
    Level(Level),
    /// Of `bots`: patterns of user ids.
    Patterns(Vec<String>),
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Permission;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a level, or the patterns of `bots`")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Permission, E> {
                Level::deserialize(text.into_deserializer()).map(Permission::Level)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Permission, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Permission::Patterns)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
