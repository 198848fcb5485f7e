//! The work of the queues that provider webhooks fill: payments' facts, and account syncs.
//!
//! Claims, heartbeats, retries and dead letters belong to the `queue` crate.

mod calls;
mod facts;
mod holdings;
mod sync;
mod transactions;

use contract::{Cause, RetryClass, Verdict};
use store::Effect;
use telemetry::log::chain;

pub use facts::KillbillFacts;
pub use sync::SnaptradeSync;

fn database_failed(error: &store::Error) -> Verdict<Effect> {
    let code = if matches!(error, store::Error::Unseal { .. }) { "unseal" } else { "database" };
    Verdict::Retry(Cause::new(RetryClass::Transient, code, chain(error)))
}
