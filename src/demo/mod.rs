//! The first run: a real homeserver, a user, rooms, two Personas and a chat in the terminal, from one command.
//!
//! It is a user and an operator beside the bridge, which it starts as a child like the homeserver: it must never reach
//! into it. Everything it makes lies in one folder, and nothing that it starts outlives it.

mod cast;
mod chat;
pub mod child;
mod claude;
mod error;
mod files;
pub mod homeserver;
pub mod matrix;
mod running;
mod say;
pub mod secret;
mod stage;
mod you;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use url::Url;

use self::cast::Target;
use self::files::{Mind, State, Where};
use self::matrix::Matrix;
use self::running::{Lock, Running};
use self::stage::{Home, Stage};
use self::you::You;

pub use self::claude::CLAUDE_VERSION;
pub use self::error::{DemoError, Meaning};

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder.
    pub dir: PathBuf,
    /// Which mind the Personas have.
    pub mind: MindChoice,
    /// A running homeserver to use.
    pub homeserver: Option<Url>,
    /// Words to be said once, and the room or Persona they are said to.
    pub say: Option<(String, String)>,
}

/// Which mind the Personas have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MindChoice {
    /// The stand-in, which needs no account.
    #[default]
    Scripted,
    /// The claude CLI.
    Claude,
}

/// What the demo finds around it; given to it, since it reads no environment itself.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The environment.
    pub vars: BTreeMap<String, String>,
    /// Our own program file.
    pub program: Option<PathBuf>,
}

impl Surroundings {
    fn variable(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn path(&self) -> &str {
        self.variable("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin")
    }

    fn guard(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Where what is installed once lies: the folder of `PB_TOOLS`, which many demos can share, or the demo's own.
    fn tools(&self, dir: &Path) -> PathBuf {
        self.variable("PB_TOOLS").map_or_else(|| dir.join("tools"), PathBuf::from)
    }
}

/// Runs the demo until it has done what it was asked, or a signal ends it.
///
/// # Errors
/// Why it could not, in words for whoever typed the command.
pub async fn run(options: Options, around: Surroundings) -> Result<(), DemoError> {
    let asked = match &options.say {
        Some((words, to)) => Some((say::target(to, words)?, words.as_str())),
        None => None,
    };
    files::make(&options.dir)?;
    let dir = options.dir.canonicalize().map_err(homeserver::HomeserverError::io(&options.dir))?;
    let mut signals = Signals::watch().map_err(homeserver::HomeserverError::io(&dir))?;
    let mut stage = Stage::default();
    let ended = tokio::select! {
        ended = play(&options, asked, &dir, &around, &mut stage) => ended,
        () = signals.next() => if asked.is_some() { Err(DemoError::Interrupted) } else { Ok(()) },
    };
    tokio::select! {
        () = stage.stop() => {}
        // A second signal: everything is killed as it is dropped.
        () = signals.next() => {}
    }
    ended
}

async fn play(
    options: &Options,
    asked: Option<(Target, &str)>,
    dir: &Path,
    around: &Surroundings,
    stage: &mut Stage,
) -> Result<(), DemoError> {
    let Some(lock) = Lock::take(dir)? else { return beside(asked, dir).await };
    let mut progress = |line: &str| tell(&format!("demo: {line}"));
    let state = State::open(dir, || stage::choose(options.homeserver.as_ref(), around))?;
    fits(&state, options)?;
    let mind = match options.mind {
        MindChoice::Scripted => Mind::Scripted,
        MindChoice::Claude => Mind::Claude(claude::find(dir, around, &mut progress).await?),
    };
    let (url, server_name) = stage::address(&state)?;
    if let Some(name) = server_name {
        state.write(dir, url.as_str(), name, &mind)?;
    }
    let home = stage.homeserver(dir, &state, around, &mut progress).await?;
    if server_name.is_none() {
        state.write(dir, url.as_str(), home.login.server_name(), &mind)?;
    }
    if !stage::knows_appservice(&home, &state).await? {
        return Err(DemoError::Unregistered { registration: dir.join("registration.yaml") });
    }
    progress("starting the bridge");
    stage.start_bridge(dir, around).await?;
    stage.bridge_is("ready", dir, &state).await?;
    lock.announce(&Running::here(home.matrix.url().as_str(), &home.login))?;
    tokio::select! {
        talked = talk(asked, &home, &state, stage.homeserver_name(), &mind) => talked,
        failed = stage.fails(dir) => Err(failed),
    }
}

async fn talk(
    asked: Option<(Target, &str)>,
    home: &Home,
    state: &State,
    server: &str,
    mind: &Mind,
) -> Result<(), DemoError> {
    let mut you = You::new(&home.matrix, home.login.clone()).await?;
    if let Some((target, words)) = asked {
        return answer(&mut you, target, words).await;
    }
    chat::print(&welcome(home, state, server, mind));
    chat::chat(&mut you, chat::Lines::of_stdin()).await
}

async fn answer(you: &mut You, target: Target, words: &str) -> Result<(), DemoError> {
    let answer = say::say(you, target, words).await?;
    chat::print(&format!("{answer}\n"));
    Ok(())
}

/// Speaks through the demo that runs in the folder, as soon as it is ready.
async fn beside(asked: Option<(Target, &str)>, dir: &Path) -> Result<(), DemoError> {
    let Some((target, words)) = asked else {
        return Err(DemoError::Running { dir: dir.to_owned() });
    };
    let found = tokio::time::timeout(Duration::from_secs(300), async {
        loop {
            if let Some(running) = Running::read(dir) {
                return running;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let Ok(running) = found.await else {
        return Err(DemoError::Silent(format!("the demo in {} does not become ready", dir.display())));
    };
    let url =
        Url::parse(&running.url).map_err(|error| DemoError::Usage(format!("{}: {error}", running.url)))?;
    let mut you = You::new(&Matrix::new(url)?, running.login()).await?;
    answer(&mut you, target, words).await
}

/// Whether a folder goes on with the homeserver that was asked for.
fn fits(state: &State, options: &Options) -> Result<(), DemoError> {
    match (&options.homeserver, &state.homeserver) {
        (None, _) => Ok(()),
        (Some(url), Where::Url(known)) if url.as_str() == known => Ok(()),
        (Some(url), _) => Err(DemoError::Usage(format!(
            "{} belongs to another homeserver than {url}; give another --dir",
            options.dir.display()
        ))),
    }
}

fn welcome(home: &Home, state: &State, server: &str, mind: &Mind) -> String {
    let mind = match mind {
        Mind::Scripted => "a scripted stand-in thinks for them; --mind claude gives them the real one",
        Mind::Claude(_) => "each thinks with a claude session of her own",
    };
    format!(
        "\nEir and Brage live on {server} in #minds, #swarm and #burn ({mind}).\n\n\
         In Element, as another way in:\n  homeserver  {}\n  user        {}\n  password    {}\n",
        home.matrix.url(),
        state.user,
        state.password
    )
}

/// A line on standard error, where progress goes.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The signals that end the demo.
struct Signals([Signal; 3]);

impl Signals {
    fn watch() -> std::io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
