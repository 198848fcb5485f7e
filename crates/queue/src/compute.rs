//! The CPU-bound work of runs: each on a thread of its own, which can be asked to stop but not made to.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use contract::{Cause, RetryClass};
use policy::recycle;
use telemetry::Metrics;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// Of a core that both want, a thread of the process at nice 0 gets nine tenths.
const NICENESS: i32 = 10;

/// A computation that was asked to stop may take this long until it is abandoned. Its run ends that much later.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells a computation that nobody waits for its result any more. Look at it several times a second.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// True once the result is of no use.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks a computation to stop when the future that awaits it is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// What one run computes.
#[derive(Debug)]
pub(crate) struct Computing {
    turn: Arc<Semaphore>,
    thread: Mutex<Weak<AtWork>>,
}

impl Default for Computing {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), thread: Mutex::default() }
    }
}

/// Held by a thread until nothing is left of its work.
struct AtWork {
    /// Set where its run has ended without it.
    abandoned: OnceLock<Counted>,
    _turn: OwnedSemaphorePermit,
}

impl Computing {
    /// See [`crate::Lease::compute`].
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Cause> {
        let turn = self.turn.clone().acquire_owned().await;
        let turn = turn.map_err(|_| failed("run_ended", "the run has ended"))?;
        let at_work = Arc::new(AtWork { abandoned: OnceLock::new(), _turn: turn });
        *self.thread() = Arc::downgrade(&at_work);
        let stop = Stop::default();
        let _stop_unless_awaited = StopOnDrop(stop.clone());
        let (answer, answered) = oneshot::channel();
        let thread = Builder::new().name("compute".to_owned()).spawn(move || {
            let _until_the_end = at_work;
            give_way();
            let computed = catch_unwind(AssertUnwindSafe(|| work(&stop)));
            // Nobody takes the result of a run that has ended.
            let _ = answer.send(computed);
        });
        thread.map_err(|error| {
            tracing::warn!(%error, "no thread to compute on");
            failed("no_thread", "the system refuses another thread")
        })?;
        match answered.await.expect("the thread answers whatever becomes of its work") {
            Ok(result) => Ok(result),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Waits for a thread that was asked to stop, and lets no other begin. True where it has to be abandoned.
    pub(crate) async fn end(&self, abandoned: &Abandoned) -> bool {
        let stopped = tokio::time::timeout(PATIENCE, self.turn.acquire()).await;
        self.turn.close();
        if stopped.is_ok() {
            return false;
        }
        // It may end between any two lines: then the last one who holds it takes its count back.
        let at_work = self.thread().upgrade();
        at_work.is_some_and(|at_work| at_work.abandoned.set(abandoned.count_one()).is_ok())
    }

    fn thread(&self) -> std::sync::MutexGuard<'_, Weak<AtWork>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads of one process that compute although their runs have ended.
#[derive(Clone)]
pub(crate) struct Abandoned {
    count: Arc<watch::Sender<usize>>,
    metrics: Arc<Metrics>,
    queue: &'static str,
}

impl Abandoned {
    pub(crate) fn new(metrics: Arc<Metrics>, queue: &'static str) -> Self {
        metrics.abandoned_threads.with_label_values(&[queue]).set(0);
        Self { count: Arc::new(watch::Sender::new(0)), metrics, queue }
    }

    /// Returns once there are too many of them to go on, and says how many.
    pub(crate) async fn too_many(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut count = self.count.subscribe();
        let reached = count.wait_for(|abandoned| recycle::is_due(*abandoned, cores)).await;
        *reached.expect("the sender is ours")
    }

    fn count_one(&self) -> Counted {
        self.count.send_modify(|count| *count += 1);
        self.metrics.abandoned_threads.with_label_values(&[self.queue]).inc();
        Counted(self.clone())
    }
}

/// One abandoned thread, until it ends by itself.
struct Counted(Abandoned);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
        self.0.metrics.abandoned_threads.with_label_values(&[self.0.queue]).dec();
    }
}

/// Lowers the priority of the calling thread.
fn give_way() {
    // Elsewhere a priority is the whole process'.
    if cfg!(target_os = "linux")
        && let Err(error) = rustix::process::setpriority_process(None, NICENESS)
    {
        tracing::warn!(%error, "computing at the priority of the process");
    }
}

fn failed(code: &str, sentence: &str) -> Cause {
    Cause::new(RetryClass::Transient, code, sentence)
}

#[cfg(test)]
mod tests;
