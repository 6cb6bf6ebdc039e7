//! What these tests stand on: numbered words, the account of a room, a mind on the loopback API, dice.

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use persona_bridge::demo::homeserver::Kind;
use ruma::{OwnedRoomId, RoomId};
use serde_json::{Value, json};

use crate::bridge::{Bridge, Setup, alias, persona};
use crate::fake::messages_api::{Answer, MessagesApi, Request};
use crate::servers::{self, Server};
use crate::tools::{claude_program, now};
use crate::user::User;

/// How long all answers may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// The most says of one reply.
const SAYS: usize = 16;

/// The numbers of last questions, each used once.
static LAST: AtomicU32 = AtomicU32::new(9000);

/// A numbered word.
pub(super) fn word(number: u32) -> String {
    format!("w{number:04}")
}

/// The numbered words of a text, in order.
pub(super) fn words(text: &str) -> Vec<String> {
    let numbered = |part: &&str| {
        part.strip_prefix('w').is_some_and(|n| n.len() == 4 && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.split(|c: char| !c.is_alphanumeric()).filter(numbered).map(str::to_owned).collect()
}

/// Alice and one Persona on the real CLI, in a room of a Synapse.
pub(super) struct Meeting {
    pub(super) mind: Mind,
    pub(super) bridge: Bridge,
    pub(super) alice: User,
    pub(super) room: OwnedRoomId,
    pub(super) eir: String,
    _server: Server,
}

impl Meeting {
    /// None (said aloud) where Synapse or the CLI cannot be had.
    pub(super) async fn begin(test: &str) -> Option<Self> {
        Self::begin_with(test, |_| {}).await
    }

    /// Like [`Meeting::begin`], with another set-up.
    pub(super) async fn begin_with(test: &str, change: impl FnOnce(&mut Setup)) -> Option<Self> {
        let server = servers::server(Kind::Synapse, test).await?;
        let mind = Mind::start().await;
        let mut setup = mind.setup(&server)?;
        change(&mut setup);
        let bridge = Bridge::spawn(&server, &setup).await;
        let alice = User::register(&server, "alice").await;
        let room = alice.join(&alias("swarm")).await;
        Some(Self { mind, bridge, alice, room, eir: persona("eir"), _server: server })
    }

    /// Asks about a word and waits until so many words are answered.
    pub(super) async fn ask(&mut self, number: u32, answered: usize) {
        self.alice.say_to(&self.room, &self.eir, &format!("and {}?", word(number))).await;
        wait_for_answers(&mut self.alice, &self.room, &self.eir, answered).await;
    }
}

/// The words said in a room by others, and those that `persona` has answered, both in the room's order.
pub(super) async fn account(user: &User, room: &RoomId, persona: &str) -> (Vec<String>, Vec<String>) {
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for event in user.timeline(room).await {
        if event.kind == "m.room.message" {
            let said = if event.sender == persona { &mut answered } else { &mut asked };
            said.extend(words(event.body()));
        }
    }
    (asked, answered)
}

/// Waits until everything said in a room is answered, and compares: each message has exactly one answer, in order.
pub(super) async fn all_answered_once(user: &mut User, room: &RoomId, persona: &str) -> Vec<String> {
    let (asked, answered) = settled(user, room, persona).await;
    assert_eq!(answered, asked, "in {room}");
    asked
}

/// Like [`all_answered_once`], where what nobody could know to be missing may be heard behind what came meanwhile.
pub(super) async fn each_answered_once(user: &mut User, room: &RoomId, persona: &str) -> usize {
    let (mut asked, mut answered) = settled(user, room, persona).await;
    asked.sort();
    answered.sort();
    assert_eq!(answered, asked, "in {room}");
    asked.len()
}

/// What was said in a room and what of it was answered, once everything is and one question more, so that whatever is late
/// has come.
async fn settled(user: &mut User, room: &RoomId, persona: &str) -> (Vec<String>, Vec<String>) {
    let (asked, _) = account(user, room, persona).await;
    wait_for_answers(user, room, persona, asked.len()).await;
    user.say_to(room, persona, &format!("and {}?", word(LAST.fetch_add(1, Ordering::Relaxed)))).await;
    wait_for_answers(user, room, persona, asked.len() + 1).await;
    account(user, room, persona).await
}

/// Waits until so many words are answered in a room.
///
/// The room is read back each time, since a sync skips what came meanwhile where there is much of it.
pub(super) async fn wait_for_answers(user: &mut User, room: &RoomId, persona: &str, count: usize) {
    let all = async {
        while account(user, room, persona).await.1.len() < count {
            user.sync().await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, all).await.is_ok();
    assert!(done, "not {count} answers: {:?}", account(user, room, persona).await);
}

/// The numbers that a test draws; its seed is said when it fails.
pub(super) struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }

    /// A time of at most so many milliseconds, to the microsecond.
    pub(super) fn time(&mut self, ms: u64) -> Duration {
        Duration::from_micros(self.below(ms * 1000))
    }
}

impl Drop for Dice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::tools::aloud(&format!("the dice had the seed {}", self.seed));
        }
    }
}

/// When a request was made, in unix ms, and the words of the mail in it.
pub(super) type Asked = (u64, Vec<String>);

/// A real claude's API that answers each numbered word of mail, in order, a say each as long as a reply has room.
pub(super) struct Mind {
    pub(super) api: MessagesApi,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Mind {
    pub(super) async fn start() -> Self {
        let api = MessagesApi::start().await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let book = asked.clone();
        api.rule(move |request| {
            let words = mail(request);
            book.lock().unwrap().push((now(), words.clone()));
            let says = words.chunks(words.len().div_ceil(SAYS).max(1));
            let says: Vec<Value> =
                says.map(|words| json!({"text": format!("Yes, {}.", words.join(" "))})).collect();
            Answer::Typed(json!({"say": says, "react": []}))
        });
        Self { api, asked }
    }

    /// The words of each request so far, with its time in unix ms.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests were made beyond one for each batch.
    pub(super) fn repeats(&self) -> usize {
        let asked = self.asked();
        asked.len() - asked.iter().map(|(_, words)| words).collect::<BTreeSet<_>>().len()
    }

    /// A set-up with one Persona on the real CLI; none (said aloud) where the CLI cannot be had.
    pub(super) fn setup(&self, server: &Server) -> Option<Setup> {
        let program = claude_program()?;
        let key = server.folder("bridge").join("key");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(key).unwrap();
        std::io::Write::write_all(&mut file, b"sk-of-a-test").unwrap();
        let mind = format!(
            "[mind]\nkind = \"claude\"\n[mind.claude]\nprogram = {:?}\nmodel = \"claude-sonnet-4-5\"\n\
             base_url = \"{}\"\ncredential = {{ file = \"key\" }}\nstate = \"minds\"\n",
            program,
            self.api.url(),
        );
        Some(Setup { mind, settle: "50ms".to_owned(), ..one() })
    }
}

/// The words of the newest mail of a request: not those of earlier lines that are shown for context.
pub(super) fn mail(request: &Request) -> Vec<String> {
    // What a retry asks for stands before it.
    let text = if request.words() == "(retry)" { request.unanswered() } else { request.words() };
    text.lines().filter(|line| !line.starts_with("earlier ")).flat_map(words).collect()
}

/// A set-up with one Persona and a short settling.
pub(super) fn one() -> Setup {
    Setup { personas: vec!["eir".to_owned()], settle: "50ms".to_owned(), ..Setup::default() }
}

/// The command lines of living processes that name something below a folder.
pub(super) fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let lines = ids.filter_map(|path| std::fs::read_to_string(path.join("cmdline")).ok());
    lines.filter(|line| line.contains(folder)).map(|line| line.replace('\0', " ")).collect()
}
