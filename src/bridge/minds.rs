//! Makes the minds that the config names.

use futures_util::future::BoxFuture;

use super::run::MindMaker;
use super::{Config, Mind, PersonaConfig};
use crate::conversation::reply::SCHEMA;
use crate::mind::{MindHandle, claude, scripted};

/// The minds of a config.
pub fn minds(config: &Config) -> MindMaker {
    let mind = config.mind.clone();
    Box::new(move |persona: &PersonaConfig| -> (MindHandle, BoxFuture<'static, ()>) {
        let id = persona.persona.id.clone();
        match &mind {
            Mind::Claude(config) => {
                let (handle, life) = claude::mind((**config).clone(), id, SCHEMA);
                (handle, Box::pin(life))
            }
            Mind::Scripted(config) => {
                let (handle, life) = scripted::mind(config.clone(), id);
                (handle, Box::pin(life))
            }
        }
    })
}
