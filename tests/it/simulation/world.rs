//! A world for the whole bridge on virtual time: a homeserver in memory, scripted minds, the real store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use persona_bridge::bridge::clock::Clock;
use persona_bridge::bridge::{self, BridgeError, Config, Mind, PersonaConfig, RoomKind};
use persona_bridge::conversation::{
    Bots, Heed, Level, Millis, Permissions, Persona, PersonaId, Register, RegisterName,
};
use persona_bridge::homeserver::serve::Listen;
use persona_bridge::mind::scripted::{self, Outcome, Scripted};
use persona_bridge::persona::decide::Settle;
use persona_bridge::persona::memory::DmMemories;
use persona_bridge::persona::session::{Policy, Prices};
use persona_bridge::persona::{Among, Budget, Heart, Places, Usage};
use persona_bridge::store::{self, Opening, Owner, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::stage::Stage;
use crate::fake::homeserver::{FakeHomeserver, Flavour, Setup};

/// The time at which every world begins.
pub(crate) const BEGIN: u64 = 1_800_000_000_000;
/// How long a usual thought takes.
const THINKING: Duration = Duration::from_millis(15);
/// How long a bridge that was told to leave, or refuses to run, may take for it.
const LEAVING: Duration = Duration::from_secs(600);

/// One line as it was fed to a mind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fed {
    /// The Persona's id.
    pub(crate) who: String,
    /// The words.
    pub(crate) words: String,
    /// Virtual time since the begin, in ms.
    pub(crate) at: u64,
}

/// How one thought goes, by who thinks and the words fed.
pub(crate) type Script = Arc<dyn Fn(&str, &str) -> Scripted + Send + Sync>;

/// Everything that was fed, in order; clones share it.
pub(crate) type FedLog = Arc<Mutex<Vec<Fed>>>;

/// Something that a person does at a virtual time after the begin.
struct Deed {
    at: Duration,
    act: Box<dyn FnOnce(&FakeHomeserver) + Send>,
}

/// Everything that outlives a crash.
pub(crate) struct World {
    pub(crate) home: FakeHomeserver,
    pub(crate) config: Config,
    /// Free bytes below which the store takes nothing.
    pub(crate) min_free: u64,
    /// How each thought goes.
    pub(crate) script: Script,
    folder: tempfile::TempDir,
    now: Millis,
    deeds: Vec<Deed>,
    fed: FedLog,
}

/// How a life ended.
enum End<T> {
    /// The scene was over.
    Played(T),
    /// The bridge ended by itself before.
    Ended(Result<(), BridgeError>),
}

/// The stand-in's own replies.
pub(crate) fn usual() -> Scripted {
    Scripted { thinking: THINKING, outcome: Outcome::Usual, usage: Usage::default() }
}

impl World {
    /// A fresh world with the stand-in's own replies; rooms are read back every five minutes.
    pub(crate) fn new(flavour: Flavour) -> Self {
        let folder = temporary_folder();
        let home = FakeHomeserver::new(flavour);
        home.set_latency(Duration::from_millis(2));
        let config = config(&home.setup(), folder.path().join("minds"));
        Self {
            home,
            config,
            min_free: 0,
            script: Arc::new(|_, _| usual()),
            folder,
            now: Millis(BEGIN),
            deeds: Vec::new(),
            fed: FedLog::default(),
        }
    }

    /// The first thoughts end so, in this order over all Personas and lives; all later ones as usual.
    pub(crate) fn stumbles(&mut self, outcomes: impl IntoIterator<Item = Outcome>) {
        let outcomes = Mutex::new(outcomes.into_iter().collect::<std::collections::VecDeque<_>>());
        self.script = Arc::new(move |_, _| match outcomes.lock().expect("not poisoned").pop_front() {
            Some(outcome) => Scripted { outcome, ..usual() },
            None => usual(),
        });
    }

    /// No beat falls: whatever is said to nobody waits for the next that is addressed.
    pub(crate) fn without_beats(&mut self) {
        let never = Duration::from_secs(10 * 365 * 24 * 3600);
        self.config.heart = Heart { beat: never, beat_max: never, ..self.config.heart };
    }

    /// A person does something at a time after the begin.
    pub(crate) fn deed(&mut self, at_ms: u64, act: impl FnOnce(&FakeHomeserver) + Send + 'static) {
        self.deeds.push(Deed { at: Duration::from_millis(at_ms), act: Box::new(act) });
        self.deeds.sort_by_key(|deed| deed.at);
    }

    /// What was fed to a Persona so far.
    pub(crate) fn fed(&self, who: &str) -> Vec<Fed> {
        let fed = self.fed.lock().expect("not poisoned");
        fed.iter().filter(|fed| fed.who == who).cloned().collect()
    }

    /// All words that a Persona was fed.
    pub(crate) fn words(&self, who: &str) -> String {
        self.fed(who).iter().map(|fed| format!("{}\n", fed.words)).collect()
    }

    /// What operators were told in the control room.
    pub(crate) fn told(&self) -> Vec<String> {
        super::stage::told(&self.home)
    }

    /// Virtual time since the begin, in ms.
    pub(crate) fn elapsed(&self) -> u64 {
        self.now.0 - BEGIN
    }

    /// The store while no bridge runs.
    pub(crate) fn store(&self) -> Store {
        let setup = self.home.setup();
        let owner = Owner { server_name: setup.server_name.clone(), appservice: setup.appservice };
        let opening = Opening { owner, epoch: Uuid::from_u128(7), now: self.now };
        let config = store::Config { path: self.folder.path().join("store"), min_free: self.min_free };
        Store::open(&config, opening).expect("the store opens after any crash")
    }

    /// The store is gone, as if an operator had deleted its folder.
    pub(crate) fn delete_store(&self) {
        std::fs::remove_dir_all(self.folder.path().join("store")).expect("the store's folder");
    }

    /// How many records of a Persona's sessions go on, and how many are put aside.
    pub(crate) fn records(&self, who: &str) -> (usize, usize) {
        (self.named(who, ".jsonl"), self.named(who, ".archived"))
    }

    /// How many records of a Persona's sessions are put aside as spoilt.
    pub(crate) fn quarantined(&self, who: &str) -> usize {
        self.named(who, ".quarantined")
    }

    fn named(&self, who: &str, end: &str) -> usize {
        let folder = std::fs::read_dir(self.folder.path().join("minds").join(who)).expect("her folder");
        let names = folder.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(end)).count()
    }

    /// The minds' records of their sessions are gone.
    pub(crate) fn delete_minds(&self) {
        std::fs::remove_dir_all(self.folder.path().join("minds")).expect("the minds' folder");
    }

    /// Time passes while no bridge runs.
    pub(crate) fn away(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        let now = self.now.0;
        self.home.set_clock(move || now);
    }

    /// Runs the bridge for some virtual time and cuts its power.
    pub(crate) fn live(&mut self, life: Duration) {
        self.play(async |_| tokio::time::sleep(life).await);
    }

    /// Runs the bridge for as long as the scene plays and cuts its power.
    pub(crate) fn play<T>(&mut self, scene: impl AsyncFnOnce(&Stage) -> T) -> T {
        match self.life(&CancellationToken::new(), scene, false) {
            (End::Played(outcome), _) => outcome,
            (End::Ended(end), _) => panic!("the bridge ended by itself: {end:?}"),
        }
    }

    /// Runs the bridge for as long as the scene plays and stops it as a signal does: the outcome, and how long it took
    /// to leave.
    pub(crate) fn play_and_leave<T>(&mut self, scene: impl AsyncFnOnce(&Stage) -> T) -> (T, Duration) {
        match self.life(&CancellationToken::new(), scene, true) {
            (End::Played(outcome), left) => (outcome, left.expect("told to stop, it leaves in peace")),
            (End::Ended(end), _) => panic!("the bridge ended by itself: {end:?}"),
        }
    }

    /// Runs a bridge that ends by itself: why.
    pub(crate) fn refuses(&mut self) -> BridgeError {
        match self.life(&CancellationToken::new(), async |_| tokio::time::sleep(LEAVING).await, false) {
            (End::Ended(Err(error)), _) => error,
            (End::Ended(Ok(())) | End::Played(()), _) => panic!("the bridge does not refuse to run"),
        }
    }

    fn life<T>(
        &mut self,
        stop: &CancellationToken,
        scene: impl AsyncFnOnce(&Stage) -> T,
        leave: bool,
    ) -> (End<T>, Option<Duration>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(!self.is_real()).build().expect("a runtime");
        let begun = Duration::from_millis(self.elapsed());
        let mut deeds = std::mem::take(&mut self.deeds);
        let (end, now) = runtime.block_on(async {
            let clock = Clock::runtime(self.now);
            self.home.set_clock(move || clock.now().0);
            let (handover, router) = tokio::sync::oneshot::channel();
            let bridge = bridge::run(self.parts(clock, Listen::InProcess(handover), stop.clone()));
            let pushing = async {
                if let Ok(router) = router.await {
                    self.home.connect(Some(router));
                    self.home.pump().await;
                }
                std::future::pending::<()>().await;
            };
            let stage = Stage::new(self.home.clone(), self.fed.clone(), clock);
            tokio::pin!(bridge, pushing);
            let end = tokio::select! {
                biased;
                ended = &mut bridge => End::Ended(ended),
                () = &mut pushing => unreachable!("it never ends"),
                () = do_deeds(&mut deeds, self.home.clone(), begun) => unreachable!("it never ends"),
                outcome = scene(&stage) => End::Played(outcome),
            };
            let mut left = None;
            if leave && matches!(end, End::Played(_)) {
                let told = clock.now();
                stop.cancel();
                tokio::select! {
                    ended = &mut bridge => left = ended.ok().map(|()| clock.now().since(told)),
                    () = &mut pushing => {}
                    () = tokio::time::sleep(LEAVING) => {}
                }
            }
            ((end, left), clock.now())
        });
        self.now = now;
        self.deeds = deeds;
        self.home.connect(None);
        end
    }

    /// Whether minds are of the real CLI; then time is real, and jumps where the scene says so.
    fn is_real(&self) -> bool {
        matches!(self.config.mind, Mind::Claude(_))
    }

    fn parts(&self, clock: Clock, listen: Listen, stop: CancellationToken) -> bridge::Parts {
        let minds = scripted::Config { state: self.folder.path().join("minds") };
        let (script, fed) = (self.script.clone(), self.fed.clone());
        bridge::Parts {
            config: self.config.clone(),
            store: self.store(),
            client: self.home.client(),
            hs_token: self.home.setup().hs_token.as_str().into(),
            listen,
            minds: if self.is_real() {
                bridge::minds::minds(&self.config)
            } else {
                Box::new(move |persona: &PersonaConfig| {
                    let (script, fed) = (script.clone(), fed.clone());
                    let id = persona.persona.id.clone();
                    let who = id.to_string();
                    let thought = move |words: &str, _: u32| {
                        if words == scripted::WEIGHED {
                            return script(&who, words);
                        }
                        let at = clock.now().0 - BEGIN;
                        let line = Fed { who: who.clone(), words: words.to_owned(), at };
                        fed.lock().expect("not poisoned").push(line);
                        script(&who, words)
                    };
                    let (handle, life) = scripted::mind_with(minds.clone(), id, thought);
                    (handle, Box::pin(life))
                })
            },
            clock,
            stop,
        }
    }
}

/// In memory where that is possible: a life is mostly durable flushes.
fn temporary_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Does what is due, each at its time; then waits for ever.
async fn do_deeds(deeds: &mut Vec<Deed>, home: FakeHomeserver, begun: Duration) {
    let origin = tokio::time::Instant::now();
    while !deeds.is_empty() {
        tokio::time::sleep_until(origin + deeds[0].at.saturating_sub(begun)).await;
        (deeds.remove(0).act)(&home);
    }
    std::future::pending().await
}

fn config(setup: &Setup, state: PathBuf) -> Config {
    let server = &setup.server_name;
    let user = |localpart: &str| format!("@{localpart}:{server}").parse().expect("a user id");
    let alias = |name: &str| format!("#persona_{name}:{server}").parse().expect("an alias");
    let persona = |id: &str, name: &str| PersonaConfig {
        persona: Persona {
            id: PersonaId(id.into()),
            user: user(&format!("persona_{id}")),
            name: name.into(),
        },
        avatar: None,
        doctrine: vec!["Be brief.".into()],
        state: None,
        rooms: vec![alias("swarm")],
    };
    let swarm = RegisterName("swarm".into());
    let register = Register {
        voice: "plain".into(),
        heed: Heed { names_address: true, ..Heed::default() },
        ..Register::default()
    };
    Config {
        server_name: server.parse().expect("a server name"),
        bot: user(&setup.bot),
        appservice: setup.appservice.clone(),
        user_prefix: setup.user_prefix.clone(),
        personas: vec![persona("eir", "Eir"), persona("brage", "Brage")],
        registers: BTreeMap::from([(swarm.clone(), register)]),
        rooms: BTreeMap::from([(alias("swarm"), RoomKind::Register(swarm))]),
        addressed_only: BTreeSet::new(),
        default_register: None,
        dm_memories: DmMemories::default(),
        trim_over: 8 * 1024,
        permissions: Permissions(BTreeMap::from([(server.clone(), Level::Chat)])),
        bots: Bots::default(),
        among: Among::default(),
        settle: Settle { quiet: Duration::from_millis(20), cap: Duration::from_millis(60) },
        heart: Heart::default(),
        typing_waits: false,
        reconcile: Duration::from_secs(300),
        places: Places { most: 8, thinking: 8, resident: None },
        mind: Mind::Scripted(scripted::Config { state }),
        mind_version: "scripted".into(),
        budget: Budget::default(),
        prices: Prices::default(),
        care: Policy::default(),
        archive_keep: Duration::from_secs(30 * 24 * 3600),
        transcript_keep: Duration::from_secs(7 * 24 * 3600),
        grace: Duration::from_millis(200),
        halt: None,
    }
}
