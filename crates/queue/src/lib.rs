//! The worker runtime: claim → heartbeat → handle → settle, and a stop that loses nothing.
//!
//! A workload implements [`Handler`] and nothing else. Delivery is at least once; the effect of a run is
//! committed exactly once, because every write of a run carries the lease `(msg_id, read_ct)`.

mod compute;
mod dispatch;
mod handler;
mod heart;
mod message;
mod options;
mod routes;
mod run;
mod runner;
mod search;
mod settle;
mod suspects;
mod ticker;
mod wake;

pub use compute::Stop;
pub use dispatch::{Busy, Dispatch, Dispatched};
pub use handler::{Call, Handler, Lease};
pub use options::Options;
pub use routes::routes;
pub use runner::Runner;
pub use search::Search;

/// Why the runtime did not start or ended by itself. Errors in between are counted, logged and tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection for heartbeats can't be prepared.
    #[error("preparing the heartbeat of `{queue}`")]
    Heart {
        /// The queue's name.
        queue: &'static str,
        /// What went wrong.
        source: store::Error,
    },
    /// The system refuses another thread.
    #[error("starting the heartbeat thread of `{queue}`")]
    Thread {
        /// The queue's name.
        queue: &'static str,
        /// What went wrong.
        source: std::io::Error,
    },
    /// It has stopped in order, because only a new process gets rid of these threads.
    #[error("{abandoned} threads compute for runs on `{queue}` that have ended")]
    WornOut {
        /// The queue's name.
        queue: &'static str,
        /// How many there were.
        abandoned: usize,
    },
}
