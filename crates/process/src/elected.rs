//! Standing for a job that one process does for all. Whether it is held is what the database says.

use std::time::Duration;

use store::Pool;
use store::elected_job::{hold, release};
use telemetry::log::chain;
use tokio::time::Instant;

/// A holder that dies is succeeded after this.
const LEASE: Duration = Duration::from_mins(1);

/// How long what the database said is taken for granted: much less than the lease.
const TRUSTED: Duration = Duration::from_secs(10);

/// How often a process stands for election, and a holder renews.
pub(crate) const TERM: Duration = Duration::from_secs(15);

/// A candidate for one job.
pub(crate) struct Elected {
    pool: Pool,
    job: &'static str,
    name: String,
    held_since: Option<Instant>,
}

impl Elected {
    pub(crate) fn new(pool: Pool, job: &'static str, name: String) -> Self {
        Self { pool, job, name, held_since: None }
    }

    /// True while this process does the job.
    pub(crate) async fn is_holder(&mut self) -> bool {
        if self.held_since.is_some_and(|since| since.elapsed() < TRUSTED) {
            return true;
        }
        let (was_holder, asked) = (self.held_since.is_some(), Instant::now());
        let held = hold(&self.pool, self.job, &self.name, LEASE).await.unwrap_or_else(|error| {
            tracing::debug!(job = self.job, error = chain(&error), "not elected");
            false
        });
        self.held_since = held.then_some(asked);
        if held != was_holder {
            tracing::info!(job = self.job, held, "elected job");
        }
        held
    }

    /// Gives the job to whoever asks next.
    pub(crate) async fn give_back(&mut self) {
        if self.held_since.take().is_some()
            && let Err(error) = release(&self.pool, self.job, &self.name).await
        {
            tracing::debug!(job = self.job, error = chain(&error), "the lease of the job ends by itself");
        }
    }
}
