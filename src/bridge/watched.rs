//! Notices when the homeserver comes back: what it may have lost meanwhile is read back at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::readiness::Readiness;
use super::shared::Poke;
use super::tally::Tally;
use crate::homeserver::client::{Transport, TransportError};

/// A transport that asks for a pass at the first answer after a call that got none, and counts what succeeds.
pub(crate) struct Watched {
    inner: Arc<dyn Transport>,
    silent: AtomicBool,
    outages: Arc<AtomicU64>,
    pokes: mpsc::UnboundedSender<Poke>,
    readiness: Arc<Readiness>,
    tally: Arc<Tally>,
}

impl Watched {
    /// Counts in `outages` how often the homeserver fell silent.
    pub(crate) fn new(
        inner: Arc<dyn Transport>,
        outages: Arc<AtomicU64>,
        pokes: mpsc::UnboundedSender<Poke>,
        readiness: Arc<Readiness>,
        tally: Arc<Tally>,
    ) -> Self {
        Self { inner, silent: AtomicBool::new(false), outages, pokes, readiness, tally }
    }

    fn fell_silent(&self) {
        if !self.silent.swap(true, Ordering::Relaxed) {
            self.outages.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What an answer shows to be well.
    fn note(&self, status: http::StatusCode) {
        if !status.is_server_error() && status != http::StatusCode::TOO_MANY_REQUESTS {
            self.readiness.clear("homeserver");
            self.readiness.clear("mouth");
        }
        if status.is_success() {
            self.readiness.clear("token");
            self.tally.note_answered();
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
                self.note(answer.status());
            }
            match &answer {
                Ok(answer) if is_silence(answer) => self.fell_silent(),
                Err(_) => self.fell_silent(),
                Ok(_) if self.silent.swap(false, Ordering::Relaxed) => {
                    self.tally.note_returned();
                    // Without a reconciler any more there is nothing to read back.
                    let _ = self.pokes.send(Poke::All);
                }
                Ok(_) => {}
            }
            answer
        })
    }
}

/// Whether a proxy answers in the place of the homeserver, which is down. (The homeserver's own errors have an errcode.)
fn is_silence(answer: &http::Response<Bytes>) -> bool {
    use http::StatusCode as Status;
    let down = matches!(
        answer.status(),
        Status::BAD_GATEWAY | Status::SERVICE_UNAVAILABLE | Status::GATEWAY_TIMEOUT
    );
    let errcode = || serde_json::from_slice::<serde_json::Value>(answer.body()).ok()?.get("errcode").cloned();
    down && errcode().is_none()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// One letter an answer, the last first: an answer, none, a proxy's, or the homeserver's own error.
    struct Answers(Mutex<String>);

    impl Transport for Answers {
        fn call(
            &self,
            _: http::Request<Vec<u8>>,
        ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
            let bad = |body: &'static str| {
                http::Response::builder().status(502).body(Bytes::from_static(body.as_bytes())).unwrap()
            };
            let answer = match self.0.lock().unwrap().pop().unwrap() {
                'a' => Ok(http::Response::default()),
                'p' => Ok(bad("<html>bad gateway</html>")),
                'e' => Ok(bad(r#"{"errcode":"M_BAD_STATUS"}"#)),
                _ => Err(TransportError::NotSent("down".into())),
            };
            Box::pin(std::future::ready(answer))
        }
    }

    #[tokio::test]
    async fn only_the_first_answer_after_silence_asks_for_a_pass() {
        let (pokes, mut poked) = mpsc::unbounded_channel();
        let answers = "epeaapa--a".to_owned();
        let readiness = Arc::new(Readiness::new());
        let mut shown = readiness.subscribe();
        readiness.clear("start");
        readiness.clear("ping");
        readiness.say("homeserver", "it does not answer");
        let tally = Arc::new(Tally::default());
        let answers = Arc::new(Answers(Mutex::new(answers)));
        let outages = Arc::new(AtomicU64::new(0));
        let watched = Watched::new(answers, outages.clone(), pokes, readiness, tally.clone());
        let mut asked = Vec::new();
        for _ in 0..10 {
            let _ = watched.call(http::Request::new(Vec::new())).await;
            asked.push(poked.try_recv().is_ok());
        }
        let asked: Vec<usize> = (0..asked.len()).filter(|at| asked[*at]).collect();
        assert_eq!(asked, [3, 5, 9]);
        assert_eq!((outages.load(Ordering::Relaxed), tally.returned()), (3, 3));
        assert_eq!(*shown.borrow_and_update(), Ok(()), "an answer shows that it answers");
        assert_eq!(tally.answered(), 4);
    }
}
