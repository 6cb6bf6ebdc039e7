//! Whether the files of Personas' states say what the store has: for `check` and `doctor`, which change nothing of what it says.

use super::{beside, opening};
use crate::bridge::PersonaConfig;
use crate::bridge::orders::Order;
use crate::bridge::states::States;
use crate::config::Config;
use crate::operate::Finding;
use crate::persona::State;
use crate::store::{Store, StoreError};

const LINE: &str = "state";

/// Why the store was not looked into.
enum Unseen {
    /// A running bridge has it.
    Bridge,
    /// It cannot be, and why.
    Closed(String),
}

/// Looks without asking anybody.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    if files(config).next().is_none() {
        return Vec::new();
    }
    match open(config) {
        Ok(store) => files(config).map(|(persona, file)| found(persona, file, store.as_ref())).collect(),
        Err(Unseen::Bridge) => vec![unseen("a running bridge has the store; the doctor asks it")],
        Err(Unseen::Closed(reason)) => vec![unseen(&reason)],
    }
}

/// Looks, and asks the bridge where one runs.
pub(super) async fn ask(config: &Config) -> Vec<Finding> {
    if files(config).next().is_none() {
        return Vec::new();
    }
    let opened = config.clone();
    match tokio::task::spawn_blocking(move || open(&opened)).await {
        Ok(Ok(store)) => files(config).map(|(persona, file)| found(persona, file, store.as_ref())).collect(),
        Ok(Err(Unseen::Bridge)) => {
            let mut findings = Vec::new();
            for (persona, file) in files(config) {
                findings.push(told(config, persona, file).await);
            }
            findings
        }
        Ok(Err(Unseen::Closed(reason))) => vec![unseen(&reason)],
        Err(error) => vec![unseen(&error.to_string())],
    }
}

fn files(config: &Config) -> impl Iterator<Item = (&PersonaConfig, &State)> {
    config.bridge.personas.iter().filter_map(|persona| Some((persona, persona.state.as_ref()?)))
}

/// Opens the store, if there is one.
fn open(config: &Config) -> Result<Option<Store>, Unseen> {
    if !config.store.path.exists() {
        return Ok(None);
    }
    match Store::open(&config.store, opening(config)) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Locked { .. }) => Err(Unseen::Bridge),
        Err(error) => Err(Unseen::Closed(error.to_string())),
    }
}

fn found(persona: &PersonaConfig, file: &State, store: Option<&Store>) -> Finding {
    let id = &persona.persona.id;
    match store.map(|store| store.state(id)).transpose() {
        Ok(Some(Some(kept))) => compare(persona, file, &kept),
        Ok(Some(None) | None) => Finding::ok(LINE, format!("the file of {id} is to be her first")),
        Err(error) => unseen(&error.to_string()),
    }
}

async fn told(config: &Config, persona: &PersonaConfig, file: &State) -> Finding {
    let order = Order::State { persona: persona.persona.id.clone(), asked: States::Get };
    match beside::order(config, &order).await.map(|text| State::read(&text)) {
        Ok(Ok(kept)) => compare(persona, file, &kept),
        Ok(Err(error)) => unseen(&error.to_string()),
        Err(error) => unseen(&error.to_string()),
    }
}

fn unseen(reason: &str) -> Finding {
    Finding::info(LINE, format!("it was not looked at: {reason}"))
}

fn compare(persona: &PersonaConfig, file: &State, kept: &State) -> Finding {
    let (id, stamp) = (&persona.persona.id, kept.updated_at().unwrap_or_default());
    if kept.says_as(file) {
        return Finding::ok(LINE, format!("the file of {id} says what the store has, of {stamp}"));
    }
    Finding::warn(
        LINE,
        format!("the file of {id} says something else than the store, which is right; it is of {stamp}"),
        format!(
            "put the change into what `persona get {id}` prints and `persona put {id}` that, or write it over the file"
        ),
    )
}
