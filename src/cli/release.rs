//! `release`: what was put aside goes again.

use super::beside::{Whom, order};
use super::{CliError, print};
use crate::bridge::orders::Order;
use crate::config::Environment;
use crate::operate::ExitCode;

pub(super) async fn release(whom: Whom, environment: Environment) -> Result<ExitCode, CliError> {
    let (config, of) = whom.load(environment)?;
    let of = of.and_then(|id| {
        let mut personas = config.bridge.personas.iter().map(|known| &known.persona);
        personas.find(|known| known.id == id).map(|known| (id, known.user.clone()))
    });
    let follows = order(&config, &Order::Release { of }).await?;
    print(&format!("{follows}\n"))
}
