//! The doctor: asks everything the bridge depends on, in both directions, without starting it.
//!
//! The edges (`homeserver`, `ear`, `host`) only ask and bring a [`ProbeAnswer`]; what it means is said by
//! [`diagnose()`], which is pure. A new probe is a new answer, its meaning, and the call that brings it.

mod date;
mod diagnose;
mod ear;
mod homeserver;
mod host;
mod identity;
mod ping;

use std::net::SocketAddr;
use std::sync::Arc;

use ruma::{OwnedServerName, OwnedUserId};
use url::Url;
use uuid::Uuid;

use super::{Finding, Mark};
use crate::conversation::reply::SCHEMA;
use crate::conversation::{Millis, RequestId};
use crate::homeserver::appservice::Running;
use crate::homeserver::client::Transport;
use crate::homeserver::registration::Registration;
use crate::{mind, store};

pub use diagnose::{Ear, Ping, ProbeAnswer, StoreAnswer, diagnose};

/// What is examined.
#[derive(Clone)]
pub struct Patient {
    /// The way to the homeserver.
    pub transport: Arc<dyn Transport>,
    /// The homeserver's client API.
    pub homeserver: Url,
    /// The homeserver's name.
    pub server_name: OwnedServerName,
    /// The registration.
    pub registration: Registration,
    /// The bot.
    pub bot: OwnedUserId,
    /// The Personas' users.
    pub personas: Vec<OwnedUserId>,
    /// The prefix of our aliases.
    pub user_prefix: String,
    /// Where the bridge listens.
    pub listen: SocketAddr,
    /// The store.
    pub store: store::Config,
    /// With what it would be opened.
    pub opening: store::Opening,
    /// The claude program, unless the mind is another.
    pub claude: Option<mind::claude::Config>,
    /// The time now.
    pub now: Millis,
    /// A transaction id that was never used.
    pub request: RequestId,
}

/// Examines everything; each finding is told as it comes.
pub async fn examine(patient: &Patient, tell: &mut (dyn FnMut(&Finding) + Send)) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut note = |answer: ProbeAnswer| {
        let finding = diagnose(answer);
        tell(&finding);
        let well = !matches!(finding.mark, Mark::Fail(_));
        findings.push(finding);
        well
    };
    let ear = ear::Bound::bind(patient.listen).await;
    let running = ear.is_theirs();
    homeserver::probe(patient, ear, &mut note).await;
    if let Some(claude) = &patient.claude
        && note(ProbeAnswer::Program(mind::claude::version(claude).await))
        && note(ProbeAnswer::Handshake(mind::claude::handshake(claude, SCHEMA).await))
    {
        let run = Uuid::new_v5(&Uuid::NAMESPACE_OID, patient.request.0.as_bytes());
        note(ProbeAnswer::Contract(mind::claude::contract(claude, SCHEMA, run, patient.now).await));
    }
    if running && let Some(ready) = running_bridge(patient).ready().await {
        note(ProbeAnswer::Ready(ready));
    }
    for answer in host::store(patient, running).await {
        note(answer);
    }
    note(host::disk(&patient.store));
    note(ProbeAnswer::Encryption);
    findings
}

fn running_bridge(patient: &Patient) -> Running<'_> {
    Running {
        transport: &*patient.transport,
        listen: patient.listen,
        hs_token: &patient.registration.hs_token,
    }
}

#[cfg(test)]
mod tests;
