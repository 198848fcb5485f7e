//! Brings a run to its end in the database, trying again while the lease lasts.

use std::time::{Duration, Instant};

use contract::{Cause, DeadReason, RetryClass};
use policy::settle::Settlement;
use store::ledger::{Dead, Done, Unfinished, bury, delay, drop_closed, park, succeed_with};
use store::queue::hand_back;
use store::suspect::charge;
use store::{Effect, Fault};
use uuid::Uuid;

use crate::run::Run;
use crate::ticker::Trouble;

/// Whether a fenced write found its lease.
#[derive(Clone, Copy)]
enum Written {
    /// It did.
    Ours,
    /// It did not, but an earlier try of the same write may have.
    Perhaps,
    /// It did not: the lease was another worker's.
    Stale,
}

/// What the run came to, as its metric label.
pub(crate) type Outcome = &'static str;

/// The pause between two tries to settle.
const RETRY: Duration = Duration::from_millis(200);

/// A run that can't be settled for this long is left: its message comes back by itself when the lease ends, and
/// its slot is needed.
const BUDGET: Duration = Duration::from_secs(20);

impl Run {
    /// Writes the end of a run. The lease stays in the heartbeat meanwhile.
    pub(crate) async fn settle(&self, settlement: Settlement<Effect>) -> Outcome {
        match settlement {
            Settlement::Succeed(effect) => self.succeed(&effect).await,
            Settlement::Delay { after, cause } => {
                self.log_failure("failed; will be tried again", &cause);
                let unfinished = self.unfinished(after, &cause);
                self.fenced("delay", "retried", || delay(&self.pool, &unfinished)).await
            }
            Settlement::Park { why, after, cause } => {
                self.log_failure("not yet", &cause);
                let unfinished = self.unfinished(after, &cause);
                self.fenced("park", "not_yet", || park(&self.pool, &unfinished, why)).await
            }
            Settlement::DeadLetter { reason, cause } => self.bury(reason, &cause).await,
        }
    }

    async fn succeed(&self, effect: &Effect) -> Outcome {
        let done = Done {
            fence: self.lease.fence(),
            command: self.lease.command(),
            started_at: self.claimed_at,
            result: effect.result(),
            request_ids: self.lease.request_ids(),
        };
        match self.retried("settle", || self.write_success(&done, effect)).await {
            Ok(written) => self.judged("settle", "succeeded", written),
            Err(trouble) if trouble.fault == Fault::Values => {
                let cause = Cause::new(
                    RetryClass::Permanent,
                    "effect_refused",
                    "the database refused to store the effect of the run; the worker's log has its reason",
                );
                tracing::error!(error = trouble.chain, queue = self.queue.name, command = %self.lease.command(), "effect refused");
                self.bury(DeadReason::EffectRefused, &cause).await
            }
            Err(trouble) if trouble.fault == Fault::Other => self.fail_unsettled().await,
            Err(_) => "unsettled",
        }
    }

    /// A success that can't be written for a reason that nobody foresaw counts as a failure: else it would be
    /// repeated for ever, provider calls and all.
    async fn fail_unsettled(&self) -> Outcome {
        let cause =
            Cause::new(RetryClass::Transient, "unsettled", "the success of the run could not be written");
        self.log_failure("failed; will be tried again", &cause);
        let unfinished = self.unfinished(self.workload.spec().backoff_first, &cause);
        self.fenced("delay", "retried", || delay(&self.pool, &unfinished)).await
    }

    async fn write_success(&self, done: &Done, effect: &Effect) -> Result<bool, Trouble> {
        faults::point!("wk.before_archive", store::Error::Standby);
        let is_ours = if effect.is_none() {
            // From here on it needs no slot: another run may begin.
            let _room = self.ticker.room().await;
            self.free_slot();
            self.ticker.settle(done.clone()).await?
        } else {
            succeed_with(&self.pool, done, effect).await?
        };
        faults::point!("wk.after_archive", store::Error::Standby);
        Ok(is_ours)
    }

    /// Gives the message up.
    pub(crate) async fn bury(&self, reason: DeadReason, cause: &Cause) -> Outcome {
        self.log_failure("dead-lettered", cause);
        let dead = Dead {
            id: Uuid::now_v7(),
            fence: self.lease.fence(),
            command: self.command,
            workload: self.workload,
            reason,
            cause,
            worker: &self.worker,
        };
        self.fenced("bury", "dead_lettered", || bury(&self.pool, &dead)).await
    }

    /// Charges the crash that ended the last claim. False where nothing more is to be done in this one.
    pub(crate) async fn charge(&self, crashes: u32) -> bool {
        let (fence, command) = (self.lease.fence(), self.lease.command());
        let charged = self.retried("charge", || charge(&self.pool, fence, command, crashes)).await;
        charged.is_ok_and(|written| !matches!(written, Written::Stale))
    }

    /// Gives up what took its process down too often.
    pub(crate) async fn bury_crashed(&self, crashes: u32) -> Outcome {
        let sentence = format!("its process died {crashes} times with nothing else at work in it");
        self.bury(DeadReason::WorkerCrashed, &Cause::new(RetryClass::Permanent, "worker_crashed", sentence))
            .await
    }

    /// Gives the message back untouched, once no call of this run can be under way any more.
    pub(crate) async fn hand_back(&self) -> Outcome {
        let (fence, pause) = (self.lease.fence(), self.lease.call_left());
        self.fenced("hand_back", "handed_back", || hand_back(&self.pool, fence, self.command, pause)).await
    }

    /// Archives the message of a command that needs no run.
    pub(crate) async fn drop_closed(&self) -> Outcome {
        self.fenced("drop", "closed", || drop_closed(&self.pool, self.lease.fence())).await
    }

    fn unfinished<'a>(&'a self, after: Duration, cause: &'a Cause) -> Unfinished<'a> {
        Unfinished {
            fence: self.lease.fence(),
            command: self.lease.command(),
            after,
            cause,
            worker: &self.worker,
        }
    }

    async fn fenced<F: Future<Output = Result<bool, store::Error>>>(
        &self,
        operation: &'static str,
        outcome: Outcome,
        write: impl Fn() -> F,
    ) -> Outcome {
        match self.retried(operation, write).await {
            Ok(written) => self.judged(operation, outcome, written),
            Err(_) => "unsettled",
        }
    }

    fn judged(&self, operation: &'static str, outcome: Outcome, written: Written) -> Outcome {
        match written {
            Written::Ours | Written::Perhaps => outcome,
            Written::Stale => {
                self.metrics.stale_writes.with_label_values(&[self.queue.name, operation]).inc();
                "lost"
            }
        }
    }

    /// Tries again while the database is away, the lease is ours and the budget lasts; after that the message
    /// comes back by itself.
    async fn retried<E: Into<Trouble>, F: Future<Output = Result<bool, E>>>(
        &self,
        operation: &'static str,
        write: impl Fn() -> F,
    ) -> Result<Written, Trouble> {
        let deadline = (Instant::now() + BUDGET).min(self.lease.held_until());
        let mut unsure = false;
        loop {
            let trouble = match write().await {
                Ok(true) => return Ok(Written::Ours),
                // An earlier try may have been committed before its answer was lost.
                Ok(false) if unsure => return Ok(Written::Perhaps),
                Ok(false) => return Ok(Written::Stale),
                Err(error) => error.into(),
            };
            self.metrics.loop_errors.with_label_values(&[self.queue.name, operation]).inc();
            let hopeless = trouble.fault != Fault::Passing || Instant::now() >= deadline;
            let (queue, command) = (self.queue.name, self.lease.command());
            tracing::warn!(queue, %command, operation, error = trouble.chain, hopeless, "writing the end of a run");
            if hopeless || self.give_up.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
                return Err(trouble);
            }
            unsure = true;
        }
    }

    fn log_failure(&self, what: &'static str, cause: &Cause) {
        tracing::warn!(
            queue = self.queue.name,
            command = %self.lease.command(),
            trace_id = self.lease.trace().id(),
            failure.class = %cause.class,
            failure.code = cause.code,
            failure.message = cause.message,
            provider.request_id = cause.request_id,
            "{what}"
        );
    }
}
