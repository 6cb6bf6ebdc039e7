//! The client's contract on real homeservers.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::Kind;
use persona_bridge::demo::matrix::Matrix;
use persona_bridge::homeserver::client::{Client, ReqwestTransport};
use serde_json::{Value, json};

use crate::contract::{World, holds};
use crate::fake::homeserver::Flavour;
use crate::servers::{self, Server};

/// A real homeserver with Alice.
struct Real {
    server: Server,
    alice: Matrix,
}

impl Real {
    fn call(&self, room: &str, rest: &[&str]) -> Vec<String> {
        ["v3", "rooms", room].iter().chain(rest).map(|part| (*part).to_owned()).collect()
    }

    async fn put(&self, room: &str, rest: &[&str], body: &Value) -> Value {
        let path = self.call(room, rest);
        self.alice.put(&path.iter().map(String::as_str).collect::<Vec<_>>(), body).await.unwrap()
    }
}

impl World for Real {
    fn flavour(&self) -> Flavour {
        match self.server.homeserver.kind() {
            Kind::Synapse => Flavour::Synapse,
            Kind::Conduit => Flavour::Conduit,
        }
    }

    fn client(&self) -> Client {
        let transport = ReqwestTransport::new(Duration::from_secs(30)).unwrap();
        let as_token = self.server.appservice.as_token.as_str().into();
        Client::new(Arc::new(transport), self.server.homeserver.url().clone(), as_token)
    }

    async fn restart(&mut self) {
        self.server.homeserver.kill(Signal::KILL).await;
        self.server.homeserver.restart().await.unwrap();
    }

    async fn create_room(&self, fields: Value) -> String {
        let made = self.alice.post(&["v3", "createRoom"], &fields).await.unwrap();
        made["room_id"].as_str().unwrap().to_owned()
    }

    async fn send(&self, room: &str, kind: &str, content: Value) -> String {
        let txn = persona_bridge::demo::secret::token();
        let sent = self.put(room, &["send", kind, &txn], &content).await;
        sent["event_id"].as_str().unwrap().to_owned()
    }

    async fn put_member(&self, room: &str, verb: &str, user: &str) {
        let path = self.call(room, &[verb]);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        self.alice.post(&path, &json!({ "user_id": user })).await.unwrap();
    }

    async fn silence(&self, room: &str) {
        let path = self.call(room, &["state", "m.room.power_levels", ""]);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut levels = self.alice.get(&path, &[]).await.unwrap();
        levels["events_default"] = json!(50);
        self.put(room, &["state", "m.room.power_levels", ""], &levels).await;
    }
}

async fn check(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let token = server.homeserver.register_user("alice", "secret").await.unwrap();
    let alice = server.homeserver.matrix().with_token(&token);
    holds(&mut Real { server, alice }).await;
}

#[tokio::test]
async fn the_client_keeps_its_contract_on_synapse() {
    check(Kind::Synapse, "the_client_keeps_its_contract_on_synapse").await;
}

#[tokio::test]
async fn the_client_keeps_its_contract_on_conduit() {
    check(Kind::Conduit, "the_client_keeps_its_contract_on_conduit").await;
}
