//! What the routes share, and what every request passes first.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use probes::current_correlation_id;
use providers::supabase::Users;
use store::{Fault, Pool};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::batch::Batcher;
use crate::options::Options;
use crate::problem::Problem;
use crate::repeats::Repeats;

/// What the routes share.
pub struct Door {
    pub(crate) options: Options,
    /// Proves users' tokens, where there are users.
    pub(crate) users: Option<Users>,
    /// For what changes something outside of a batch.
    pub(crate) intake: Pool,
    /// For status reads, which never wait for intake.
    pub(crate) reads: Pool,
    pub(crate) batcher: Batcher,
    pub(crate) repeats: Repeats,
    pub(crate) metrics: Arc<Metrics>,
    intake_permits: Arc<Semaphore>,
    read_permits: Arc<Semaphore>,
}

impl Door {
    /// A door before these pools. Needs a runtime: its batches run in tasks of their own.
    pub fn new(options: Options, intake: Pool, reads: Pool, metrics: Arc<Metrics>) -> Self {
        Self {
            batcher: Batcher::start(intake.clone(), metrics.clone()),
            repeats: Repeats::start(intake.clone(), metrics.clone()),
            intake_permits: Arc::new(Semaphore::new(options.in_flight as usize)),
            read_permits: Arc::new(Semaphore::new(options.reads_in_flight as usize)),
            users: options.users.clone().map(Users::new),
            options,
            intake,
            reads,
            metrics,
        }
    }

    /// The metrics that the routes count in.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    pub(crate) fn permits(&self, of: Permits) -> &Arc<Semaphore> {
        match of {
            Permits::Intake => &self.intake_permits,
            Permits::Reads => &self.read_permits,
        }
    }
}

/// Which requests a request competes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permits {
    /// Those that take something in.
    Intake,
    /// Those that only look.
    Reads,
}

/// A place among the requests in work. It is given back when the last holder drops it: a request's work may outlast
/// its client.
#[derive(Clone)]
pub(crate) struct Permit(pub(crate) Arc<OwnedSemaphorePermit>);

/// One permit a request, shared by all connections, and no queue for it.
pub(crate) async fn admit(
    State(permits): State<Arc<Semaphore>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let permit = permits.try_acquire_owned().map_err(|_| Problem::Busy)?;
    request.extensions_mut().insert(Permit(Arc::new(permit)));
    Ok(next.run(request).await)
}

/// Database work in a task of its own, which goes on when the client leaves: axum drops the handler of a client
/// that is gone, and a half-done call would cost its connection.
pub(crate) async fn in_a_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, store::Error>> + Send + 'static,
) -> Result<T, Problem> {
    let correlation_id = current_correlation_id();
    match tokio::spawn(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            tracing::warn!(error = chain(&error), correlation_id, "answered 503");
            Err(match error.fault() {
                Fault::Passing => Problem::Unavailable,
                Fault::Values | Fault::Other => Problem::Internal,
            })
        }
        Err(panic) => {
            tracing::error!(error = chain(&panic), correlation_id, "a request's task panicked");
            Err(Problem::Internal)
        }
    }
}
