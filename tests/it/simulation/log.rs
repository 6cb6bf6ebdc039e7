//! What the log says while a scene is played.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::{Dispatch, Level};

/// A log that nobody reads. While there is one log alone, whether an event is logged would be decided once for all threads by
/// the first that comes to it, which may be another test's.
static ANOTHER: LazyLock<Dispatch> =
    LazyLock::new(|| tracing_subscriber::fmt().with_max_level(Level::INFO).with_writer(io::sink).into());

/// What was written so far.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Plays, and answers with the lines of the log at INFO and above.
pub(crate) fn logged<T>(play: impl FnOnce() -> T) -> (T, Vec<String>) {
    LazyLock::force(&ANOTHER);
    let written = Written::default();
    let writer = written.clone();
    let log = tracing_subscriber::fmt()
        .with_max_level(Level::INFO)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let outcome = tracing::subscriber::with_default(log, play);
    let written = written.0.lock().expect("not poisoned");
    (outcome, String::from_utf8_lossy(&written).lines().map(str::to_owned).collect())
}
