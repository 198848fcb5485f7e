//! The routes of the public listener and what every request passes first.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use store::Pool;
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::Semaphore;

use crate::options::Options;
use crate::problem::Problem;
use crate::{commands, context, snaptrade};

/// What the routes share.
pub struct Door {
    pub(crate) options: Options,
    /// For what is taken in.
    pub(crate) intake: Pool,
    /// For status reads, which never wait for intake.
    pub(crate) reads: Pool,
    pub(crate) metrics: Arc<Metrics>,
    in_flight: Semaphore,
}

impl Door {
    /// A door before these pools.
    pub fn new(options: Options, intake: Pool, reads: Pool, metrics: Arc<Metrics>) -> Self {
        let in_flight = Semaphore::new(options.in_flight as usize);
        Self { options, intake, reads, metrics, in_flight }
    }

    /// The metrics that the routes count in.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }
}

/// The public routes.
pub fn router(door: Arc<Door>) -> Router {
    let metrics = door.metrics.clone();
    Router::new()
        .route("/webhooks/snaptrade", post(snaptrade::receive))
        .route("/v1/commands/{id}", get(commands::get))
        .fallback(async || Problem::NotFound)
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed)
        .layer(from_fn_with_state(door.clone(), admit))
        .layer(from_fn_with_state(metrics, context::surround))
        .with_state(door)
}

/// One permit a request, shared by all connections, and no queue for it.
async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Result<Response, Problem> {
    let _permit = door.in_flight.try_acquire().map_err(|_| Problem::Busy)?;
    Ok(next.run(request).await)
}

/// Database work in a task of its own, which goes on when the client leaves: axum drops the handler of a client
/// that is gone, and a half-done call would cost its connection.
pub(crate) async fn in_a_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, store::Error>> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::spawn(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let correlation_id = context::current_correlation_id();
            tracing::warn!(error = chain(&error), correlation_id, "answered 503");
            Err(match error.fault() {
                store::Fault::Passing => Problem::Unavailable,
                store::Fault::Values | store::Fault::Other => Problem::Internal,
            })
        }
        Err(panic) => {
            tracing::error!(error = chain(&panic), "a request's task panicked");
            Err(Problem::Internal)
        }
    }
}
