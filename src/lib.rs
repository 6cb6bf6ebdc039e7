//! persona-bridge: Personas with one persistent `claude` session each, living on Matrix as appservice users.

pub mod bridge;
pub mod conversation;
pub mod homeserver;
pub mod mind;
pub mod persona;
pub mod store;
