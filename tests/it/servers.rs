//! Real homeservers for tests, one a test: Synapse from the tools folder (installed there once), Conduit from
//! `CONDUIT_BIN` or PATH.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use persona_bridge::demo::homeserver::{
    Homeserver, HomeserverError, Kind, Place, find_program, free_port, provision,
};
use persona_bridge::demo::secret;
use tempfile::TempDir;

use crate::tools::{aloud, is_ci, scale, skipped, tools_folder, variable};

/// Name of every test homeserver.
pub(crate) const SERVER_NAME: &str = "hs.test";
/// The prefix of Personas' localparts and of the bridge's aliases.
pub(crate) const PREFIX: &str = "persona_";

/// A homeserver that knows an appservice, in a folder of its own. Dropping it ends the server and removes the folder.
pub(crate) struct Server {
    /// The server.
    pub(crate) homeserver: Homeserver,
    /// The appservice it knows.
    pub(crate) appservice: Appservice,
    /// The test's folder.
    pub(crate) dir: Arc<TempDir>,
}

/// The appservice that a test homeserver knows; nothing listens on its port yet.
#[derive(Clone, Debug)]
pub(crate) struct Appservice {
    /// Where the homeserver calls it.
    pub(crate) port: u16,
    /// Its token at the homeserver.
    pub(crate) as_token: String,
    /// The homeserver's token at it.
    pub(crate) hs_token: String,
    /// Whether it is told who types.
    pub(crate) receive_ephemeral: bool,
}

impl Appservice {
    fn draw() -> Self {
        let (port, receive_ephemeral) = (free_port().unwrap(), false);
        Self { port, as_token: secret::token(), hs_token: secret::token(), receive_ephemeral }
    }

    /// Its registration.
    pub(crate) fn yaml(&self) -> String {
        let Self { port, as_token, hs_token, receive_ephemeral } = self;
        format!(
            "id: persona-bridge\nurl: http://127.0.0.1:{port}\nas_token: {as_token}\nhs_token: {hs_token}\n\
             sender_localpart: persona-bridge\nrate_limited: false\nreceive_ephemeral: {receive_ephemeral}\nnamespaces:\n\
             \x20 users:\n  - exclusive: true\n    regex: '^@{PREFIX}[a-z0-9._=-]+:hs\\.test$'\n\
             \x20 - exclusive: true\n    regex: '^@persona-bridge:hs\\.test$'\n\
             \x20 aliases:\n  - exclusive: true\n    regex: '^#{PREFIX}[a-z0-9._=-]+:hs\\.test$'\n  rooms: []\n"
        )
    }
}

impl Server {
    /// The full id of a user of this server.
    pub(crate) fn user_id(&self, localpart: &str) -> String {
        format!("@{localpart}:{SERVER_NAME}")
    }

    /// A new folder in the test's folder.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.dir.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The server's own words, for a failing test.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.homeserver.log()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            aloud(&format!("--- {} said:\n{}", self.homeserver.kind().name(), last_lines(&self.log(), 40)));
        }
    }
}

/// Synapse with an appservice, from a copy of a prepared database. `None` (said aloud) where it cannot be installed;
/// with `CI=true` that is a failure.
pub(crate) async fn synapse(test: &str) -> Option<Server> {
    synapse_for(test, Appservice::draw()).await
}

/// Like [`synapse`], with an appservice that is told who types.
pub(crate) async fn synapse_that_tells_who_types(test: &str) -> Option<Server> {
    synapse_for(test, Appservice { receive_ephemeral: true, ..Appservice::draw() }).await
}

async fn synapse_for(test: &str, appservice: Appservice) -> Option<Server> {
    let python = synapse_python(test).await?;
    let (dir, place) = new_place();
    copy_folder(&synapse_template(&python).await, &place.dir);
    let started = Homeserver::synapse(&python, place, Some(&appservice.yaml())).await;
    Some(Server { homeserver: started.unwrap(), appservice, dir })
}

/// The Python that runs Synapse. `None` (said aloud) where it cannot be installed; with `CI=true` that is a failure.
pub(crate) async fn synapse_python(test: &str) -> Option<PathBuf> {
    match provision::synapse(&tools_folder(), guard().as_deref(), &mut |line| aloud(line)).await {
        Ok(python) => Some(python),
        Err(error) if is_ci() => panic!("{test} needs Synapse: {error}"),
        Err(error) => {
            skipped(&format!("no synapse, {error}"), test);
            None
        }
    }
}

/// Conduit with an appservice. `None` (said aloud) where there is none.
pub(crate) async fn conduit(test: &str) -> Option<Server> {
    let named = variable("CONDUIT_BIN");
    let program = named.as_deref().unwrap_or("conduit");
    let Some(program) = find_program(program, &variable("PATH").unwrap_or_default()) else {
        assert!(named.is_none(), "CONDUIT_BIN is not a program: {named:?}");
        skipped("no conduit", test);
        return None;
    };
    let (dir, place) = new_place();
    let mut homeserver = Homeserver::conduit(&program, place).await.unwrap();
    let appservice = Appservice::draw();
    homeserver.register_appservice(&appservice.yaml()).await.unwrap();
    Some(Server { homeserver, appservice, dir })
}

/// One or the other.
pub(crate) async fn server(kind: Kind, test: &str) -> Option<Server> {
    match kind {
        Kind::Synapse => synapse(test).await,
        Kind::Conduit => conduit(test).await,
    }
}

/// Our own binary, to guard children.
pub(crate) fn guard() -> Option<PathBuf> {
    Some(PathBuf::from(env!("CARGO_BIN_EXE_persona-bridge")))
}

/// The last `count` lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn new_place() -> (Arc<TempDir>, Place) {
    let dir = Arc::new(tempfile::Builder::new().prefix("persona-bridge-").tempdir().unwrap());
    let place = Place {
        dir: dir.path().join("homeserver"),
        server_name: SERVER_NAME.to_owned(),
        port: free_port().unwrap(),
        guard: guard(),
    };
    (dir, place)
}

/// A Synapse folder with a finished database and no users: a start from it takes 1.8 s instead of 2.6 s.
async fn synapse_template(python: &Path) -> PathBuf {
    let template = tools_folder().join(format!("synapse-{}-template", provision::SYNAPSE_VERSION));
    if template.exists() {
        return template;
    }
    let (_dir, place) = new_place();
    let mut homeserver = Homeserver::synapse(python, place, None).await.unwrap();
    homeserver.stop().await;
    let copy = tools_folder().join(format!("template-{}", secret::token()));
    for file in ["homeserver.db", "signing.key"] {
        std::fs::create_dir_all(&copy).unwrap();
        std::fs::copy(homeserver.dir().join(file), copy.join(file)).unwrap();
    }
    // Whoever comes second finds the first one's folder in place.
    if std::fs::rename(&copy, &template).is_err() {
        std::fs::remove_dir_all(&copy).unwrap();
    }
    template
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

mod tests {
    use super::*;
    use persona_bridge::demo::child::Signal;
    use persona_bridge::demo::matrix::CallFault;
    use serde_json::json;

    #[tokio::test]
    async fn synapse_knows_the_appservice_and_registers_users() {
        knows_the_appservice(Kind::Synapse, "synapse_knows_the_appservice_and_registers_users").await;
    }

    #[tokio::test]
    async fn conduit_knows_the_appservice_and_registers_users() {
        knows_the_appservice(Kind::Conduit, "conduit_knows_the_appservice_and_registers_users").await;
    }

    async fn knows_the_appservice(kind: Kind, test: &str) {
        let Some(server) = server(kind, test).await else { return };
        let appservice = server.homeserver.matrix().with_token(&server.appservice.as_token);
        for localpart in ["persona-bridge", "persona_eir"] {
            let ghost = json!({
                "type": "m.login.application_service", "username": localpart, "inhibit_login": true,
            });
            let answer = appservice.post(&["v3", "register"], &ghost).await.unwrap();
            assert_eq!(answer["user_id"], server.user_id(localpart));
        }
        let outside = json!({
            "type": "m.login.application_service", "username": "somebody", "inhibit_login": true,
        });
        assert!(appservice.post(&["v3", "register"], &outside).await.unwrap_err().is("M_EXCLUSIVE"));
        let taken = server.homeserver.register_user("persona_brage", "secret").await.unwrap_err();
        assert!(matches!(&taken, HomeserverError::Call(fault) if fault.is("M_EXCLUSIVE")), "{taken}");
        let token = server.homeserver.register_user("alice", "secret").await.unwrap();
        let alice = server.homeserver.matrix().with_token(&token);
        let whoami = alice.get(&["v3", "account", "whoami"], &[]).await.unwrap();
        assert_eq!(whoami["user_id"], server.user_id("alice"));
    }

    #[tokio::test]
    async fn synapse_keeps_its_data_when_it_is_killed() {
        keeps_its_data(Kind::Synapse, "synapse_keeps_its_data_when_it_is_killed").await;
    }

    #[tokio::test]
    async fn conduit_keeps_its_data_when_it_is_killed() {
        keeps_its_data(Kind::Conduit, "conduit_keeps_its_data_when_it_is_killed").await;
    }

    async fn keeps_its_data(kind: Kind, test: &str) {
        let Some(mut server) = server(kind, test).await else { return };
        let token = server.homeserver.register_user("alice", "secret").await.unwrap();
        let alice = server.homeserver.matrix().with_token(&token);
        let whoami = ["v3", "account", "whoami"];
        for _ in 0..scale() {
            server.homeserver.kill(Signal::KILL).await;
            assert!(matches!(alice.get(&whoami, &[]).await, Err(CallFault::Unanswered { .. })));
            server.homeserver.restart().await.unwrap();
            assert_eq!(alice.get(&whoami, &[]).await.unwrap()["user_id"], server.user_id("alice"));
        }
        server.homeserver.stop().await;
        assert_eq!(server.homeserver.pid(), None);
    }

    #[tokio::test]
    async fn an_appservice_can_be_registered_later() {
        let Some(mut server) = synapse("an_appservice_can_be_registered_later").await else { return };
        let other = Appservice::draw();
        server.homeserver.register_appservice(&other.yaml()).await.unwrap();
        let whoami = ["v3", "account", "whoami"];
        let old = server.homeserver.matrix().with_token(&server.appservice.as_token);
        assert!(old.get(&whoami, &[]).await.unwrap_err().is("M_UNKNOWN_TOKEN"));
        let new = server.homeserver.matrix().with_token(&other.as_token);
        assert_eq!(new.get(&whoami, &[]).await.unwrap()["user_id"], server.user_id("persona-bridge"));
    }
}
