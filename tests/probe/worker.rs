//! The handler, and how long what it does may take.

use std::time::Duration;

use contract::Verdict;
use lab::probe::Probe;
use queue::{Handler, Lease};
use store::Effect;

use crate::act::perform;
use crate::call::Provider;

/// The longest call under the contract's lease.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a drill wants to be shorter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) lease: Option<Duration>,
    pub(crate) run_deadline: Option<Duration>,
}

impl Times {
    /// Sets the queue's times, and answers how long a call may take: with its margin it fits what is left of a lease
    /// when the next beat is due.
    pub(crate) fn set(self, queue: &mut queue::Options) -> Duration {
        queue.lease = self.lease.unwrap_or(queue.lease);
        queue.run_deadline = self.run_deadline.unwrap_or(queue.run_deadline);
        queue.call_margin = queue.call_margin.min(queue.lease / 8);
        CALL_TIMEOUT.min(queue.lease / 4)
    }
}

/// Works on probes.
pub(crate) struct Worker(Provider);

impl Worker {
    /// Its calls take so long at most.
    pub(crate) fn new(call_timeout: Duration) -> Self {
        Self(Provider::new(call_timeout))
    }
}

impl Handler for Worker {
    type Job = Probe;

    async fn handle(&self, job: &Probe, lease: &Lease) -> Verdict<Effect> {
        if let Some(verdict) = perform(&job.act, lease).await {
            return verdict;
        }
        self.0.call(job, lease).await
    }
}

#[cfg(test)]
mod tests;
