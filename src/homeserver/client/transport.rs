//! The transport over real sockets.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::redirect::Policy;

use super::{Transport, TransportError};

/// Carries requests by HTTP/1.1 or 2, with rustls; follows no redirect and asks no proxy of the environment.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
}

impl ReqwestTransport {
    /// A transport whose every call ends within `timeout`, the reading of the answer included.
    ///
    /// # Errors
    /// TLS cannot be set up on this machine.
    pub fn new(timeout: Duration) -> Result<Self, TransportError> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("persona-bridge/", env!("CARGO_PKG_VERSION")))
            .timeout(timeout)
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| TransportError::NotSent(words(error)))?;
        Ok(Self { client })
    }
}

impl Transport for ReqwestTransport {
    fn call(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let request =
                request.try_into().map_err(|error: reqwest::Error| TransportError::NotSent(words(error)))?;
            let answer = self.client.execute(request).await.map_err(no_answer)?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = answer.bytes().await.map_err(|error| TransportError::Uncertain(words(error)))?;
            let mut response = http::Response::new(body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok(response)
        })
    }
}

/// Only a connection that was never made is certain; everything else may have reached the homeserver.
fn no_answer(error: reqwest::Error) -> TransportError {
    if error.is_connect() || error.is_builder() {
        TransportError::NotSent(words(error))
    } else {
        TransportError::Uncertain(words(error))
    }
}

/// The error and its causes without the URL, which names users and rooms.
fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}
