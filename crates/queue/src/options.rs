//! How one worker process works on one queue.

use std::time::Duration;

use contract::env::keys;
use contract::{QueueSpec, Workload};
use settings::{Env, Noted};

const CALL_MARGIN: Duration = Duration::from_secs(5);

/// See the fields.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose queue.
    pub workload: Workload,
    /// Runs in work at a time.
    pub concurrency: u32,
    /// How long an idle worker waits before it looks again.
    pub poll: Duration,
    /// How long running work may go on after a stop.
    pub grace: Duration,
    /// A shorter lease than the contract's, for drills and tests.
    pub lease: Duration,
    /// A shorter run deadline than the contract's, for drills and tests.
    pub run_deadline: Duration,
    /// An outside call may take this much longer than its timeout and still ends within the lease. Shorter than usual
    /// only where the lease is, in drills and tests.
    pub call_margin: Duration,
}

impl Options {
    /// Reads the worker settings of `workload`. The concurrency has no default: nobody but the operator knows
    /// what the machine and the provider can take.
    pub fn read(env: &mut Env, workload: Workload) -> Result<Self, Noted> {
        let key = workload.spec().concurrency;
        let concurrency = env.count(key, 1..=500);
        let poll = env.duration(&keys::WORKER_POLL_MS, 10..=60_000);
        let pool = env.count(&keys::DATABASE_POOL, 1..=500);
        let (concurrency, poll, pool) = (concurrency?, poll?, pool?);
        if concurrency > pool {
            let sentence = format!(
                "{concurrency} runs at a time would wait for one another's connections: {} is {pool}",
                keys::DATABASE_POOL.name
            );
            return Err(env.refuse(key, sentence));
        }
        Ok(Self { concurrency, poll, ..Self::of(workload) })
    }

    /// One run at a time, with the contract's times.
    pub const fn of(workload: Workload) -> Self {
        Self {
            workload,
            concurrency: 1,
            poll: Duration::from_millis(200),
            grace: Duration::from_secs(20),
            lease: workload.queue().lease,
            run_deadline: workload.spec().run_deadline,
            call_margin: CALL_MARGIN,
        }
    }

    /// The queue as this process claims from it.
    pub(crate) const fn queue(&self) -> QueueSpec {
        let queue = self.workload.queue();
        QueueSpec { name: queue.name, dead_letter: queue.dead_letter, lease: self.lease }
    }
}
