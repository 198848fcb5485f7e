//! Brings a run to its end in the database, trying again while the lease lasts.

use std::error::Error as StdError;
use std::time::{Duration, Instant};

use contract::{Cause, DeadReason, RetryClass};
use policy::settle::Settlement;
use store::ledger::{Dead, Done, Unfinished, bury, delay, drop_closed, park, succeed, succeed_with};
use store::queue::hand_back;
use store::{Effect, Fault};
use uuid::Uuid;

use crate::run::Run;

/// What the run came to, as its metric label.
pub(crate) type Outcome = &'static str;

/// The pause between two tries to settle.
const RETRY: Duration = Duration::from_millis(200);

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
            Ok(ours) => self.judged("settle", "succeeded", ours),
            Err(error) if error.fault() == Fault::Values => {
                let sentence = "the database refused to store the effect of the run";
                let cause = Cause::new(RetryClass::Permanent, "effect_refused", sentence);
                tracing::error!(error = &error as &dyn StdError, queue = self.queue.name, "effect refused");
                self.bury(DeadReason::EffectRefused, &cause).await
            }
            Err(_) => "unsettled",
        }
    }

    async fn write_success(&self, done: &Done, effect: &Effect) -> Result<bool, store::Error> {
        if effect.is_none() {
            Ok(!succeed(&self.pool, self.queue.name, std::slice::from_ref(done)).await?.is_empty())
        } else {
            succeed_with(&self.pool, done, effect).await
        }
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

    /// Gives the message back untouched.
    pub(crate) async fn hand_back(&self) -> Outcome {
        let message = (self.lease.fence(), self.command);
        self.fenced("hand_back", "handed_back", || hand_back(&self.pool, &self.queue, message)).await
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
            Ok(ours) => self.judged(operation, outcome, ours),
            Err(_) => "unsettled",
        }
    }

    fn judged(&self, operation: &'static str, outcome: Outcome, ours: bool) -> Outcome {
        if ours {
            return outcome;
        }
        self.metrics.stale_writes.with_label_values(&[self.queue.name, operation]).inc();
        "lost"
    }

    /// Tries again while the database is away and the lease is ours; after that the message comes back by
    /// itself.
    async fn retried<F: Future<Output = Result<bool, store::Error>>>(
        &self,
        operation: &'static str,
        write: impl Fn() -> F,
    ) -> Result<bool, store::Error> {
        loop {
            let error = match write().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            self.metrics.loop_errors.with_label_values(&[self.queue.name, operation]).inc();
            let hopeless = error.fault() != Fault::Passing || Instant::now() >= self.lease.held_until();
            tracing::warn!(
                queue = self.queue.name,
                command = %self.lease.command(),
                operation,
                error = &error as &dyn StdError,
                hopeless,
                "writing the end of a run"
            );
            if hopeless {
                return Err(error);
            }
            tokio::time::sleep(RETRY).await;
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
