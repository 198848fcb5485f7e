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
use store::queue::{Beat, Held, beat};
use telemetry::Metrics;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::handler::Lease;

/// A run that lasts longer than this is shown as running; a shorter one goes from queued to done in one write.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// The running leases of one process for one queue.
pub(crate) struct Heart {
    running: Arc<Mutex<HashMap<i64, Entry>>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
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
        let pool =
            Pool::prepare(options, "heartbeat", 1).map_err(|source| Error::Heart { queue: name, source })?;
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
        Ok(Self { running, stop, thread: Some(thread) })
    }

    /// Beats for this lease until the guard is dropped.
    pub(crate) fn beat_for(&self, lease: &Lease, claimed_at: DateTime<Utc>) -> Beating {
        let now = Instant::now();
        let entry = Entry { lease: lease.clone(), claimed_at, since: now, renewed: now, is_shown: false };
        let msg_id = lease.fence().msg_id;
        lock(&self.running).insert(msg_id, entry);
        Beating { running: self.running.clone(), msg_id }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // It ends within one beat; a panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Keeps one lease in the heartbeat.
pub(crate) struct Beating {
    running: Arc<Mutex<HashMap<i64, Entry>>>,
    msg_id: i64,
}

impl Drop for Beating {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.msg_id);
    }
}

struct Beats {
    pool: Pool,
    queue: QueueSpec,
    metrics: Arc<Metrics>,
    running: Arc<Mutex<HashMap<i64, Entry>>>,
}

impl Beats {
    /// Often enough to show a run within a second and to renew a lease four times before it ends.
    fn interval(&self) -> Duration {
        (self.queue.lease / 8).min(Duration::from_millis(500))
    }

    async fn once(&self) {
        let before = Instant::now();
        self.drop_expired(before);
        let due = self.due(before);
        if due.is_empty() {
            return;
        }
        match beat(&self.pool, &self.queue, &due).await {
            Ok(held) => self.note(&due, &held, before),
            Err(error) => {
                self.metrics.loop_errors.with_label_values(&[self.queue.name, "beat"]).inc();
                tracing::warn!(
                    queue = self.queue.name,
                    error = &error as &dyn std::error::Error,
                    "heartbeat failed"
                );
            }
        }
    }

    /// A lease that could not be renewed in time is not ours any more, whatever the database would say.
    fn drop_expired(&self, now: Instant) {
        for entry in lock(&self.running).values().filter(|entry| entry.lease.held_until() <= now) {
            entry.lease.lose();
        }
    }

    fn due(&self, now: Instant) -> Vec<Beat> {
        let due = |entry: &&Entry| {
            let unshown = !entry.is_shown && now.duration_since(entry.since) >= SHOWN_AFTER;
            unshown || now.duration_since(entry.renewed) >= self.queue.lease / 4
        };
        let to_beat = |entry: &Entry| Beat {
            fence: entry.lease.fence(),
            started: (!entry.is_shown).then(|| (entry.lease.command(), entry.claimed_at)),
        };
        lock(&self.running).values().filter(due).map(to_beat).collect()
    }

    fn note(&self, asked: &[Beat], held: &[(i64, Held)], before: Instant) {
        let mut running = lock(&self.running);
        for beat in asked {
            let Some(entry) = running.get_mut(&beat.fence.msg_id) else { continue };
            match held.iter().find(|(id, _)| *id == beat.fence.msg_id) {
                Some((_, Held::Renewed)) => {
                    entry.renewed = before;
                    entry.is_shown = true;
                    entry.lease.extend(before + self.queue.lease);
                }
                Some((_, Held::Busy)) => {}
                None => entry.lease.lose(),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
