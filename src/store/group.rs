//! Group commit: callers queue their jobs, one of them at a time has the queue worked off.
//!
//! A job is atomic; a group of jobs becomes as few commits as its size allows and exactly one durable flush,
//! after which all of its callers are answered. The work runs on a blocking thread: it survives that a caller is dropped,
//! and the runtime's paused clock stands still as long as it lasts.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;

use super::open::Shared;
use super::tx::Tx;
use super::{Result, StoreError};

/// The most jobs that wait for one flush.
const GROUP: usize = 256;

type Answer = Box<dyn FnOnce(Result<()>) + Send>;
type Job = Box<dyn FnOnce(&mut Tx<'_>) -> Answer + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    led: bool,
}

/// The jobs that wait, and why none can be done any more, if so.
#[derive(Default)]
pub(super) struct Group {
    queue: Mutex<Queue>,
    broken: OnceLock<String>,
    /// What a test does between the next transaction and its flush.
    #[cfg(debug_assertions)]
    pub(super) before_flush: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Group {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job in; answers whether somebody has to lead.
    fn push(&self, job: Job) -> bool {
        let mut queue = self.queue();
        queue.jobs.push_back(job);
        !std::mem::replace(&mut queue.led, true)
    }

    /// The next jobs; without any, the lead is given up.
    fn take(&self) -> Option<Vec<Job>> {
        let mut queue = self.queue();
        let count = queue.jobs.len().min(GROUP);
        queue.led = count > 0;
        queue.led.then(|| queue.jobs.drain(..count).collect())
    }
}

/// Runs a job in the next group and answers once what it wrote is durable. Dropping the future does not undo the job.
pub(super) async fn write<T: Send + 'static>(
    shared: &Arc<Shared>,
    job: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    let job = move |tx: &mut Tx<'_>| {
        let done = job(tx);
        if done.is_ok() {
            tx.keep()
        } else {
            tx.undo()
        }
        Box::new(move |flushed: Result<()>| drop(answer.send(flushed.and(done)))) as Answer
    };
    if shared.group.push(Box::new(job)) {
        let lead = Lead { shared: shared.clone(), done: false };
        tokio::task::spawn_blocking(move || lead.run());
    }
    let ended = || StoreError::Io("its writer has ended".to_owned());
    answered.await.unwrap_or_else(|_| Err(ended()))
}

struct Lead {
    shared: Arc<Shared>,
    done: bool,
}

impl Lead {
    fn run(mut self) {
        while let Some(jobs) = self.shared.group.take() {
            run(&self.shared, jobs);
        }
        self.done = true;
    }
}

impl Drop for Lead {
    /// Where the runtime ended before the work began, its callers are gone too.
    fn drop(&mut self) {
        if !self.done {
            let mut queue = self.shared.group.queue();
            queue.led = false;
            queue.jobs.clear();
        }
    }
}

fn run(shared: &Shared, jobs: Vec<Job>) {
    let mut answers = Vec::with_capacity(jobs.len());
    let done = attempt(shared, || work(shared, jobs, &mut answers));
    for answer in answers {
        answer(done.as_ref().map(drop).map_err(|error| StoreError::Io(error.to_string())));
    }
    if done.is_ok() {
        // Its failure is told to whoever writes next.
        let _ = attempt(shared, || shared.base.sink_if_much());
    }
}

/// Does something with the engine, which panics at some kinds of damage. Where that failed once, nothing is done any more.
fn attempt(shared: &Shared, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let done = catch_unwind(AssertUnwindSafe(act));
    let done = done.unwrap_or_else(|_| Err(StoreError::Io("its engine has panicked".to_owned())));
    if let Err(error) = &done {
        let _first_reason_stays = shared.group.broken.set(error.to_string());
    }
    done
}

fn work(shared: &Shared, jobs: Vec<Job>, answers: &mut Vec<Answer>) -> Result<()> {
    if let Some(reason) = shared.group.broken.get() {
        return Err(StoreError::Io(reason.clone()));
    }
    let mut tx = Tx::new(&shared.base);
    for job in jobs {
        answers.push(job(&mut tx));
        tx.breathe()?;
    }
    tx.commit()?;
    #[cfg(debug_assertions)]
    if let Some(act) = shared.group.before_flush.lock().unwrap_or_else(PoisonError::into_inner).take() {
        act();
    }
    shared.disk.flush(&shared.base.db)?;
    let mut index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
    index.take(tx.into_changes());
    Ok(())
}
