//! A Persona's session: which one it is, what its requests cost, and what is to be done with it.
//!
//! Pure: it never meets a clock, a file or a process. Prices are data (`config/prices.toml`); nothing here names a model.

pub mod account;
pub mod care;
pub mod hazard;
pub mod identity;
pub mod ledger;
pub mod meter;
pub mod price;
pub mod sums;
pub mod tasks;
pub mod terms;

pub use account::{Account, Attempt, Counted};
pub use care::{Care, Moment, Policy, Reason, Standing, care, next_look};
pub use hazard::Gaps;
pub use identity::{Fingerprint, Session, marks, next_session, session_id};
pub use ledger::{CacheVerdict, Cause, Entry, EntryKind, Request};
pub use meter::Meter;
pub use price::{Price, Prices, Tariff, Tokens, Ttl, Usd};
pub use tasks::Unnoted;
pub use terms::{Added, Terms};
