//! A typed command: what the payload of one kind of message looks like.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::workload::Workload;

/// A command that travels through a queue.
///
/// The payload is stored in the ledger when the command is accepted: a worker reads this frozen input, so a replay
/// next week does the same work. Nobody changes it but an operator, by a repair that keeps the old one;
/// [`crate::kind::checked`] lists every job, so that a repaired input is checked like a request.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The workload whose queue carries it.
    const WORKLOAD: Workload;

    /// The stable name of this payload's shape.
    const KIND: &'static str;

    /// Raised when the shape changes; an older worker hands a newer message back untouched.
    const VERSION: u32;
}
