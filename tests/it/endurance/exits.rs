//! A disk that refuses to take more ends the service with its own exit code, and nothing is acknowledged that is not on it.

use std::process::Stdio;
use std::time::Duration;

use persona_bridge::demo::homeserver::Kind;
use serde_json::json;

use super::ground::one;
use crate::bridge::{Bridge, PROGRAM};
use crate::servers::{self, Server};

/// How large a file may become, in blocks of 512 bytes; far more than a new store needs.
const BLOCKS: u32 = 16 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_ends_the_service_with_14() {
    let test = "a_store_that_cannot_be_written_ends_the_service_with_14";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mut bridge = Bridge::spawn(&server, &one()).await;
    bridge.stop().await;
    // A write beyond the limit is an error of the disk, as one beyond a quota is.
    let script = format!("trap '' XFSZ; ulimit -f {BLOCKS}; exec {PROGRAM} run --config config.toml");
    let mut run = tokio::process::Command::new("sh");
    run.args(["-c", &script]).current_dir(&bridge.dir).stderr(Stdio::piped()).kill_on_drop(true);
    let child = run.spawn().unwrap();
    let ended = async { child.wait_with_output().await.unwrap() };
    let fill = fill(&bridge, &server);
    let deadline = Duration::from_secs(120);
    let both = tokio::time::timeout(deadline, futures_util::future::join(ended, fill)).await;
    let (output, taken) = both.expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(14), "{} after {taken} transactions\n{said}", output.status);
    assert!(said.lines().last().unwrap().contains("the store failed"), "{said}");
    assert!(taken > 0, "the limit is not the first thing it meets");
    bridge.restart().await;
    assert!(bridge.is_ready().await, "with a disk that takes it, it goes on");
    let stats: serde_json::Value = serde_json::from_str(&bridge.get("stats").await.unwrap().1).unwrap();
    assert!(stats["quarantined"].as_u64().unwrap() >= taken, "what was acknowledged is there: {stats}");
}

/// Brings events that are kept whole, one after the other, until nobody answers: how many were acknowledged.
async fn fill(bridge: &Bridge, server: &Server) -> u64 {
    bridge.ready_somewhere().await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut taken = 0;
    loop {
        let url = format!("http://127.0.0.1:{}/_matrix/app/v1/transactions/fill-{taken}", bridge.port);
        let noise: String = (0..4_000).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
        let body = json!({ "events": [&noise[..60_000]] }).to_string();
        match http.put(url).bearer_auth(&server.appservice.hs_token).body(body).send().await {
            Ok(answer) if answer.status().is_success() => taken += 1,
            Ok(_) | Err(_) => return taken,
        }
    }
}
