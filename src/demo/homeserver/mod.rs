//! A real homeserver of our own as a child process, for the demo and for tests: Synapse or Conduit.
//!
//! It listens on 127.0.0.1 only, talks to no other server, and keeps everything in one folder. One more kind is one
//! more file with a function that prepares its folder and says how it is launched.

mod conduit;
pub mod provision;
mod synapse;

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use url::Url;

use super::child::{Child, Launch, Signal};
use super::matrix::{CallFault, Matrix};

/// How long a server may take until it answers: Synapse needs 3 s on an idle machine, 8 s beside three others.
const START_DEADLINE: Duration = Duration::from_secs(120);
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Which homeserver it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Synapse, from its own virtual environment.
    Synapse,
    /// Conduit.
    Conduit,
}

/// Where and as what a homeserver runs.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its folder; made if missing. A folder of an earlier run goes on.
    pub dir: PathBuf,
    /// Its name, the part after the colon.
    pub server_name: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Our own binary, to guard it.
    pub guard: Option<PathBuf>,
}

/// A homeserver; dropping it kills it.
pub struct Homeserver {
    kind: Kind,
    place: Place,
    launch: Launch,
    matrix: Matrix,
    child: Option<Child>,
}

/// Why there is no homeserver.
#[derive(Debug, thiserror::Error)]
pub enum HomeserverError {
    /// Something must be installed first.
    #[error("{what} is missing; install it with: {remedy}")]
    Missing {
        /// What.
        what: &'static str,
        /// The one line that installs it.
        remedy: &'static str,
    },
    /// A file or process could not be made.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It ended by itself.
    #[error("{what} ended with {status}; see {log}\n{tail}")]
    Ended {
        /// What.
        what: &'static str,
        /// Its exit status.
        status: String,
        /// Where its words are.
        log: PathBuf,
        /// The last of them.
        tail: String,
    },
    /// It runs but does not answer.
    #[error("{what} does not answer at {url} after {} s; see {log}", START_DEADLINE.as_secs())]
    Silent {
        /// What.
        what: &'static str,
        /// Where it should.
        url: String,
        /// Where its words are.
        log: PathBuf,
    },
    /// It refused a call.
    #[error(transparent)]
    Call(#[from] CallFault),
    /// Conduit did not take the registration.
    #[error("Conduit did not take the registration: {0}")]
    Refused(String),
}

impl Kind {
    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synapse => "Synapse",
            Self::Conduit => "Conduit",
        }
    }
}

impl HomeserverError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

impl Homeserver {
    /// Starts Synapse by the given Python (see [`provision::synapse`]), with an appservice's registration (YAML) if
    /// there is one already.
    ///
    /// # Errors
    /// Its folder cannot be written, or it does not come up.
    pub async fn synapse(
        python: &Path,
        place: Place,
        registration: Option<&str>,
    ) -> Result<Self, HomeserverError> {
        let launch = synapse::prepare(python, &place, registration)?;
        Self::start(Kind::Synapse, place, launch).await
    }

    /// Starts Conduit.
    ///
    /// # Errors
    /// As [`Homeserver::synapse`].
    pub async fn conduit(program: &Path, place: Place) -> Result<Self, HomeserverError> {
        let launch = conduit::prepare(program, &place)?;
        let started = Self::start(Kind::Conduit, place, launch).await?;
        conduit::ensure_admin(&started.matrix, &started.place).await?;
        Ok(started)
    }

    async fn start(kind: Kind, place: Place, launch: Launch) -> Result<Self, HomeserverError> {
        let launch = launch.guarded(place.guard.as_deref());
        let matrix = Matrix::new(loopback(place.port))?;
        let mut started = Self { kind, place, launch, matrix, child: None };
        started.restart().await?;
        Ok(started)
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its URL.
    pub fn url(&self) -> &Url {
        self.matrix.url()
    }

    /// Its name, the part after the colon.
    pub fn server_name(&self) -> &str {
        &self.place.server_name
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// The file that its output goes to.
    pub fn log(&self) -> &Path {
        &self.launch.log
    }

    /// Its process id, if it runs.
    pub fn pid(&self) -> Option<i32> {
        self.child.as_ref().map(Child::id)
    }

    /// A client of it, not logged in.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Registers an ordinary user: their access token.
    ///
    /// # Errors
    /// The name is taken, or it does not answer.
    pub async fn register_user(&self, name: &str, password: &str) -> Result<String, HomeserverError> {
        Ok(self.matrix.register(name, password).await?.access_token)
    }

    /// Makes an appservice known by its registration (YAML). Synapse reads such files at start only: it is restarted.
    ///
    /// # Errors
    /// The registration is refused.
    pub async fn register_appservice(&mut self, yaml: &str) -> Result<(), HomeserverError> {
        match self.kind {
            Kind::Conduit => conduit::register(&self.matrix, &self.place, yaml).await,
            Kind::Synapse => {
                synapse::write_registration(&self.place, yaml)?;
                self.stop().await;
                self.restart().await
            }
        }
    }

    /// Sends a signal and waits for its end; nothing happens if it does not run.
    pub async fn kill(&mut self, signal: Signal) {
        if let Some(child) = self.child.take() {
            child.kill(signal).await;
        }
    }

    /// Asks it to end, and kills it where it does not.
    pub async fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.stop(STOP_GRACE).await;
        }
    }

    /// Starts it on the same data and port, after killing it where it still runs, and waits until it answers.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn restart(&mut self) -> Result<(), HomeserverError> {
        self.kill(Signal::KILL).await;
        let launch = self.launch.clone();
        let child = launch.spawn().await.map_err(HomeserverError::io(&self.launch.program))?;
        let ready = tokio::time::timeout(START_DEADLINE, answering(&self.matrix));
        let ended = tokio::select! {
            ready = ready => ready.is_err().then(|| self.silent()),
            status = child.wait() => Some(self.ended(status)),
        };
        self.child = Some(child);
        ended.map_or(Ok(()), Err)
    }

    /// Waits for its end by itself.
    pub async fn wait(&self) -> HomeserverError {
        match &self.child {
            Some(child) => self.ended(child.wait().await),
            None => std::future::pending().await,
        }
    }

    fn silent(&self) -> HomeserverError {
        HomeserverError::Silent {
            what: self.kind.name(),
            url: self.url().to_string(),
            log: self.launch.log.clone(),
        }
    }

    fn ended(&self, status: Option<std::process::ExitStatus>) -> HomeserverError {
        HomeserverError::Ended {
            what: self.kind.name(),
            status: status.map_or_else(|| "no status".to_owned(), |status| status.to_string()),
            log: self.launch.log.clone(),
            tail: tail(&self.launch.log),
        }
    }
}

/// A port of 127.0.0.1 that is free now, each one given once by this process.
///
/// They lie below the range that outgoing connections take theirs from, so that none of those can take it before the
/// server listens.
///
/// # Errors
/// None of many is free.
pub fn free_port() -> std::io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = std::process::id().wrapping_mul(131).wrapping_add(step) % COUNT;
        let port = u16::try_from(FIRST + offset).unwrap_or(u16::MAX);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(std::io::Error::other("no free port between 20000 and 32000"))
}

/// Where a program is: itself if it is a path, else in the first folder of `path` (as in `PATH`) that has it.
pub fn find_program(program: &str, path: &str) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    path.split(':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| Path::new(folder).join(program))
        .find(is_program)
}

/// The URL of a port of 127.0.0.1.
pub fn loopback(port: u16) -> Url {
    let mut url = Url::parse("http://127.0.0.1/").expect("a constant URL");
    url.set_port(Some(port)).expect("http takes a port");
    url
}

async fn answering(matrix: &Matrix) {
    while matrix.get(&["versions"], &[]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// Writes a file that only we may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), HomeserverError> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).map_err(HomeserverError::io(path))?;
    file.write_all(text.as_bytes()).map_err(HomeserverError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_once_and_can_be_bound() {
        let ports: std::collections::BTreeSet<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        for port in ports {
            assert!((20_000..32_000).contains(&port));
            TcpListener::bind(("127.0.0.1", port)).unwrap();
        }
    }

    #[test]
    fn a_program_is_found_by_path_or_name() {
        let found = |program: &str, path: &str| find_program(program, path);
        assert_eq!(found("sh", "/nowhere::/bin"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(found("/bin/sh", ""), Some(PathBuf::from("/bin/sh")));
        assert_eq!(found("sh", "/nowhere"), None);
        assert_eq!(found("passwd", "/etc"), None, "not executable");
        assert_eq!(found("/etc", ""), None, "a folder");
    }

    #[test]
    fn the_tail_is_the_last_fifteen_lines() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, (0..40).map(|n| format!("line {n}\n")).collect::<String>()).unwrap();
        let tail = tail(&log);
        assert_eq!(tail.lines().count(), 15);
        assert!(tail.starts_with("line 25\n") && tail.ends_with("line 39"), "{tail}");
        assert_eq!(super::tail(&dir.path().join("none")), "");
    }

    #[tokio::test]
    async fn a_server_that_ends_at_once_shows_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place {
            dir: dir.path().to_owned(),
            server_name: "hs.test".to_owned(),
            port: free_port().unwrap(),
            guard: None,
        };
        let launch = Launch::new("/bin/sh", dir.path(), &dir.path().join("log"))
            .args(["-c", "echo bad config; exit 1"]);
        let error = Homeserver::start(Kind::Synapse, place, launch).await.err().unwrap().to_string();
        assert!(
            error.contains("Synapse ended with exit status: 1") && error.contains("bad config"),
            "{error}"
        );
    }
}
