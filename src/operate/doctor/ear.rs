//! The doctor's own ear at the bridge's address: it hears pings, and takes no mail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::diagnose::Ear;
use crate::homeserver::appservice;

/// The address, tried.
pub(super) struct Bound {
    state: Result<TcpListener, Ear>,
}

impl Bound {
    /// Tries to bind the bridge's address.
    pub(super) async fn bind(listen: SocketAddr) -> Self {
        let state = TcpListener::bind(listen).await.map_err(|error| {
            let taken = error.kind() == std::io::ErrorKind::AddrInUse;
            if taken { Ear::Theirs } else { Ear::Unbound(error.to_string()) }
        });
        Self { state }
    }

    /// Whether another process has it.
    pub(super) fn is_theirs(&self) -> bool {
        matches!(self.state, Err(Ear::Theirs))
    }

    /// Listens while `call` runs; tells who had an ear, and with which status it answered a ping.
    pub(super) async fn during<T>(self, hs_token: Arc<str>, call: impl Future<Output = T>) -> (Ear, T) {
        let listener = match self.state {
            Ok(listener) => listener,
            Err(ear) => return (ear, call.await),
        };
        let (transactions, mut mail) = mpsc::channel(1);
        let (pings, mut pinged) = mpsc::channel(8);
        let (_ready, ready) = watch::channel(Ok(()));
        let ear = appservice::Ear {
            hs_token,
            transactions,
            users: Arc::from([]),
            ready,
            stats: Arc::new(|| serde_json::Value::Null),
            ledger: Arc::new(|_| Ok(serde_json::Value::Null)),
            orders: Arc::new(|_| Box::pin(async { Ok(serde_json::Value::Null) })),
            pings,
        };
        let status = Arc::new(AtomicU16::new(0));
        let seen = Arc::clone(&status);
        let router = appservice::router(ear)
            .layer(from_fn(move |request, next| watch_pings(seen.clone(), request, next)));
        // Mail is dropped unanswered, which the homeserver takes as "later": only the bridge may accept it.
        let refuse = async { while mail.recv().await.is_some() {} };
        let drain = async { while pinged.recv().await.is_some() {} };
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            (_, (), ()) = async { tokio::join!(axum::serve(listener, router), refuse, drain) } => {
                unreachable!("a server without a stop signal serves for ever")
            }
        };
        let status = status.load(Ordering::Relaxed);
        (Ear::Ours((status != 0).then_some(status)), answer)
    }
}

/// Remembers with which status a ping was answered.
async fn watch_pings(status: Arc<AtomicU16>, request: Request, next: Next) -> Response {
    let is_ping = request.uri().path().ends_with("/ping");
    let response = next.run(request).await;
    if is_ping {
        status.store(response.status().as_u16(), Ordering::Relaxed);
    }
    response
}
