//! The first SIGTERM or SIGINT asks the service to leave in peace; the second ends it at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Watches for signals for ever: cancels `stop` at the first, returns at the second.
///
/// # Errors
/// Signal handlers cannot be installed.
pub async fn watch(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    for first in [true, false] {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if first {
            tracing::info!(
                "stopping: turns in hand finish, the outbox drains; a second signal ends it at once"
            );
            stop.cancel();
        }
    }
    Ok(())
}
