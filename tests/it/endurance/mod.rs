//! The real binary on real homeservers, through crashes, outages and awkward moments: each message is answered once.
//!
//! Messages carry numbered words (`w0001`); an answer carries the words that it answers. So what was said and what was
//! answered are two lists that must be equal, read from the room as an ordinary user sees it.

mod alarm;
mod exits;
mod ground;
mod halt;
mod history;
mod kill;
mod leaks;
mod ledger;
mod life;
mod memory;
mod outage;
mod places;
mod rooms;
mod soak;
mod spoilt;
mod together;
mod typing;
mod wire;
