//! The one thread that starts children.
//!
//! A parent-death signal follows the thread that forked, so all children are forked by a thread that lives as long as
//! the process.

use std::io;
use std::sync::{OnceLock, mpsc};
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A child to be started, and where it goes.
struct Request {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// The way to the thread, which is started with the first child.
static SPAWNER: OnceLock<Option<mpsc::Sender<Request>>> = OnceLock::new();

/// Starts a child from the long-lived thread.
///
/// # Errors
/// The program cannot be started, or the thread could not be.
pub(super) async fn spawn(command: Command) -> io::Result<Child> {
    let gone = || io::Error::other("the thread that starts children is gone");
    let spawner = SPAWNER.get_or_init(start).as_ref().ok_or_else(gone)?;
    let (reply, child) = oneshot::channel();
    spawner.send(Request { command, runtime: Handle::current(), reply }).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}

fn start() -> Option<mpsc::Sender<Request>> {
    let (sender, requests) = mpsc::channel::<Request>();
    let serve = move || {
        for Request { mut command, runtime, reply } in requests {
            let _inside = runtime.enter();
            // A caller that went away drops the child, which kills it.
            let _ = reply.send(command.spawn());
        }
    };
    thread::Builder::new().name("child-spawner".to_owned()).spawn(serve).ok()?;
    Some(sender)
}
