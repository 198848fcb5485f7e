//! The life of a process, the same for every binary: settings or exit 64, required dependencies within the
//! start budget or exit 69, then work until a signal, and exit 0.

mod dependency;
mod dispatches;
mod exit;
mod signal;
mod start;
mod worker;

pub use dependency::{check, keep_checking, require};
pub use exit::{Error, report};
pub use signal::shutdown_signal;
pub use start::{Options, load};
pub use worker::{Resources, WorkerOptions, work};
