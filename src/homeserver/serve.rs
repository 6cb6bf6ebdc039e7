//! Puts the ear's router onto a socket, or hands it to a caller in the same process.

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::appservice::{self, Ear, router};

/// Where the ear listens.
#[derive(Debug)]
pub enum Listen {
    /// A bound socket.
    Socket(TcpListener),
    /// In this process: the router is handed over once.
    InProcess(oneshot::Sender<axum::Router>),
}

/// Serves the ear until `stop`, then finishes the calls in hand.
///
/// # Errors
/// The socket fails.
pub async fn serve(listen: Listen, ear: Ear, stop: CancellationToken) -> std::io::Result<()> {
    match listen {
        Listen::Socket(listener) => appservice::serve(listener, ear, stop.cancelled_owned()).await,
        Listen::InProcess(handover) => {
            // The receiver is gone only when the caller has ended, and then nobody misses the router.
            let _ = handover.send(router(ear));
            stop.cancelled().await;
            Ok(())
        }
    }
}
