//! Heartbeats: one batched update per beat, on a thread and a connection of its own, so that neither busy
//! runtime threads nor a busy pool can make a healthy worker look dead.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use contract::QueueSpec;
use probes::Health;
use store::Pool;
use store::queue::{Beat, Fence, Held, beat};
use telemetry::Metrics;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::handler::Lease;

/// A run that lasts longer than this is shown as running; a shorter one goes from queued to done in one write.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// One, and one to go on with while the other is found dead.
const CONNECTIONS: u32 = 2;

/// The running leases of one process for one queue.
pub(crate) struct Heart {
    running: Arc<Mutex<HashMap<Fence, Entry>>>,
    stop: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Entry {
    lease: Lease,
    claimed_at: DateTime<Utc>,
    since: Instant,
    renewed: Instant,
    is_shown: bool,
}

impl Heart {
    /// Starts beating.
    pub(crate) fn start(
        options: &store::Options,
        queue: QueueSpec,
        metrics: Arc<Metrics>,
        health: &Health,
    ) -> Result<Self, Error> {
        let name = queue.name;
        let pool = Pool::prepare(options, "heartbeat", CONNECTIONS)
            .map_err(|source| Error::Heart { queue: name, source })?;
        let (running, stop) = (Arc::new(Mutex::new(HashMap::new())), CancellationToken::new());
        let beats = Beats { pool, queue, metrics, running: running.clone() };
        let pulse = health.pulse("heartbeat", Duration::from_secs(30));
        let token = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::Thread { queue: name, source })?;
        let thread = std::thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    while token.run_until_cancelled(tokio::time::sleep(beats.interval())).await.is_some() {
                        beats.once().await;
                        pulse.beat();
                    }
                    pulse.end();
                    beats.pool.close().await;
                });
            })
            .map_err(|source| Error::Thread { queue: name, source })?;
        Ok(Self { running, stop, thread: Mutex::new(Some(thread)) })
    }

    /// Ends its thread, which may take a beat.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic in it was reported when it happened.
            let _ = thread.join();
        }
    }

    /// False once it was stopped.
    pub(crate) fn is_beating(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Beats for this lease until the guard is dropped.
    pub(crate) fn beat_for(&self, lease: &Lease, claimed_at: DateTime<Utc>) -> Beating {
        let now = Instant::now();
        let entry = Entry { lease: lease.clone(), claimed_at, since: now, renewed: now, is_shown: false };
        let fence = lease.fence();
        lock(&self.running).insert(fence, entry);
        Beating { running: self.running.clone(), fence }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Keeps one lease in the heartbeat.
pub(crate) struct Beating {
    running: Arc<Mutex<HashMap<Fence, Entry>>>,
    fence: Fence,
}

impl Drop for Beating {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.fence);
    }
}

struct Beats {
    pool: Pool,
    queue: QueueSpec,
    metrics: Arc<Metrics>,
    running: Arc<Mutex<HashMap<Fence, Entry>>>,
}

impl Beats {
    /// Often enough to show a run within a second and to renew a lease four times before it ends.
    fn interval(&self) -> Duration {
        (self.queue.lease / 8).min(Duration::from_millis(500))
    }

    async fn once(&self) {
        let before = Instant::now();
        let due = self.due(before);
        if due.is_empty() {
            return;
        }
        faults::point!("wk.heartbeat");
        match beat(&self.pool, self.queue.name, self.queue.lease, &due).await {
            Ok(held) => self.note(&due, &held, before),
            Err(error) => {
                self.metrics.loop_errors.with_label_values(&[self.queue.name, "beat"]).inc();
                tracing::warn!(
                    queue = self.queue.name,
                    error = telemetry::log::chain(&error),
                    "heartbeat failed"
                );
            }
        }
    }

    fn due(&self, now: Instant) -> Vec<Beat> {
        let due = |entry: &&Entry| {
            // Its run is ending.
            if entry.lease.lost().is_cancelled() {
                return false;
            }
            let unshown = !entry.is_shown && now.duration_since(entry.since) >= SHOWN_AFTER;
            unshown || now.duration_since(entry.renewed) >= self.queue.lease / 4
        };
        let to_beat = |entry: &Entry| Beat {
            fence: entry.lease.fence(),
            started: (!entry.is_shown).then(|| (entry.lease.command(), entry.claimed_at)),
        };
        lock(&self.running).values().filter(due).map(to_beat).collect()
    }

    fn note(&self, asked: &[Beat], held: &[(Fence, Held)], before: Instant) {
        let mut running = lock(&self.running);
        for beat in asked {
            let Some(entry) = running.get_mut(&beat.fence) else { continue };
            match held.iter().find(|(fence, _)| *fence == beat.fence) {
                Some((_, Held::Renewed)) => {
                    entry.renewed = before;
                    entry.is_shown = true;
                    entry.lease.extend(before + self.queue.lease);
                }
                Some((_, Held::Busy)) => {}
                None => {
                    self.metrics.stale_writes.with_label_values(&[self.queue.name, "beat"]).inc();
                    entry.lease.lose();
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
