//! The probes that look at this machine: the store's folder and the disk under it.

use std::path::Path;

use super::Patient;
use super::diagnose::{ProbeAnswer, StoreAnswer};
use crate::store::{Config, Store};

/// Opens an existing store, looks at the brake in it, and closes it again; where there is none, tries whether one can be
/// made.
pub(super) async fn store(patient: &Patient, running: bool) -> Vec<ProbeAnswer> {
    let path = patient.store.path.clone();
    let is_new = !path.exists();
    if let Err(error) = try_write(if is_new { existing(&path) } else { &path }) {
        return vec![ProbeAnswer::Store(path, StoreAnswer::Unwritable(error.to_string()))];
    }
    if is_new {
        return vec![ProbeAnswer::Store(path, StoreAnswer::New)];
    }
    let (config, opening) = (patient.store.clone(), patient.opening.clone());
    let look = move || Store::open(&config, opening).map(|store| store.brake());
    match tokio::task::spawn_blocking(look).await {
        Ok(Ok(brake)) => {
            let brake = brake.map(|brake| brake.held()).map_err(|error| error.to_string());
            vec![ProbeAnswer::Store(path, StoreAnswer::Opened), ProbeAnswer::Brake(brake)]
        }
        Ok(Err(error)) => vec![ProbeAnswer::Store(path, StoreAnswer::Refused(error, running))],
        Err(error) => vec![ProbeAnswer::Store(path, StoreAnswer::Unwritable(error.to_string()))],
    }
}

/// Asks how much disk is free under the store.
pub(super) fn disk(store: &Config) -> ProbeAnswer {
    let free = rustix::fs::statvfs(existing(&store.path))
        .map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
        .map_err(|error| error.to_string());
    ProbeAnswer::Disk(store.path.clone(), free, store.min_free)
}

/// The path itself, or the nearest folder above it that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}

fn try_write(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".persona-bridge-doctor-{}", std::process::id()));
    std::fs::write(&probe, "")?;
    std::fs::remove_file(&probe)
}
