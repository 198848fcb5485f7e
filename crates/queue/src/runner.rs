//! The claim loop of one process for one queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use probes::{Health, Pulse};
use store::Pool;
use store::queue::{Claimed, claim, hand_back};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Error;
use crate::handler::Handler;
use crate::heart::Heart;
use crate::options::Options;
use crate::run::Run;

/// The pause after a failed claim grows up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Works on one queue until it is told to stop.
pub struct Runner<H> {
    options: Options,
    pool: Pool,
    beats: store::Options,
    handler: Arc<H>,
    metrics: Arc<Metrics>,
    health: Health,
    worker: Arc<str>,
}

impl<H: Handler> Runner<H> {
    /// A runner. `beats` says where the database is, for the heartbeat's own connection.
    pub fn new(
        options: Options,
        pool: Pool,
        beats: store::Options,
        handler: H,
        metrics: Arc<Metrics>,
        health: Health,
    ) -> Self {
        // A host's name comes back after a restart; an incarnation's id does not.
        let worker = format!("{}-{}", options.workload.spec().worker, Uuid::now_v7().simple()).into();
        Self { options, pool, beats, handler: Arc::new(handler), metrics, health, worker }
    }

    /// What this incarnation of the worker is called, in the ledger and in the list of processes.
    pub fn name(&self) -> &str {
        &self.worker
    }

    /// Claims and runs until `stop`; then lets running work finish within the grace and hands the rest back.
    pub async fn run_until(self, stop: CancellationToken) -> Result<(), Error> {
        let queue = self.options.queue();
        let heart = Heart::start(&self.beats, queue, self.metrics.clone(), &self.health)?;
        self.metrics.concurrency.with_label_values(&[queue.name]).set(self.options.concurrency.into());
        tracing::info!(
            queue = queue.name,
            worker = &*self.worker,
            concurrency = self.options.concurrency,
            "working"
        );
        let (give_up, mut runs) = (CancellationToken::new(), JoinSet::new());
        let heart = Arc::new(heart);
        self.claim_until(&stop, &heart, &give_up, &mut runs).await;

        tracing::info!(queue = queue.name, running = runs.len(), "no more claims; finishing what runs");
        let finished = async { while runs.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.grace, finished).await.is_err() {
            tracing::warn!(
                queue = queue.name,
                running = runs.len(),
                "handing back what did not finish in time"
            );
            give_up.cancel();
            while runs.join_next().await.is_some() {}
        }
        // Joins its thread, which may take a beat: not on this one.
        let _ = tokio::task::spawn_blocking(move || drop(heart)).await;
        Ok(())
    }

    async fn claim_until(
        &self,
        stop: &CancellationToken,
        heart: &Arc<Heart>,
        give_up: &CancellationToken,
        runs: &mut JoinSet<()>,
    ) {
        let pulse = self.health.pulse("claims", Duration::from_mins(1).max(4 * self.options.poll));
        let slots = Arc::new(Semaphore::new(self.options.concurrency as usize));
        let mut pause = Duration::ZERO;
        while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
            let Some(permits) = stop.run_until_cancelled(free(&slots, &pulse)).await else { break };
            while runs.try_join_next().is_some() {}
            let sent = Instant::now();
            let limit = u32::try_from(permits.len()).unwrap_or(u32::MAX);
            pause = match claim(&self.pool, &self.options.queue(), limit).await {
                Ok(claimed) if claimed.is_empty() => jittered(self.options.poll),
                Ok(claimed) if stop.is_cancelled() => {
                    self.hand_back_unstarted(&claimed).await;
                    break;
                }
                Ok(claimed) => {
                    for (message, permit) in claimed.into_iter().zip(permits) {
                        runs.spawn(self.run(message, permit, sent, heart, give_up));
                    }
                    Duration::ZERO
                }
                Err(error) => {
                    self.metrics.loop_errors.with_label_values(&[self.options.queue().name, "claim"]).inc();
                    tracing::warn!(error = chain(&error), "claiming failed; trying again");
                    jittered((pause * 2).clamp(Duration::from_millis(250), LONGEST_PAUSE))
                }
            };
            pulse.beat();
        }
        pulse.end();
    }

    /// Claimed while the process was told to stop: somebody else shall run them.
    async fn hand_back_unstarted(&self, claimed: &[Claimed]) {
        for message in claimed {
            let command = message.command.as_ref().map(|command| command.id);
            if let Err(error) = hand_back(&self.pool, message.fence, command, Duration::ZERO).await {
                tracing::warn!(error = chain(&error), "handing a message back; it comes back by itself");
            }
        }
    }

    /// One run, from its start to its settlement, holding its slot and its heartbeat.
    fn run(
        &self,
        claimed: Claimed,
        permit: OwnedSemaphorePermit,
        sent: Instant,
        heart: &Arc<Heart>,
        give_up: &CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<H> {
        let run =
            Run::new(&self.options, &self.pool, &self.metrics, &self.worker, &claimed, sent, give_up.clone());
        let beating = heart.beat_for(&run.lease, claimed.claimed_at);
        let handler = self.handler.clone();
        let (metrics, queue) = (self.metrics.clone(), self.options.queue().name);
        async move {
            metrics.claimed.with_label_values(&[queue]).inc();
            let waited = (claimed.claimed_at - claimed.due_at).to_std().unwrap_or_default();
            metrics.start_seconds.with_label_values(&[queue]).observe(waited.as_secs_f64());
            metrics.in_flight.with_label_values(&[queue]).inc();
            let started = Instant::now();
            let outcome = run.finish(handler, claimed).await;
            metrics.run_seconds.with_label_values(&[queue, outcome]).observe(started.elapsed().as_secs_f64());
            metrics.runs.with_label_values(&[queue, outcome]).inc();
            metrics.in_flight.with_label_values(&[queue]).dec();
            drop((beating, permit));
        }
    }
}

/// Every free slot, at least one. A worker whose slots are all busy is alive.
async fn free(slots: &Arc<Semaphore>, pulse: &Pulse) -> Vec<OwnedSemaphorePermit> {
    let first = loop {
        let acquired = tokio::time::timeout(Duration::from_secs(5), slots.clone().acquire_owned()).await;
        pulse.beat();
        if let Ok(permit) = acquired {
            break permit.expect("the semaphore is never closed");
        }
    };
    let mut permits = vec![first];
    while let Ok(permit) = slots.clone().try_acquire_owned() {
        permits.push(permit);
    }
    permits
}

/// Half to one and a half times `pause`, so that idle workers don't ask in step.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + rand::random::<f64>())
}
