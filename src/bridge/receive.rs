//! From the ear (or a read-back) into the store: folded in order, flushed in groups, answered when durable.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::BridgeError;
use super::halt::Halt;
use super::shared::{Poke, ReadBack, Shared};
use super::translate::{Effects, Path, Woken, translate};
use crate::conversation::Event;
use crate::homeserver::appservice::{Answer, Received};
use crate::homeserver::event::Unreadable;
use crate::store::{self, Mark};

/// In which an answer has left the process.
const LEAVES: Duration = Duration::from_millis(200);

type Accepting = Pin<Box<dyn Future<Output = Result<(), BridgeError>> + Send>>;

/// Takes in transactions and read-backs until the service has drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut transactions: mpsc::Receiver<Received>,
    mut read_back: mpsc::Receiver<ReadBack>,
) -> Result<(), BridgeError> {
    let mut in_flight: FuturesUnordered<Accepting> = FuturesUnordered::new();
    let mut newest_txn = None;
    loop {
        let mut accepting = tokio::select! {
            biased;
            Some(done) = in_flight.next(), if !in_flight.is_empty() => { done?; continue }
            () = shared.drained.cancelled() => break,
            Some(back) = read_back.recv() => take_back(&shared, back),
            Some(received) = transactions.recv() => {
                watch_ids(&shared, &received.txn, &mut newest_txn);
                match take(&shared, received)? {
                    Some(accepting) => accepting,
                    None => continue,
                }
            }
        };
        // The first poll puts it into the store's queue, so that the order of the fold is the order of the numbers.
        match futures_util::poll!(&mut accepting) {
            std::task::Poll::Ready(done) => done?,
            std::task::Poll::Pending => in_flight.push(accepting),
        }
    }
    while let Some(done) = in_flight.next().await {
        done?;
    }
    Ok(())
}

/// Transaction ids that fall are a sign that the homeserver was restarted (and may have lost what it held).
fn watch_ids(shared: &Shared, txn: &str, newest: &mut Option<u64>) {
    let Ok(id) = txn.parse::<u64>() else { return };
    if newest.is_some_and(|newest| id < newest) {
        tracing::info!(txn, "transaction ids fell, reading all rooms back");
        // What it brings now waits for what it may have lost before.
        shared.directory().unmark(None);
        shared.poke(Poke::All);
    }
    *newest = Some(id);
}

fn take(shared: &Arc<Shared>, received: Received) -> Result<Option<Accepting>, BridgeError> {
    let Received { txn, events, unreadable, typing, answer } = received;
    if !has_room(shared)? {
        // A caller that is gone will repeat its transaction.
        let _ = answer.send(Answer::Full);
        return Ok(None);
    }
    shared.note_transaction();
    shared.note_typing(typing);
    if events.is_empty() && unreadable.is_empty() {
        let _ = answer.send(Answer::Taken);
        return Ok(None);
    }
    tracing::debug!(txn, events = events.len(), "transaction");
    let effects = translate(shared, &events, Path::Transaction)?;
    let shared = shared.clone();
    Ok(Some(Box::pin(async move {
        if answers_first(&shared, &effects) {
            let _ = answer.send(Answer::Taken);
            tokio::time::sleep(LEAVES).await;
            Halt::EarAnswersFirst.reached(shared.config.halt);
            return Ok(());
        }
        let woken = effects.woken.clone();
        accept(&shared, effects, unreadable, None).await?;
        shared.steered(&woken.steered).await?;
        let _ = answer.send(Answer::Taken);
        wake(&shared, &woken);
        Ok(())
    })))
}

/// Whether a build for tests is to show what an answer before the flush costs.
fn answers_first(shared: &Shared, effects: &Effects) -> bool {
    let wanted = cfg!(debug_assertions) && shared.config.halt == Some(Halt::EarAnswersFirst);
    wanted && effects.arrivals.iter().any(has_mail)
}

fn take_back(shared: &Arc<Shared>, back: ReadBack) -> Accepting {
    let shared = shared.clone();
    let ReadBack { events, unreadable, room, mark, done } = back;
    let effects = translate(&shared, &events, Path::ReadBack);
    let lines = shared.directory().lines(&room);
    Box::pin(async move {
        let effects = effects?;
        let woken = effects.woken.clone();
        let mark = Mark { room, event: mark, lines };
        let new = accept(&shared, effects, unreadable, Some(mark)).await?;
        shared.steered(&woken.steered).await?;
        let _ = done.send(new);
        wake(&shared, &woken);
        Ok(())
    })
}

async fn accept(
    shared: &Shared,
    effects: Effects,
    unreadable: Vec<Unreadable>,
    mark: Option<Mark>,
) -> Result<usize, BridgeError> {
    let Effects { arrivals, woken: _, invites, pokes, first_sights } = effects;
    shared.tally.unheard("unreadable", unreadable.len() as u64);
    let unreadable =
        unreadable.into_iter().map(|u| store::Unreadable { raw: u.raw, reason: u.reason }).collect();
    for (room, event) in first_sights {
        let mark = Mark { room, event, lines: Vec::new() };
        shared.store.accept(Vec::new(), Vec::new(), Some(mark), shared.clock.now()).await?;
    }
    let heads: Vec<_> = arrivals.iter().map(has_mail).collect();
    let halt = shared.config.halt.filter(|_| heads.contains(&true));
    Halt::EarBeforeFlush.reached(halt);
    #[cfg(debug_assertions)]
    if halt == Some(Halt::EarInsideFlush) {
        shared.store.before_next_flush(move || Halt::EarInsideFlush.reached(halt));
    }
    let held = shared.all_held();
    let fates = shared.store.accept(arrivals, unreadable, mark, shared.clock.now()).await?;
    Halt::EarAfterFlush.reached(halt);
    // Who is let go because somebody else was addressed has heard nothing of it herself.
    held.difference(&shared.all_held()).for_each(|(persona, _)| shared.wake(persona));
    let new = fates.iter().zip(heads).filter(|(new, mail)| **new && *mail).count();
    for work in invites {
        // The inviter's task ends only with the service.
        let _ = shared.invites.send(work);
    }
    for poke in pokes {
        shared.poke(poke);
    }
    Ok(new)
}

fn has_mail(arrival: &store::Arrival) -> bool {
    use store::Effect;
    arrival
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::Deliver(..) | Effect::DeliverEdit(..) | Effect::Reworded(..)))
}

/// Wakes who may have something to do now. The hearers come last: the task woken last runs next on this thread.
fn wake(shared: &Shared, woken: &Woken) {
    shared.outbox.notify_one();
    if woken.desk {
        shared.questions.notify_one();
    }
    if !woken.hearers.is_empty() {
        shared.heart.hears();
    }
    for persona in &woken.hearers {
        shared.wake(persona);
    }
}

/// Whether the disk has room; says so once in each direction.
pub(crate) fn has_room(shared: &Shared) -> Result<bool, BridgeError> {
    let accepts = shared.store.accepts()?;
    if accepts {
        if shared.readiness.clear("disk") {
            tracing::info!("the disk has room again, transactions are taken");
        }
    } else if shared.readiness.say("disk", "the disk is below [store] min_free: free some space") {
        tracing::error!(
            "the disk is below [store] min_free: transactions wait at the homeserver until space is freed"
        );
    }
    Ok(accepts)
}

/// The events of a page, read leniently.
pub(crate) fn read_page(raw: &[Box<serde_json::value::RawValue>]) -> (Vec<Event>, Vec<Unreadable>) {
    let mut events = Vec::with_capacity(raw.len());
    let mut unreadable = Vec::new();
    for raw in raw {
        match crate::homeserver::event::read(raw) {
            Ok(event) => events.push(event),
            Err(bad) => unreadable.push(bad),
        }
    }
    (events, unreadable)
}
