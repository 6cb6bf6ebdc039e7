//! What operators and their scripts meet: exit codes, the doctor, and the simulation of costs.
//!
//! It only asks; nothing here changes what the bridge does.

pub mod doctor;
pub mod exit;
pub mod finding;
pub mod simulate;

pub use exit::ExitCode;
pub use finding::{Finding, Mark};
