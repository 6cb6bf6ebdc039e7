//! The processes of the demo: homeserver and bridge, brought up in order and taken down in order.

use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::Surroundings;
use super::child::{Child, Launch};
use super::error::DemoError;
use super::files::{CONFIG, State, Where};
use super::homeserver::{
    Homeserver, HomeserverError, Kind, Place, find_program, loopback, provision, tail, write_private,
};
use super::matrix::{CallFault, Login, Matrix};

/// The name of a homeserver of our own.
const SERVER_NAME: &str = "demo.test";

const BRIDGE_LOG: &str = "bridge.log";

/// How long the bridge may take until it is ready.
const READY_DEADLINE: Duration = Duration::from_secs(120);

/// How long the bridge may take to end: it finishes an open turn.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// What runs. Dropping it kills everything; [`Stage::stop`] asks first.
#[derive(Default)]
pub(super) struct Stage {
    homeserver: Option<Homeserver>,
    bridge: Option<Child>,
}

/// A homeserver that can be spoken with.
pub(super) struct Home {
    /// A client of it, not logged in.
    pub(super) matrix: Matrix,
    /// The user.
    pub(super) login: Login,
}

/// Which homeserver a new folder gets.
pub(super) fn choose(url: Option<&Url>, around: &Surroundings) -> Where {
    match (url, conduit(around)) {
        (Some(url), _) => Where::Url(url.to_string()),
        (None, Some(_)) => Where::Conduit,
        (None, None) => Where::Synapse,
    }
}

fn conduit(around: &Surroundings) -> Option<PathBuf> {
    find_program(around.variable("CONDUIT_BIN").unwrap_or("conduit"), around.path())
}

impl Stage {
    /// Brings up the homeserver with the appservice, and the user on it.
    ///
    /// A Conduit that was here before has something for the bridge at once, and asks no sooner than 30 s after a
    /// failure again: there the bridge is the first to start.
    pub(super) async fn homeserver(
        &mut self,
        dir: &Path,
        state: &State,
        around: &Surroundings,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Home, DemoError> {
        let registration = state.registration(SERVER_NAME);
        let matrix = match &state.homeserver {
            Where::Url(url) => Matrix::new(url_of(url)?)?,
            Where::Synapse => {
                let python = provision::synapse(&around.tools(dir), around.guard(), progress).await?;
                progress("starting Synapse");
                self.keep(Homeserver::synapse(&python, place(dir, state, around), Some(&registration)).await?)
            }
            Where::Conduit => {
                let program = conduit(around).ok_or_else(|| DemoError::Missing {
                    what: "conduit, which this folder's homeserver is,".to_owned(),
                    remedy: "put it on PATH, or give another --dir".to_owned(),
                })?;
                progress("starting Conduit");
                let known = dir.join("homeserver/registered.yaml");
                if std::fs::read_to_string(&known).is_ok_and(|earlier| earlier == registration) {
                    self.start_bridge(dir, around).await?;
                    self.bridge_is("live", dir, state).await?;
                }
                let mut homeserver = Homeserver::conduit(&program, place(dir, state, around)).await?;
                homeserver.register_appservice(&registration).await?;
                write_private(&known, &registration)?;
                self.keep(homeserver)
            }
        };
        let login = log_in(&matrix, state).await?;
        Ok(Home { matrix, login })
    }

    fn keep(&mut self, homeserver: Homeserver) -> Matrix {
        self.homeserver.insert(homeserver).matrix().clone()
    }

    /// Starts the bridge, unless it runs.
    pub(super) async fn start_bridge(&mut self, dir: &Path, around: &Surroundings) -> Result<(), DemoError> {
        if self.bridge.is_some() {
            return Ok(());
        }
        let program = around.guard().ok_or_else(|| DemoError::Missing {
            what: "our own program file".to_owned(),
            remedy: "start the demo by its path".to_owned(),
        })?;
        let launch = Launch::new(program, dir, &dir.join(BRIDGE_LOG)).args(["run", "--config", CONFIG]);
        let child = launch.guarded(Some(program)).spawn().await.map_err(HomeserverError::io(program))?;
        self.bridge = Some(child);
        Ok(())
    }

    /// Waits until the bridge's page (`live`, `ready`) says yes.
    pub(super) async fn bridge_is(&self, page: &str, dir: &Path, state: &State) -> Result<(), DemoError> {
        let bridge = Matrix::new(loopback(state.bridge_port))?;
        let mut why = String::new();
        let what = tokio::select! {
            yes = tokio::time::timeout(READY_DEADLINE, says_yes(&bridge, page, &mut why)) => match yes {
                Ok(()) => return Ok(()),
                Err(_) => format!("is not {page} after {} s: {why}", READY_DEADLINE.as_secs()),
            },
            what = self.bridge_ends() => what,
        };
        let log = dir.join(BRIDGE_LOG);
        Err(DemoError::Bridge { what, tail: tail(&log), log })
    }

    async fn bridge_ends(&self) -> String {
        match &self.bridge {
            Some(bridge) => ended(bridge.wait().await),
            None => std::future::pending().await,
        }
    }

    /// Waits until something that runs ends by itself.
    pub(super) async fn fails(&self, dir: &Path) -> DemoError {
        let log = dir.join(BRIDGE_LOG);
        let homeserver = async {
            match &self.homeserver {
                Some(homeserver) => homeserver.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            what = self.bridge_ends() => DemoError::Bridge { what, tail: tail(&log), log },
            error = homeserver => error.into(),
        }
    }

    /// Takes everything down: the bridge first, so that it can still say what it has to say.
    pub(super) async fn stop(&mut self) {
        if let Some(bridge) = self.bridge.take() {
            bridge.stop(STOP_GRACE).await;
        }
        if let Some(mut homeserver) = self.homeserver.take() {
            homeserver.stop().await;
        }
    }

    /// What the homeserver is, for people.
    pub(super) fn homeserver_name(&self) -> &'static str {
        self.homeserver.as_ref().map_or("your homeserver", |homeserver| Kind::name(homeserver.kind()))
    }
}

/// Where a homeserver is, and its name if that is known before it is asked.
pub(super) fn address(state: &State) -> Result<(Url, Option<&'static str>), DemoError> {
    match &state.homeserver {
        Where::Url(url) => Ok((url_of(url)?, None)),
        Where::Synapse | Where::Conduit => Ok((loopback(state.homeserver_port), Some(SERVER_NAME))),
    }
}

fn place(dir: &Path, state: &State, around: &Surroundings) -> Place {
    Place {
        dir: dir.join("homeserver"),
        server_name: SERVER_NAME.to_owned(),
        port: state.homeserver_port,
        guard: around.guard().map(Path::to_owned),
    }
}

fn url_of(url: &str) -> Result<Url, DemoError> {
    Url::parse(url).map_err(|error| DemoError::Usage(format!("--homeserver {url}: {error}")))
}

fn ended(status: Option<std::process::ExitStatus>) -> String {
    status.map_or_else(|| "ended".to_owned(), |status| format!("ended with {status}"))
}

/// Logs the user in, registering them where they are not known.
async fn log_in(matrix: &Matrix, state: &State) -> Result<Login, CallFault> {
    match matrix.login(&state.user, &state.password).await {
        Err(CallFault::Answered { status: 403 | 404, .. }) => {
            matrix.register(&state.user, &state.password).await
        }
        other => other,
    }
}

/// Whether the homeserver takes the appservice's token: a running one has to be told of it by its operator.
pub(super) async fn knows_appservice(home: &Home, state: &State) -> Result<bool, CallFault> {
    let appservice = home.matrix.with_token(&state.as_token);
    match appservice.get(&["v3", "account", "whoami"], &[]).await {
        Err(CallFault::Answered { status: 401, .. }) => Ok(false),
        Err(CallFault::Unanswered { url, source }) => Err(CallFault::Unanswered { url, source }),
        // Conduit answers 403 until the bot is registered, which is the bridge's first act.
        Ok(_) | Err(_) => Ok(true),
    }
}

async fn says_yes(bridge: &Matrix, page: &str, why: &mut String) {
    while let Err(not) = bridge.page(page).await {
        *why = not;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
