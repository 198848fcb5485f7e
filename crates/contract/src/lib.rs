//! What every process agrees on: workloads and their queues, the envelope of a command, statuses,
//! verdicts, reasons, and the names of the settings.
//!
//! Gateway and workers compile against this crate, so a change that would strand messages in flight
//! fails the build instead of the night shift. The numbers are seeded into `spillway.workload` by the
//! migrations and compared field by field when a process starts.
//!
//! **Invariant:** nothing in here does I/O, reads a clock or awaits.

pub mod command;
pub mod dead_letter;
pub mod env;
pub mod job;
pub mod killbill;
pub mod kind;
pub mod queue;
pub mod retry;
pub mod snaptrade;
pub mod status;
pub mod verdict;
pub mod workload;

pub use command::{Actor, NewCommand, Origin};
pub use dead_letter::{DeadReason, LetterState, ReplayPolicy};
pub use job::Job;
pub use queue::QueueSpec;
pub use retry::RetryClass;
pub use status::{Blocked, Status};
pub use verdict::{Cause, Verdict};
pub use workload::{Class, Workload, WorkloadSpec};
