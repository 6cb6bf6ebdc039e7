//! Stand-ins for the other side of an edge, with real state; used by the integration tests and the benches.
#![allow(dead_code, reason = "each binary that includes this uses its own part of it")]

pub(crate) mod cache;
pub(crate) mod homeserver;
pub(crate) mod messages_api;
mod prefix;
pub(crate) mod proxy;
