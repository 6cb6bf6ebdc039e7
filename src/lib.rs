//! persona-bridge: Personas with one persistent `claude` session each, living on Matrix as appservice users.

pub mod bridge;
pub mod cli;
pub mod config;
pub mod conversation;
pub mod demo;
pub mod homeserver;
pub mod mind;
pub mod operate;
pub mod persona;
pub mod store;
pub mod telemetry;
