//! Notices when the homeserver comes back: what it may have lost meanwhile is read back at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::readiness::Readiness;
use super::shared::Poke;
use crate::homeserver::client::{Transport, TransportError};

/// A transport that asks for a pass at the first answer after a call that got none.
pub(crate) struct Watched {
    inner: Arc<dyn Transport>,
    silent: AtomicBool,
    pokes: mpsc::UnboundedSender<Poke>,
    readiness: Arc<Readiness>,
}

impl Watched {
    pub(crate) fn new(
        inner: Arc<dyn Transport>,
        pokes: mpsc::UnboundedSender<Poke>,
        readiness: Arc<Readiness>,
    ) -> Self {
        Self { inner, silent: AtomicBool::new(false), pokes, readiness }
    }

    /// What an answer shows to be well again.
    fn heals(&self, status: http::StatusCode) {
        if !status.is_server_error() && status != http::StatusCode::TOO_MANY_REQUESTS {
            self.readiness.clear("homeserver");
            self.readiness.clear("mouth");
        }
        if status.is_success() {
            self.readiness.clear("token");
        }
    }
}

impl Transport for Watched {
    fn call(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let answer = self.inner.call(request).await;
            if let Ok(answer) = &answer {
                self.heals(answer.status());
            }
            match &answer {
                Err(_) => self.silent.store(true, Ordering::Relaxed),
                Ok(_) if self.silent.swap(false, Ordering::Relaxed) => {
                    // Without a reconciler any more there is nothing to read back.
                    let _ = self.pokes.send(Poke::All);
                }
                Ok(_) => {}
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Answers(Mutex<Vec<bool>>);

    impl Transport for Answers {
        fn call(
            &self,
            _: http::Request<Vec<u8>>,
        ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
            let good = self.0.lock().unwrap().pop().unwrap();
            let answer = if good {
                Ok(http::Response::default())
            } else {
                Err(TransportError::NotSent("down".into()))
            };
            Box::pin(std::future::ready(answer))
        }
    }

    #[tokio::test]
    async fn only_the_first_answer_after_silence_asks_for_a_pass() {
        let (pokes, mut poked) = mpsc::unbounded_channel();
        let answers = vec![true, true, false, false, true];
        let readiness = Arc::new(Readiness::new());
        let mut shown = readiness.subscribe();
        readiness.clear("start");
        readiness.clear("ping");
        readiness.say("homeserver", "it does not answer");
        let watched = Watched::new(Arc::new(Answers(Mutex::new(answers))), pokes, readiness);
        let mut asked = Vec::new();
        for _ in 0..5 {
            let _ = watched.call(http::Request::new(Vec::new())).await;
            asked.push(poked.try_recv().is_ok());
        }
        assert_eq!(asked, [false, false, false, true, false]);
        assert_eq!(*shown.borrow_and_update(), Ok(()), "an answer shows that it answers");
    }
}
