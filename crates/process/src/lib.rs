//! The life of a process, the same for every binary: settings or exit 64, required dependencies within the
//! start budget or exit 69, then work until a signal, and exit 0; or exit 75 once only a new process helps. Beside
//! its work each one does its share of the platform's upkeep.

mod dependency;
mod elected;
mod exit;
mod presence;
mod signal;
mod start;
mod trimming;
mod upkeep;
mod watching;
mod worker;

pub use dependency::{check, keep_checking, require};
pub use exit::{Error, report};
pub use presence::identity;
pub use signal::shutdown_signal;
pub use start::{Options, load};
pub use upkeep::Upkeep;
pub use worker::{Resources, WorkerOptions, work};
