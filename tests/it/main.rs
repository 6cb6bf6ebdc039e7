//! Contracts of the edges and the whole bridge on real components; one binary, so that clients are built once.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may, and so may its helpers")]

mod architecture;
mod bridge;
mod child_clock;
mod claude_cli;
mod claude_process;
mod claude_supervision;
mod cli;
mod cli_refusals;
mod client;
mod company;
mod contract;
mod demo;
mod docs;
mod doctor;
mod ear;
mod endurance;
mod fake;
mod fake_queue;
mod guarantees;
mod homeserver_contract;
mod minds;
mod power_loss;
mod servers;
mod simulate;
mod simulation;
mod store_model;
mod tools;
mod user;
