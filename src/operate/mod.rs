//! What operators and their scripts meet: exit codes, and the doctor.
//!
//! It only asks; nothing here changes what the bridge does.

pub mod doctor;
pub mod exit;
pub mod finding;

pub use exit::ExitCode;
pub use finding::{Finding, Mark};
