//! Start, watch, stop: one JoinSet, every task named, an unexpected end stops the service.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::deliver::Deliver;
use super::live::Live;
use super::shared::{Ends, Shared};
use super::{BridgeError, Config, Mind, PersonaConfig};
use super::{
    desk, heart, identities, invites, orders, presence, probe, receive, reconcile, rooms, silence, states,
    tally,
};
use crate::conversation::Millis;
use crate::homeserver::appservice::{Ear, Ledger, Received, Stats};
use crate::homeserver::client::Client;
use crate::homeserver::serve::{Listen, serve};
use crate::mind::MindHandle;
use crate::mind::claude::prune;
use crate::store::{Store, entries_to_json};

/// How long the outbox is given to drain at the end.
const DRAIN: Duration = Duration::from_secs(5);
/// For how long the ledger is kept, and who of us sent which event, in days.
const LEDGER_DAYS: u64 = 400;
/// How long an event id is remembered.
const REMEMBER: Duration = Duration::from_secs(45 * 24 * 3600);
/// How often old event ids are forgotten.
const FORGET: Duration = Duration::from_secs(6 * 3600);

/// Makes a Persona's mind: the handle, and the future that is its life.
pub type MindMaker = Box<dyn FnMut(&PersonaConfig) -> (MindHandle, BoxFuture<'static, ()>) + Send>;

/// What the bridge is put together from.
pub struct Parts {
    /// The config.
    pub config: Config,
    /// The opened store.
    pub store: Store,
    /// The homeserver's client.
    pub client: Client,
    /// The homeserver's token at our ear.
    pub hs_token: Arc<str>,
    /// Where the ear listens.
    pub listen: Listen,
    /// The minds.
    pub minds: MindMaker,
    /// The clock.
    pub clock: Clock,
    /// The first signal: stop asking, finish, leave.
    pub stop: CancellationToken,
}

/// A task's name and how it ended.
type Done = (String, Result<(), BridgeError>);
type Tasks = JoinSet<Done>;

/// Runs the bridge until `stop` and the leaving after it.
///
/// # Errors
/// Why it cannot run, or what broke.
pub async fn run(parts: Parts) -> Result<(), BridgeError> {
    let Parts { config, store, client, hs_token, listen, mut minds, clock, stop } = parts;
    let personas = config.personas.clone();
    let (shared, ends) = Shared::new(config, store, client, clock, stop)?;
    let mut tasks = Tasks::new();
    let Ends { pokes, invites: invited, read_back, signals } = ends;
    listen_first(&shared, &mut tasks, listen, hs_token, read_back);

    let started = tokio::select! {
        started = start(&shared) => started?,
        ended = tasks.join_next() => return Err(unexpected(ended)),
    };
    let mut lives = JoinSet::new();
    if started {
        spawn(&mut tasks, "outbox", Deliver::new(shared.clone()).run());
        spawn(&mut tasks, "presence", presence::run(shared.clone(), signals));
        spawn(&mut tasks, "invites", invites::run(shared.clone(), invited));
        spawn(&mut tasks, "reconcile", reconcile::run(shared.clone(), pokes));
        spawn(&mut tasks, "late joins", rooms::join_late(shared.clone()));
        spawn(&mut tasks, "desk", desk::run(shared.clone()));
        spawn(&mut tasks, "silence", silence::run(shared.clone()));
        spawn(&mut tasks, "forget", forget(shared.clone()));
        spawn(&mut tasks, "heart", heart::run(shared.clone()));
        spawn(&mut tasks, "tally", tally::run(shared.clone()));
        for persona in personas {
            let (handle, life) = minds(&persona);
            let name = format!("mind of {}", persona.persona.id);
            let live = Live::new(shared.clone(), persona, handle)?;
            lives.spawn(async move { live.run().await });
            spawn(&mut tasks, &name, lives_until_drained(shared.clone(), life));
        }
        let (handle, life) = minds(&probe::account(&shared.config));
        spawn(&mut tasks, "probe", probe::run(shared.clone(), handle));
        spawn(&mut tasks, "mind of the account", lives_until_drained(shared.clone(), life));
        shared.poke(super::shared::Poke::All);
        shared.readiness.clear("start");
        tracing::info!("ready");
    }
    let ended = live(&shared, &mut tasks, &mut lives).await;
    leave(&shared, &mut tasks, &mut lives, ended).await
}

/// A mind ends when its handle is dropped; never before that.
async fn lives_until_drained(shared: Arc<Shared>, life: BoxFuture<'static, ()>) -> Result<(), BridgeError> {
    life.await;
    shared.drained.cancelled().await;
    Ok(())
}

/// The ear listens and accepts durably before anything else.
fn listen_first(
    shared: &Arc<Shared>,
    tasks: &mut Tasks,
    listen: Listen,
    hs_token: Arc<str>,
    read_back: mpsc::Receiver<super::shared::ReadBack>,
) {
    let (transactions, received) = mpsc::channel::<Received>(64);
    let (pings, mut pinged) = mpsc::channel(8);
    let personas = shared.config.personas.iter().map(|p| p.persona.user.clone());
    let ear = Ear {
        hs_token,
        transactions,
        users: personas.chain([shared.config.bot.clone()]).collect(),
        ready: shared.readiness.subscribe(),
        stats: stats(shared),
        ledger: ledger(shared),
        orders: orders::taken_by(shared),
        pings,
    };
    spawn(tasks, "receive", receive::run(shared.clone(), received, read_back));
    let stop = shared.drained.clone();
    spawn(tasks, "ear", async move { serve(listen, ear, stop).await.map_err(BridgeError::Ear) });
    let stop = shared.drained.clone();
    spawn(tasks, "pings", async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(txn) = pinged.recv() => tracing::debug!(txn, "the homeserver pinged us"),
            }
        }
    });
}

fn ledger(shared: &Arc<Shared>) -> Ledger {
    let shared = shared.clone();
    Arc::new(move |since| {
        let read = shared.store.ledger(Millis(since)).map_err(|error| error.to_string())?;
        Ok(entries_to_json(read))
    })
}

fn stats(shared: &Arc<Shared>) -> Stats {
    let shared = shared.clone();
    Arc::new(move || tally::page(&shared))
}

/// Everything that must be so before minds may think; answers false when the service stops meanwhile.
async fn start(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    states::begin(shared).await?;
    shared.store.bear(shared.config.among.room.map(|limit| limit.most)).await?;
    Ok(identities::establish(shared).await?
        && rooms::control(shared).await?
        && rooms::configured(shared).await?)
}

/// Waits for the first signal, or for a task that ends before it.
async fn live(shared: &Arc<Shared>, tasks: &mut Tasks, lives: &mut Lives) -> Result<(), BridgeError> {
    tokio::select! {
        biased;
        () = shared.soft.cancelled() => Ok(()),
        ended = tasks.join_next() => Err(unexpected(ended)),
        Some(ended) = lives.join_next(), if !lives.is_empty() => Err(unexpected_life(ended)),
    }
}

type Lives = JoinSet<Result<(), BridgeError>>;

/// Turns in hand finish within the grace, minds close, the outbox drains a moment, the store is flushed.
async fn leave(
    shared: &Arc<Shared>,
    tasks: &mut Tasks,
    lives: &mut Lives,
    ended: Result<(), BridgeError>,
) -> Result<(), BridgeError> {
    shared.soft.cancel();
    shared.wake_all();
    let grace = if ended.is_ok() { shared.config.grace } else { Duration::ZERO };
    let all_left = async {
        let mut result = Ok(());
        while let Some(left) = lives.join_next().await {
            result =
                result.and(left.unwrap_or_else(|error| Err(BridgeError::Task { name: error.to_string() })));
        }
        result
    };
    tokio::pin!(all_left);
    let left = tokio::select! {
        left = &mut all_left => left,
        () = tokio::time::sleep(grace) => {
            shared.grace_over.cancel();
            all_left.await
        }
    };
    if ended.is_ok() && left.is_ok() {
        drain(shared).await?;
    }
    shared.drained.cancel();
    let mut result = ended.and(left);
    // Everything is durable by now; a caller that hangs must not keep the service from ending.
    let deadline = tokio::time::sleep(DRAIN);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            biased;
            done = tasks.join_next() => match done {
                Some(done) => result = result.and(ended_well(done)),
                None => break,
            },
            () = &mut deadline => break,
        }
    }
    shared.store.close().await?;
    result
}

fn ended_well(done: Result<Done, JoinError>) -> Result<(), BridgeError> {
    done.map_or_else(|error| Err(BridgeError::Task { name: error.to_string() }), |(_, result)| result)
}

/// Whether something is to be sent that may be.
fn owes(shared: &Shared) -> Result<bool, BridgeError> {
    Ok(!shared.store.heads_of(|user, room| shared.may_speak(user, room))?.is_empty())
}

/// Gives the outbox a moment; what is left is sent at the next start.
async fn drain(shared: &Shared) -> Result<(), BridgeError> {
    let deadline = shared.clock.now().plus(DRAIN);
    while shared.clock.now() < deadline && owes(shared)? {
        shared.outbox.notify_one();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Forgets event ids that no server repeats any more, and what was kept long enough.
async fn forget(shared: Arc<Shared>) -> Result<(), BridgeError> {
    loop {
        prune_archives(&shared).await?;
        let turns = shared.store.prune_past(shared.clock.now().minus(shared.config.transcript_keep)).await?;
        tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            () = tokio::time::sleep(FORGET) => {}
        }
        let remember = u64::try_from(REMEMBER.as_millis()).unwrap_or(u64::MAX);
        let before = Millis(shared.clock.now().0.saturating_sub(remember));
        let forgotten = shared.store.prune(before).await?;
        let before = Millis(shared.clock.now().0.saturating_sub(LEDGER_DAYS * 86_400_000));
        let entries = shared.store.prune_ledger(before).await?;
        let ours = shared.store.prune_ours(before).await?;
        tracing::debug!(
            forgotten,
            entries,
            turns,
            ours,
            "old event ids, ledger entries, turns and events of ours"
        );
    }
}

/// Removes the files of earlier sessions that were kept long enough.
async fn prune_archives(shared: &Arc<Shared>) -> Result<(), BridgeError> {
    let Mind::Claude(claude) = &shared.config.mind else { return Ok(()) };
    let keep = u64::try_from(shared.config.archive_keep.as_millis()).unwrap_or(u64::MAX);
    let before = Millis(shared.clock.now().0.saturating_sub(keep));
    for persona in shared.config.personas.iter().map(|persona| persona.persona.id.clone()) {
        let (claude, id) = (claude.clone(), persona.clone());
        let pruned = tokio::task::spawn_blocking(move || prune(&claude, &id, before)).await;
        match pruned.map_err(|error| BridgeError::Task { name: error.to_string() })? {
            Ok(0) => {}
            Ok(files) => tracing::info!(%persona, files, "files of earlier sessions were removed"),
            Err(error) => tracing::warn!(%persona, %error, "files of earlier sessions could not be removed"),
        }
    }
    Ok(())
}

fn spawn(
    tasks: &mut Tasks,
    name: &str,
    task: impl Future<Output = Result<(), BridgeError>> + Send + 'static,
) {
    let name = name.to_owned();
    tasks.spawn(async move { (name, task.await) });
}

fn unexpected(ended: Option<Result<Done, JoinError>>) -> BridgeError {
    match ended {
        Some(Ok((_, Err(error)))) => error,
        Some(Ok((name, Ok(())))) => BridgeError::Task { name },
        Some(Err(error)) => BridgeError::Task { name: error.to_string() },
        None => BridgeError::Task { name: "all".to_owned() },
    }
}

fn unexpected_life(ended: Result<Result<(), BridgeError>, JoinError>) -> BridgeError {
    match ended {
        Ok(Err(error)) => error,
        Ok(Ok(())) => BridgeError::Task { name: "a Persona's loop".to_owned() },
        Err(error) => BridgeError::Task { name: error.to_string() },
    }
}
