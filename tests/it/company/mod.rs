//! Several Personas and people together: what Personas say by construction, what was said and asked, and what must hold of it.
//!
//! It knows no homeserver and no mind: scenes on virtual time, the real binary on real homeservers and the bench of the week
//! bring their own, and are held to the same laws.

mod account;
mod batch;
mod dice;
mod laws;
mod pairs;
mod purse;
mod talker;

pub(crate) use account::{Account, Asked, Cause, Line, Said};
pub(crate) use dice::Dice;
pub(crate) use laws::Limits;
pub(crate) use purse::Purse;
pub(crate) use talker::{Company, Manner, Talker, Who, filler, token};
