//! What the demo writes into its folder. Doctrine and states are written once and may be edited; config and
//! registration are written at each start from `state.json`, which holds what must stay the same.

use std::fmt::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cast::{PERSONAS, PREFIX, ROOMS, alias};
use super::claude::Claude;
use super::homeserver::{HomeserverError, free_port, write_private};
use super::secret;
use crate::homeserver::registration::{self, Draft};

/// The localpart of the appservice's bot, and the appservice's id.
const APPSERVICE: &str = "persona-bridge";

/// The config file's name.
pub(super) const CONFIG: &str = "config.toml";

const TEXTS: [(&str, &str); 5] = [
    ("doctrine/common.md", include_str!("../../config/doctrine/common.md")),
    ("doctrine/eir.md", include_str!("../../config/doctrine/eir.md")),
    ("doctrine/brage.md", include_str!("../../config/doctrine/brage.md")),
    ("personas/eir.json", include_str!("../../config/personas/eir.json")),
    ("personas/brage.json", include_str!("../../config/personas/brage.json")),
];

/// What must stay the same from start to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Which homeserver it is.
    pub(super) homeserver: Where,
    /// The homeserver's port, if it is our own.
    pub(super) homeserver_port: u16,
    /// The bridge's port.
    pub(super) bridge_port: u16,
    /// The appservice's token.
    pub(super) as_token: String,
    /// The homeserver's token.
    pub(super) hs_token: String,
    /// The user's localpart.
    pub(super) user: String,
    /// The user's password.
    pub(super) password: String,
}

/// Which homeserver the demo uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Where {
    /// Synapse of our own.
    Synapse,
    /// Conduit of our own.
    Conduit,
    /// A running one, by its URL.
    Url(String),
}

/// The mind of the Personas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mind {
    /// The stand-in.
    Scripted,
    /// The claude CLI.
    Claude(Claude),
}

/// Makes the folder, for us alone.
pub(super) fn make(dir: &Path) -> Result<(), HomeserverError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(HomeserverError::io(dir))
}

impl State {
    /// The folder's state, or a new one; taken ports are replaced by free ones.
    pub(super) fn open(dir: &Path, choose: impl FnOnce() -> Where) -> Result<Self, HomeserverError> {
        let file = dir.join("state.json");
        let earlier = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let mut state = earlier.unwrap_or_else(|| Self::draw(choose()));
        for port in [&mut state.homeserver_port, &mut state.bridge_port] {
            if std::net::TcpListener::bind(("127.0.0.1", *port)).is_err() || *port == 0 {
                *port = free_port().map_err(HomeserverError::io(dir))?;
            }
        }
        write_private(&file, &serde_json::json!(state).to_string())?;
        Ok(state)
    }

    fn draw(homeserver: Where) -> Self {
        let user = match homeserver {
            Where::Synapse | Where::Conduit => "you".to_owned(),
            // On a server of others the plain name may be theirs.
            Where::Url(_) => format!("you-{}", &secret::token()[..8]),
        };
        Self {
            homeserver,
            homeserver_port: 0,
            bridge_port: 0,
            as_token: secret::token(),
            hs_token: secret::token(),
            user,
            password: secret::token()[..20].to_owned(),
        }
    }

    /// The registration.
    pub(super) fn registration(&self, server_name: &str) -> String {
        registration::render(&Draft {
            id: APPSERVICE.to_owned(),
            url: format!("http://127.0.0.1:{}", self.bridge_port),
            bot: APPSERVICE.to_owned(),
            user_prefix: PREFIX.to_owned(),
            server_name: server_name.to_owned(),
            as_token: self.as_token.clone(),
            hs_token: self.hs_token.clone(),
            receive_ephemeral: false,
        })
    }

    /// Writes everything that the bridge reads.
    pub(super) fn write(
        &self,
        dir: &Path,
        url: &str,
        server_name: &str,
        mind: &Mind,
    ) -> Result<(), HomeserverError> {
        for (name, text) in TEXTS {
            let file = dir.join(name);
            if !file.exists() {
                make(file.parent().unwrap_or(dir))?;
                std::fs::write(&file, text).map_err(HomeserverError::io(&file))?;
            }
        }
        write_private(&dir.join("registration.yaml"), &self.registration(server_name))?;
        write_private(&dir.join(CONFIG), &self.config(url, server_name, mind))
    }

    fn config(&self, url: &str, server_name: &str, mind: &Mind) -> String {
        let (port, user) = (self.bridge_port, &self.user);
        let mut toml = format!(
            "# Written by `persona-bridge demo` at each start; what you change here is lost then.\n\n\
             [homeserver]\nurl = {url:?}\nserver_name = {server_name:?}\n\n\
             [appservice]\nlisten = \"127.0.0.1:{port}\"\nurl = \"http://127.0.0.1:{port}\"\n\
             registration = \"registration.yaml\"\nuser_prefix = \"{PREFIX}\"\n\n\
             [store]\npath = \"store\"\n\n{}\n\
             [talk]\nsettle = \"500ms\"\nsettle_max = \"5s\"\ndefault_register = \"minds\"\n\n\
             [permissions]\n{server_name:?} = \"chat\"\n\"@{user}:{server_name}\" = \"admin\"\n",
            mind.config()
        );
        for (room, voice) in ROOMS {
            let _ = write!(toml, "\n[registers.{room}]\nvoice = {voice:?}\nnames_address = true\n");
            let alias = alias(room, server_name);
            let _ = write!(toml, "\n[[rooms]]\nalias = {alias:?}\nregister = \"{room}\"\n");
        }
        let rooms: Vec<String> = ROOMS.iter().map(|(room, _)| alias(room, server_name)).collect();
        for (id, name) in PERSONAS {
            let _ = write!(
                toml,
                "\n[[personas]]\nid = \"{id}\"\nname = \"{name}\"\n\
                 doctrine = [\"doctrine/common.md\", \"doctrine/{id}.md\"]\nstate = \"personas/{id}.json\"\n\
                 rooms = {rooms:?}\n"
            );
        }
        toml
    }
}

impl Mind {
    fn config(&self) -> String {
        match self {
            Self::Scripted => "[mind]\nkind = \"scripted\"\n".to_owned(),
            Self::Claude(claude) => format!("[mind]\nkind = \"claude\"\n\n{}", claude.config()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{self, Environment};

    fn written(dir: &Path, mind: &Mind) -> PathBuf {
        let state = State::open(dir, || Where::Synapse).unwrap();
        state.write(dir, "http://127.0.0.1:20001/", "demo.test", mind).unwrap();
        dir.join(CONFIG)
    }

    #[test]
    fn the_config_is_one_that_the_bridge_takes() {
        let dir = tempfile::tempdir().unwrap();
        let config = written(dir.path(), &Mind::Scripted);
        let environment = Environment { vars: [].into(), program: "persona-bridge".into() };
        let settings = config::load(&config, environment).unwrap().settings().unwrap();
        assert_eq!(settings.warnings, []);
        let registration = registration::read(&dir.path().join("registration.yaml")).unwrap();
        let config = settings.with_registration(registration).unwrap();
        let names: Vec<&str> =
            config.bridge.personas.iter().map(|persona| persona.persona.name.as_str()).collect();
        assert_eq!(names, ["Eir", "Brage"]);
        assert_eq!(config.bridge.rooms.len(), 3);
    }

    #[test]
    fn a_second_start_keeps_tokens_and_what_was_edited() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), &Mind::Scripted);
        let registration = dir.path().join("registration.yaml");
        let first = std::fs::read_to_string(&registration).unwrap();
        let doctrine = dir.path().join("doctrine/eir.md");
        std::fs::write(&doctrine, "edited").unwrap();
        written(dir.path(), &Mind::Scripted);
        assert_eq!(std::fs::read_to_string(&registration).unwrap(), first);
        assert_eq!(std::fs::read_to_string(&doctrine).unwrap(), "edited");
    }

    #[test]
    fn a_taken_port_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let first = State::open(dir.path(), || Where::Synapse).unwrap();
        let _taken = std::net::TcpListener::bind(("127.0.0.1", first.bridge_port)).unwrap();
        let second = State::open(dir.path(), || unreachable!()).unwrap();
        assert_ne!(second.bridge_port, first.bridge_port);
        assert_eq!(second.homeserver_port, first.homeserver_port);
        assert_eq!(second.as_token, first.as_token);
    }

    #[test]
    fn secrets_are_for_us_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let config = written(dir.path(), &Mind::Scripted);
        for file in [config, dir.path().join("state.json"), dir.path().join("registration.yaml")] {
            assert_eq!(
                std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                file.display()
            );
        }
    }
}
