//! Reading back.

use persona_bridge::homeserver::client::{Client, Identity};
use persona_bridge::homeserver::event::REQUEST_KEY;
use serde_json::json;

use super::{World, bodies, event, ours, request, shared_room, text};

/// From a mark forwards over several pages, and from the newest back to the beginning.
pub(super) async fn history(world: &impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let mut said = Vec::new();
    for n in 0..12 {
        said.push(world.say(shared.as_str(), &n.to_string()).await);
    }
    let mut from = client.after(eir, &shared, &said[2]).await.unwrap();
    let (mut heard, mut pages) = (Vec::new(), 0);
    while let Some(token) = from {
        let page = client.newer(eir, &shared, &token, 3).await.unwrap();
        heard.extend(bodies(&page.events));
        from = page.end;
        pages += 1;
        assert!(pages < 20, "a token that leads nowhere");
    }
    assert_eq!(heard, (3..12).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(pages >= 3);
    let newest = client.newest(eir, &shared, 2).await.unwrap();
    assert_eq!(bodies(&newest.events), ["11", "10"]);
    let (mut from, mut older) = (newest.end, Vec::new());
    while let Some(token) = from {
        let page = client.older(eir, &shared, &token, 5).await.unwrap();
        older.extend(bodies(&page.events));
        from = page.end;
    }
    assert_eq!(older, (0..10).rev().map(|n| n.to_string()).collect::<Vec<_>>());
    let end = client.after(eir, &shared, said.last().unwrap()).await.unwrap().unwrap();
    let nothing = client.newer(eir, &shared, &end, 3).await.unwrap();
    assert!(nothing.events.is_empty() && nothing.end.is_none());
    assert_eq!(client.after(eir, &shared, &event("$unknown")).await.unwrap(), None);
    client.leave(eir, &shared, "").await.unwrap();
}

pub(super) async fn looking_back(world: &impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let body = ours("mine", "f1");
    let sent = client.send(eir, &shared, "m.room.message", &request("f1"), &body).await.unwrap();
    world
        .send(
            shared.as_str(),
            "m.room.message",
            json!({ "msgtype": "m.text", "body": "forged", REQUEST_KEY: "f2" }),
        )
        .await;
    // More than a page of others' words on top of it.
    for n in 0..120 {
        world.say(shared.as_str(), &n.to_string()).await;
    }
    let find = async |id: &str| client.find_sent(eir, &shared, &request(id), 0).await.unwrap();
    assert_eq!(find("f1").await, Some(sent));
    assert_eq!(find("f2").await, None);
    // Without the key in the content, the homeserver's own note of the transaction id does.
    let plain = client.send(eir, &shared, "m.room.message", &request("f3"), &text("plain")).await.unwrap();
    assert_eq!(find("f3").await, Some(plain));
    let future = 1 << 52;
    assert_eq!(client.find_sent(eir, &shared, &request("f4"), future).await.unwrap(), None);
    client.leave(eir, &shared, "").await.unwrap();
}
