//! `POST /internal/queue-workloads/{workload_kind}/dispatches`: a scheduler lets a worker look for work now.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use contract::Workload;
use probes::{current_correlation_id, problem, surround};
use settings::Services;
use telemetry::Metrics;
use telemetry::log::chain;

use crate::dispatch::{Busy, Dispatch};

/// When a worker that can't claim may be able to.
const RETRY_AFTER_S: u32 = 5;

struct Door<D> {
    dispatcher: D,
    services: Services,
    workload: Workload,
}

/// The route, for a worker of this workload.
pub fn routes<D: Dispatch>(
    dispatcher: D,
    services: Services,
    workload: Workload,
    metrics: Arc<Metrics>,
) -> Router {
    let door = Arc::new(Door { dispatcher, services, workload });
    Router::new()
        .route("/internal/queue-workloads/{workload_kind}/dispatches", post(dispatch::<D>))
        .layer(from_fn_with_state((metrics, "internal"), surround))
        .with_state(door)
}

async fn dispatch<D: Dispatch>(
    State(door): State<Arc<Door<D>>>,
    Path(kind): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let token =
        headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    token.and_then(|token| door.services.name_of(token)).ok_or(Refusal::Unauthenticated)?;
    match kind.parse::<Workload>() {
        Ok(workload) if workload == door.workload => {}
        Ok(workload) => return Err(Refusal::Elsewhere(workload)),
        Err(_) => return Err(Refusal::Unknown),
    }
    // In a task of its own: a caller that leaves must not end what it has started.
    let task = tokio::spawn(async move { door.dispatcher.dispatch().await });
    let correlation_id = current_correlation_id();
    match task.await {
        Ok(Ok(dispatched)) => Ok(Json(dispatched).into_response()),
        Ok(Err(Busy::UnderWay)) => Err(Refusal::UnderWay),
        Ok(Err(busy)) => {
            tracing::warn!(error = chain(&busy), correlation_id, "no dispatch");
            Err(Refusal::Unavailable)
        }
        Err(panic) => {
            tracing::error!(error = chain(&panic), correlation_id, "a dispatch panicked");
            Err(Refusal::Unavailable)
        }
    }
}

enum Refusal {
    Unauthenticated,
    Unknown,
    Elsewhere(Workload),
    UnderWay,
    Unavailable,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, detail) = match self {
            Self::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "The request does not prove who sent it.".to_owned(),
            ),
            Self::Unknown => (StatusCode::NOT_FOUND, "not_found", "No workload has this kind.".to_owned()),
            Self::Elsewhere(workload) => {
                let worker = workload.spec().worker;
                (StatusCode::NOT_FOUND, "not_found", format!("This workload is worked on by {worker}."))
            }
            Self::UnderWay => (
                StatusCode::CONFLICT,
                "dispatch_under_way",
                "A dispatch of this workload is under way.".to_owned(),
            ),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The worker can't claim at the moment. Try again after Retry-After.".to_owned(),
            ),
        };
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER_S);
        problem::answer(status, code, &detail, retry_after)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use contract::command::HEADER_CORRELATION_ID;
    use secrecy::SecretString;
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;
    use crate::Dispatched;

    const WORKLOAD: Workload = Workload::SettlementExport;

    /// Answers two dispatches, then is busy.
    struct Scripted(std::sync::atomic::AtomicU32);

    impl Dispatch for Scripted {
        async fn dispatch(&self) -> Result<Dispatched, Busy> {
            match self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Ok(Dispatched {
                    workload: WORKLOAD.kind(),
                    claimed: 2,
                    succeeded: 2,
                    ..Dispatched::default()
                }),
                1 => Err(Busy::UnderWay),
                _ => Err(Busy::NotReady),
            }
        }
    }

    async fn ask(routes: &Router, kind: &str, token: Option<&str>) -> (StatusCode, Value) {
        let mut request = Request::post(format!("/internal/queue-workloads/{kind}/dispatches"));
        request = request.header(HEADER_CORRELATION_ID, "round-7");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status();
        assert_eq!(response.headers()[HEADER_CORRELATION_ID], "round-7");
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_scheduler_with_a_token_gets_one_dispatch_at_a_time_of_the_workers_own_workload() {
        let services = Services::new(SecretString::from("token"), Vec::new());
        let metrics = Arc::new(Metrics::new(WORKLOAD.spec().worker, "0"));
        let routes = routes(Scripted(0.into()), services, WORKLOAD, metrics);
        for wrong in [None, Some("other"), Some("")] {
            assert_eq!(ask(&routes, WORKLOAD.kind(), wrong).await.0, StatusCode::UNAUTHORIZED);
        }
        let (status, foreign) = ask(&routes, "document-rendering", Some("token")).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(foreign["detail"].as_str().unwrap().contains("render-worker"), "{foreign}");
        assert_eq!(foreign["correlation_id"], "round-7");
        assert_eq!(ask(&routes, "no-such-kind", Some("token")).await.0, StatusCode::NOT_FOUND);

        let (status, answer) = ask(&routes, WORKLOAD.kind(), Some("token")).await;
        assert_eq!(
            (status, &answer["claimed"], &answer["succeeded"]),
            (StatusCode::OK, &json!(2), &json!(2))
        );
        let (status, busy) = ask(&routes, WORKLOAD.kind(), Some("token")).await;
        assert_eq!((status, &busy["code"]), (StatusCode::CONFLICT, &json!("dispatch_under_way")));
        assert_eq!(ask(&routes, WORKLOAD.kind(), Some("token")).await.0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
