//! The homeserver on a loopback socket, for what only a socket can show.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use futures_util::stream;
use persona_bridge::homeserver::client::Transport as _;

use super::FakeHomeserver;

/// The largest request taken.
const REQUEST_MAX: usize = 64 << 20;

/// Serves a homeserver on 127.0.0.1 until the runtime ends. A call that is cut ends in a broken body, one that is
/// down in a closed connection: over a socket both are uncertain to the caller.
#[expect(clippy::disallowed_methods, reason = "a test's server lives as long as its runtime")]
pub(crate) async fn serve(home: FakeHomeserver) -> SocketAddr {
    let app = axum::Router::new().fallback(move |request: ::http::Request<Body>| {
        let home = home.clone();
        async move { answer(&home, request).await }
    });
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn answer(home: &FakeHomeserver, request: ::http::Request<Body>) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_MAX).await.unwrap_or_default().to_vec();
    Ok(match home.call(::http::Request::from_parts(parts, body)).await {
        Ok(answer) => answer.map(Body::from),
        Err(error) => Response::new(Body::from_stream(stream::once(async { Err::<String, _>(error) }))),
    })
}
