//! One run of one message.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use contract::{Blocked, Cause, QueueSpec, RetryClass, Verdict, Workload};
use policy::settle::{History, settle};
use store::queue::Claimed;
use store::{Effect, Pool};
use telemetry::{Metrics, Trace};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::handler::{Handler, Lease};
use crate::message::{self, Message};
use crate::options::Options;
use crate::settle::Outcome;

/// How long a message of a newer version waits before somebody looks again.
const NEWER_VERSION_PAUSE: Duration = Duration::from_secs(30);

/// Everything that one run needs to come to an end.
pub(crate) struct Run {
    pub(crate) pool: Pool,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: QueueSpec,
    pub(crate) workload: Workload,
    pub(crate) worker: Arc<str>,
    pub(crate) lease: Lease,
    pub(crate) command: Option<Uuid>,
    pub(crate) claimed_at: DateTime<Utc>,
    /// Cancelled when the process can't wait any longer.
    pub(crate) give_up: CancellationToken,
    deadline: Duration,
    history: History,
}

impl Run {
    /// Prepares a run. `claim_sent` was read before the claim was sent, so the lease surely lasts that long.
    pub(crate) fn new(
        options: &Options,
        pool: &Pool,
        metrics: &Arc<Metrics>,
        worker: &Arc<str>,
        claimed: &Claimed,
        claim_sent: Instant,
        give_up: CancellationToken,
    ) -> Self {
        let ledger = claimed.command.as_ref();
        let history = ledger.map_or_else(History::default, |ledger| History {
            failures: ledger.attempts,
            waits: ledger.waits,
            waiting: ledger.waiting,
        });
        let trace = Trace::follow(
            ledger.map(|ledger| ledger.traceparent.as_str()),
            ledger.map(|ledger| ledger.tracestate.as_str()),
        );
        let command = ledger.map(|ledger| ledger.id);
        Self {
            pool: pool.clone(),
            metrics: metrics.clone(),
            queue: options.queue(),
            workload: options.workload,
            worker: worker.clone(),
            lease: Lease::new(
                claimed.fence,
                command.unwrap_or_default(),
                history.failures + 1,
                trace,
                claim_sent + options.lease,
            ),
            command,
            claimed_at: claimed.claimed_at,
            give_up,
            deadline: options.run_deadline,
            history,
        }
    }

    /// Runs the handler and settles.
    pub(crate) async fn finish<H: Handler>(self, handler: Arc<H>, claimed: Claimed) -> Outcome {
        let job: H::Job = match message::read(&claimed) {
            Message::Job(job) => job,
            Message::Closed => return self.drop_closed().await,
            Message::Unreadable(reason, cause) => return self.bury(reason, &cause).await,
            Message::Newer(cause) => {
                let verdict =
                    Verdict::NotYet { why: Blocked::NewerVersion, after: Some(NEWER_VERSION_PAUSE), cause };
                return self.judge(verdict).await;
            }
        };
        let lease = self.lease.clone();
        // A task of its own, so that a panic ends the run and not the worker.
        let handled = AbortOnDrop(tokio::spawn(async move { handler.handle(&job, &lease).await }));
        match self.watched(handled, &self.give_up).await {
            Ending::Verdict(verdict) => self.judge(verdict).await,
            Ending::Lost => "lost",
            Ending::Stopped => self.hand_back().await,
        }
    }

    async fn watched(&self, mut handled: AbortOnDrop, give_up: &CancellationToken) -> Ending {
        let ending = tokio::select! {
            finished = &mut handled.0 => match finished {
                Ok(verdict) => return Ending::Verdict(verdict),
                Err(_) => return Ending::Verdict(failed("panic", "the handler panicked")),
            },
            () = self.lease_ends() => Ending::Lost,
            () = give_up.cancelled() => Ending::Stopped,
            () = tokio::time::sleep(self.deadline) => {
                Ending::Verdict(failed("deadline", "the run took longer than its workload allows"))
            }
        };
        // It must have stopped before anybody else may begin.
        handled.0.abort();
        let _ = (&mut handled.0).await;
        ending
    }

    /// Returns when the lease is lost: taken by another worker, or not renewed in time, whatever the database
    /// would say by now.
    async fn lease_ends(&self) {
        let expired = async {
            loop {
                let until = self.lease.held_until();
                if Instant::now() >= until {
                    return;
                }
                tokio::time::sleep_until(until.into()).await;
            }
        };
        tokio::select! {
            () = self.lease.lost().cancelled() => {}
            () = expired => self.lease.lose(),
        }
    }

    async fn judge(&self, verdict: Verdict<Effect>) -> Outcome {
        self.settle(settle(self.workload.spec(), self.history, verdict, rand::random())).await
    }
}

enum Ending {
    Verdict(Verdict<Effect>),
    Lost,
    Stopped,
}

fn failed(code: &str, sentence: &str) -> Verdict<Effect> {
    Verdict::Retry(Cause::new(RetryClass::Transient, code, sentence))
}

/// Ends the handler when nobody waits for it any more.
struct AbortOnDrop(JoinHandle<Verdict<Effect>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
