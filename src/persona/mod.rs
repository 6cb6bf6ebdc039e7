//! What a Persona does next. Pure: a [`decide::Situation`] in, a [`decide::Step`] out.
//!
//! It never meets a clock, a disk, a process or a server, so it cannot fail; the shell carries out what it decides.

pub mod brake;
pub mod budget;
pub mod decide;
pub mod ending;
pub mod guard;
pub mod heart;
pub mod lanes;
pub mod memory;
pub mod places;
pub mod probe;
pub mod schema;
pub mod session;
pub mod state;
pub mod usage;

pub use brake::{Brake, Heeded};
pub use budget::Budget;
pub use decide::{Hold, LaneMail, MindState, OpenTurn, Situation, Step, Wake, decide};
pub use ending::{Ending, Troubles, Verdict, shorter, tighter, verdict};
pub use guard::{Among, Limit};
pub use heart::Heart;
pub use places::Places;
pub use state::State;
pub use usage::{RequestUsage, Usage};
