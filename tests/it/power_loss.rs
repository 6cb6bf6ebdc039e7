//! The power fails while the store writes: what it acknowledged must be on the disk.
//!
//! A writer of its own process appends deliveries on a disk that keeps nothing but what was synced (see `shim.c`) and is
//! killed at a random moment. The disk must then open and hold every delivery that was acknowledged.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use persona_bridge::conversation::{Delivery, DeliveryKind, Lane, Millis, PersonaId, RegisterName};
use persona_bridge::store::{Arrival, Config, Durability, Effect, Opening, Owner, Store, StoreError};
use ruma::OwnedEventId;
use tempfile::TempDir;
use uuid::Uuid;

use crate::tools::{scale, variable};

#[test]
fn a_power_loss_takes_nothing_that_was_acknowledged() {
    for size in [1_000, 8_000, 60_000] {
        for round in 0..rounds() {
            let plan = Plan { size, writers: 1 + 7 * (round % 2), durability: Durability::Synced };
            let disk = Disk::new();
            let mut acknowledged = disk.lose_power(plan, moment(size, round));
            disk.power_on();
            acknowledged.extend(disk.lose_power(plan, moment(size, round + 100)));
            let kept = disk.kept(&acknowledged, size).unwrap();
            assert_eq!(kept, acknowledged.len(), "of {size} bytes each, round {round}");
        }
    }
}

#[test]
fn with_sleds_own_flush_a_power_loss_takes_records() {
    let disk = Disk::new();
    let plan = Plan { size: 1_000, writers: 1, durability: Durability::FlushOnly };
    let acknowledged = disk.lose_power(plan, 50);
    let kept = disk.kept(&acknowledged, plan.size).unwrap_or(0);
    assert!(kept < acknowledged.len(), "this test cannot tell a durable flush from another");
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    size: usize,
    writers: usize,
    durability: Durability,
}

fn rounds() -> usize {
    if scale() >= 10 { 15 } else { 3 }
}

/// After how many acknowledged records the power fails: any number, but the same in every run.
fn moment(size: usize, round: usize) -> usize {
    let most = 300_000 / size + 100;
    1 + (round + 1) * 2_654_435_761 % 1_000_003 % most
}

/// A folder as the writer sees it, and the disk under it.
struct Disk {
    folder: TempDir,
    shim: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["seen", "disk"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let shim = folder.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/power_loss/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&shim).arg(source).arg("-ldl");
        let compiled = compiler.status().expect("cc (of build-essential) compiles the shim");
        assert!(compiled.success(), "the shim does not compile");
        Self { folder, shim }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets a writer run until it acknowledged so many records; answers all that it acknowledged before it was dead.
    fn lose_power(&self, plan: Plan, after: usize) -> Vec<u64> {
        let mut writer = self.writer(plan);
        let mut said = BufReader::new(writer.stdout.take().unwrap());
        let mut acknowledged = Vec::new();
        let mut line = String::new();
        while acknowledged.len() < after {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "the writer ended by itself: {line}");
            acknowledged.extend(number(&line));
        }
        writer.kill().unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        acknowledged.extend(rest.split_inclusive('\n').filter_map(number));
        writer.wait().unwrap();
        acknowledged
    }

    /// The writer of the next time sees what the disk holds, and begins again with its first record.
    fn power_on(&self) {
        std::fs::remove_dir_all(self.path("seen")).unwrap();
        copy(&self.path("disk"), &self.path("seen"));
    }

    fn writer(&self, plan: Plan) -> Child {
        let Plan { size, writers, durability } = plan;
        let mut writer = Command::new(std::env::current_exe().unwrap());
        writer.args(["--exact", "power_loss::writer", "--ignored", "--nocapture", "--test-threads=1"]);
        writer.env("LD_PRELOAD", &self.shim);
        writer.env("PB_DISK_ROOT", self.path("seen")).env("PB_DISK_SHADOW", self.path("disk"));
        writer.env("PB_WRITER", format!("{size} {writers} {durability:?}"));
        writer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// How many of the records the disk still holds, each as it was written.
    fn kept(&self, acknowledged: &[u64], size: usize) -> Result<usize, StoreError> {
        let store = open(&self.path("disk"), Durability::Synced)?;
        let mut kept = 0;
        for number in acknowledged {
            let wanted = delivery(*number, size);
            let Some(seq) = store.number_of(&persona(), &wanted.event)? else { continue };
            let wanted = Delivery { seq, ..wanted };
            assert_eq!(store.deliveries(&persona(), &[seq])?, [wanted]);
            kept += 1;
        }
        Ok(kept)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() { copy(&from, &to) } else { std::fs::copy(&from, &to).map(drop).unwrap() }
    }
}

/// The number in a whole line of the writer's; the first stands behind words of the test harness.
fn number(line: &str) -> Option<u64> {
    line.strip_suffix('\n')?.rsplit_once("acknowledged ")?.1.parse().ok()
}

fn open(folder: &Path, durability: Durability) -> Result<Store, StoreError> {
    let config = Config { path: folder.join("store"), min_free: 0 };
    let owner = Owner { server_name: "x.org".to_owned(), appservice: "bridge".to_owned() };
    let opening = Opening { owner, epoch: Uuid::nil(), now: Millis(1) };
    Store::open_with(&config, opening, durability)
}

fn persona() -> PersonaId {
    PersonaId("eir".to_owned())
}

fn event(number: u64) -> OwnedEventId {
    format!("$event{number}").try_into().unwrap()
}

fn delivery(number: u64, size: usize) -> Delivery {
    Delivery {
        seq: 0,
        lane: Lane::Register(RegisterName("public".to_owned())),
        room: "!swarm:x.org".try_into().unwrap(),
        sender: "@alice:x.org".try_into().unwrap(),
        sender_name: None,
        event: event(number),
        kind: DeliveryKind::Text,
        text: number.to_string().chars().cycle().take(size).collect(),
        thread: None,
        reply_to: None,
        addressed: true,
        wakes: true,
        hops: None,
        again: None,
        late: false,
        said: Millis(number),
        heard: Millis(number),
    }
}

#[test]
#[ignore = "it is the process that the tests above kill"]
fn writer() {
    let plan = variable("PB_WRITER").expect("only the tests of this file start it");
    let [size, writers, durability] = plan.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (size, writers) = (size.parse().unwrap(), writers.parse::<u64>().unwrap());
    let durability = if durability == "Synced" { Durability::Synced } else { Durability::FlushOnly };
    let store = open(Path::new(&variable("PB_DISK_ROOT").unwrap()), durability).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let appending = (0..writers).map(|first| append(&store, first, writers, size));
    runtime.block_on(futures_util::future::join_all(appending));
}

async fn append(store: &Store, first: u64, step: u64, size: usize) {
    for number in (first..).step_by(usize::try_from(step).unwrap()) {
        let effects = vec![Effect::Deliver(persona(), delivery(number, size))];
        let arrivals = vec![Arrival { event: event(number), effects }];
        store.accept(arrivals, Vec::new(), None, Millis(number)).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {number}").unwrap();
        out.flush().unwrap();
    }
}
