//! The one trait a workload implements, and the lease that it runs under.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use contract::{Cause, Job, Verdict};
use store::Effect;
use store::queue::Fence;
use telemetry::Trace;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::compute::{Abandoned, Computing, Stop};

/// The work of one queue.
pub trait Handler: Send + Sync + 'static {
    /// The payload of its messages.
    type Job: Job;

    /// Does the work once.
    ///
    /// Delivery is at least once, so running it twice on the same job must leave the world as running it once
    /// does. The runtime drops the future when the lease is lost: keep nothing in local state that the next
    /// worker would need. It can only be dropped where it awaits: whatever computes for more than a few milliseconds
    /// belongs in [`Lease::compute`].
    ///
    /// There is no `Result` here on purpose. Only the handler knows whether an error is worth a retry, so it has
    /// to say so in the [`Verdict`].
    fn handle(&self, job: &Self::Job, lease: &Lease) -> impl Future<Output = Verdict<Effect>> + Send;
}

/// The right to work on one message for a while. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fence: Fence,
    command: Uuid,
    attempt: u32,
    parent: Parent,
    trace: OnceLock<Trace>,
    held_until: Mutex<Instant>,
    call_margin: Duration,
    lost: CancellationToken,
    request_ids: Mutex<Vec<String>>,
    /// Until when a call of this run may still be under way at the provider.
    call_until: Mutex<Option<Instant>>,
    computing: Computing,
}

/// The W3C headers of the request that brought the command.
#[derive(Debug, Default)]
pub(crate) struct Parent {
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
}

impl Lease {
    pub(crate) fn new(
        fence: Fence,
        command: Uuid,
        attempt: u32,
        parent: Parent,
        held_until: Instant,
        call_margin: Duration,
    ) -> Self {
        Self(Arc::new(Inner {
            fence,
            command,
            attempt,
            parent,
            trace: OnceLock::new(),
            held_until: Mutex::new(held_until),
            call_margin,
            lost: CancellationToken::new(),
            request_ids: Mutex::default(),
            call_until: Mutex::default(),
            computing: Computing::default(),
        }))
    }

    /// What every write of this run carries.
    pub fn fence(&self) -> Fence {
        self.0.fence
    }

    /// The command.
    pub fn command(&self) -> Uuid {
        self.0.command
    }

    /// 1 for the first run that counts.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Where this run stands in its command's trace.
    pub fn trace(&self) -> &Trace {
        let Parent { traceparent, tracestate } = &self.0.parent;
        self.0.trace.get_or_init(|| Trace::follow(traceparent.as_deref(), tracestate.as_deref()))
    }

    /// Asks to make an outside call that may take `timeout`. Nothing where the call might end after the lease
    /// does: it could still be under way when the next worker begins. Keep the answer until the call has ended.
    pub fn begin_call(&self, timeout: Duration) -> Option<Call<'_>> {
        let ends = Instant::now() + timeout;
        let fits = !self.0.lost.is_cancelled() && ends + self.0.call_margin <= self.held_until();
        fits.then(|| {
            *lock(&self.0.call_until) = Some(ends);
            Call { lease: self, ended: false }
        })
    }

    /// Computes on a thread of its own, at a lower priority than the process' heartbeats and claims, and answers with
    /// the result. A run computes one thing at a time, so that the worker's concurrency bounds the threads too.
    ///
    /// Nobody can end a thread from outside. When the run ends first, or the answer is not awaited any more, `work` is
    /// asked to [stop](Stop) and its result is dropped; what doesn't stop within two seconds is abandoned, and a process
    /// with too many abandoned threads starts anew. A panic in `work` is a panic of the handler.
    ///
    /// Nothing was computed where it fails: the system refuses a thread, or the run has ended.
    pub async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Cause> {
        self.0.computing.run(work).await
    }

    /// Ends what the run computes, by abandoning it if need be.
    pub(crate) async fn end_computing(&self, abandoned: &Abandoned) {
        if self.0.computing.end(abandoned).await {
            let (queue, command) = (self.0.fence.queue, self.0.command);
            tracing::warn!(queue, %command, "its computation doesn't stop; abandoning the thread");
        }
    }

    /// Notes the provider's id of a request, so that the command shows it.
    pub fn note_request(&self, id: Option<String>) {
        if let Some(id) = id {
            lock(&self.0.request_ids).push(id);
        }
    }

    pub(crate) fn request_ids(&self) -> Vec<String> {
        lock(&self.0.request_ids).clone()
    }

    /// How long a call of this run may still be under way at the provider, although nobody waits for it here.
    pub(crate) fn call_left(&self) -> Duration {
        lock(&self.0.call_until)
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn held_until(&self) -> Instant {
        *lock(&self.0.held_until)
    }

    pub(crate) fn extend(&self, until: Instant) {
        *lock(&self.0.held_until) = until;
    }

    pub(crate) fn lose(&self) {
        self.0.lost.cancel();
    }

    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.0.lost
    }
}

/// An outside call under way.
#[must_use = "keep it until the call has ended, then say so"]
pub struct Call<'a> {
    lease: &'a Lease,
    ended: bool,
}

impl Call<'_> {
    /// The provider has answered, or will never see the call.
    pub fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Call<'_> {
    /// Dropped without an end (the run was given up), it is taken to be under way until its timeout.
    fn drop(&mut self) {
        if self.ended {
            *lock(&self.lease.0.call_until) = None;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Duration = Duration::from_mins(1);

    fn may_call(timeout: Duration, margin: Duration) -> bool {
        let fence = Fence { queue: "q", msg_id: 1, read_ct: 1 };
        let until = Instant::now() + LEFT;
        let lease = Lease::new(fence, Uuid::nil(), 1, Parent::default(), until, margin);
        lease.begin_call(timeout).is_some()
    }

    #[test]
    fn a_call_begins_only_if_it_ends_with_the_margin_before_the_lease() {
        let (timeout, margin) = (Duration::from_secs(55), Duration::from_secs(5));

        assert!(may_call(timeout / 2, margin));
        assert!(!may_call(timeout, margin), "the lease has begun to run");
        assert!(may_call(timeout, margin / 2));
    }
}
