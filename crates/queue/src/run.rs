//! One run of one message.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use contract::{Blocked, Cause, QueueSpec, RetryClass, Verdict, Workload};
use futures_util::FutureExt;
use policy::crash::{Course, Record, course};
use policy::settle::{History, settle};
use store::queue::Claimed;
use store::suspect::mark;
use store::{Effect, Pool};
use telemetry::Metrics;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::compute::Abandoned;
use crate::handler::{Handler, Lease, Parent};
use crate::message::{self, Message};
use crate::options::Options;
use crate::settle::Outcome;
use crate::ticker::Ticker;

/// How long a message of a newer version waits before somebody looks again.
const NEWER_VERSION_PAUSE: Duration = Duration::from_secs(30);

/// What the runs of one process share.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) options: Options,
    pub(crate) pool: Pool,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) worker: Arc<str>,
    pub(crate) ticker: Ticker,
    pub(crate) abandoned: Abandoned,
    /// Cancelled when the process can't wait any longer.
    pub(crate) give_up: CancellationToken,
}

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
    pub(crate) ticker: Ticker,
    pub(crate) give_up: CancellationToken,
    abandoned: Abandoned,
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    deadline: Duration,
    history: History,
    record: Record,
}

/// How the message of a claim is to be run.
pub(crate) fn course_of(workload: Workload, claimed: &Claimed) -> Course {
    course(workload.spec(), record(claimed))
}

fn record(claimed: &Claimed) -> Record {
    claimed.command.as_ref().map_or_else(Record::default, |ledger| Record {
        silent_ends: ledger.silent_ends,
        crashes: ledger.crashes,
        was_alone: ledger.was_alone,
    })
}

impl Run {
    /// Prepares a run. `claim_sent` was read before the claim was sent, so the lease surely lasts that long.
    pub(crate) fn new(
        means: &Means,
        claimed: &Claimed,
        claim_sent: Instant,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        let ledger = claimed.command.as_ref();
        let history = ledger.map_or_else(History::default, |ledger| History {
            failures: ledger.attempts,
            waits: ledger.waits,
            waiting: ledger.waiting,
        });
        let parent = Parent {
            traceparent: ledger.map(|ledger| ledger.traceparent.clone()),
            tracestate: ledger.map(|ledger| ledger.tracestate.clone()),
        };
        let command = ledger.map(|ledger| ledger.id);
        Self {
            pool: means.pool.clone(),
            metrics: means.metrics.clone(),
            queue: means.options.queue(),
            workload: means.options.workload,
            worker: means.worker.clone(),
            lease: Lease::new(
                claimed.fence,
                command.unwrap_or_default(),
                history.failures + 1,
                parent,
                claim_sent + means.options.lease,
                means.options.call_margin,
            ),
            command,
            claimed_at: claimed.claimed_at,
            ticker: means.ticker.clone(),
            give_up: means.give_up.clone(),
            abandoned: means.abandoned.clone(),
            slot: Mutex::new(Some(slot)),
            deadline: means.options.run_deadline,
            history,
            record: record(claimed),
        }
    }

    /// Lets another run begin.
    pub(crate) fn free_slot(&self) {
        drop(self.slot.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Runs the handler and settles.
    pub(crate) async fn finish<H: Handler>(self, handler: Arc<H>, claimed: Claimed) -> Outcome {
        // It may have waited for its turn.
        if self.lease.lost().is_cancelled() || Instant::now() >= self.lease.held_until() {
            return "lost";
        }
        if self.record.was_alone && !self.charge(self.record.charged()).await {
            return "lost";
        }
        let job: H::Job = match message::read(&claimed) {
            Message::Job(job) => job,
            Message::Closed => return self.drop_closed().await,
            Message::Unreadable(reason, cause) => return self.bury(reason, &cause).await,
            Message::Newer(cause) => {
                self.metrics.newer_version.with_label_values(&[self.queue.name]).inc();
                let verdict =
                    Verdict::NotYet { why: Blocked::NewerVersion, after: Some(NEWER_VERSION_PAUSE), cause };
                return self.judge(verdict).await;
            }
        };
        match course(self.workload.spec(), self.record) {
            Course::GiveUp => return self.bury_crashed(self.record.charged()).await,
            Course::Alone => {
                let (fence, command) = (self.lease.fence(), self.lease.command());
                if !matches!(mark(&self.pool, fence, command).await, Ok(true)) {
                    return self.hand_back().await;
                }
                self.metrics.runs_alone.with_label_values(&[self.queue.name]).inc();
                tracing::warn!(queue = self.queue.name, %command, "runs alone: its claims ended without a word");
            }
            Course::Beside => {}
        }
        faults::point!("wk.before_effect");
        let ending = self.watched(handler.handle(&job, &self.lease)).await;
        self.lease.end_computing(&self.abandoned).await;
        match ending {
            Ending::Verdict(verdict) => {
                faults::point!("wk.after_effect");
                self.judge(verdict).await
            }
            Ending::Lost => "lost",
            Ending::Stopped => self.hand_back().await,
        }
    }

    /// Whatever ends the run, its handler has stopped by then: only afterwards may anybody else begin.
    async fn watched(&self, handled: impl Future<Output = Verdict<Effect>>) -> Ending {
        // Most runs are over before a clock needs to be set for them.
        tokio::select! {
            biased;
            handled = AssertUnwindSafe(handled).catch_unwind() => {
                Ending::Verdict(handled.unwrap_or_else(|_| failed("panic", "the handler panicked")))
            }
            () = self.lease_ends() => Ending::Lost,
            () = self.give_up.cancelled() => Ending::Stopped,
            () = tokio::time::sleep(self.deadline) => {
                Ending::Verdict(failed("deadline", "the run took longer than its workload allows"))
            }
        }
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
