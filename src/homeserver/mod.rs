//! The homeserver's side: its transactions to us (the ear) and our calls to it (the mouth).
//!
//! It never decides who hears or says what. The only user of axum, reqwest and `ruma::api`.

pub mod appservice;
pub mod client;
pub mod content;
pub mod event;
pub mod registration;
pub mod serve;
