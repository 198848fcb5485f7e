//! `POST /internal/queue-workloads/{workload_kind}/dispatches`: a scheduler lets a worker look for work now.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use contract::Workload;
use serde_json::json;
use settings::Services;
use telemetry::log::chain;
use uuid::Uuid;

use crate::dispatch::{Busy, Dispatch};

struct Door<D> {
    dispatcher: D,
    services: Services,
    workload: Workload,
}

/// The route, for a worker of this workload.
pub fn routes<D: Dispatch>(dispatcher: D, services: Services, workload: Workload) -> Router {
    let door = Arc::new(Door { dispatcher, services, workload });
    Router::new()
        .route("/internal/queue-workloads/{workload_kind}/dispatches", post(dispatch::<D>))
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
    match task.await {
        Ok(Ok(dispatched)) => Ok(Json(dispatched).into_response()),
        Ok(Err(Busy::UnderWay)) => Err(Refusal::UnderWay),
        Ok(Err(busy)) => {
            tracing::warn!(error = chain(&busy), "no dispatch");
            Err(Refusal::Unavailable)
        }
        Err(panic) => {
            tracing::error!(error = chain(&panic), "a dispatch panicked");
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
        let title = status.canonical_reason().unwrap_or_default();
        let body = json!({
            "type": format!("urn:spillway:problem:{code}"),
            "title": title,
            "status": status.as_u16(),
            "code": code,
            "detail": detail,
            "correlation_id": Uuid::now_v7().simple().to_string(),
        });
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("5"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use secrecy::SecretString;
    use serde_json::Value;
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
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_scheduler_with_a_token_gets_one_dispatch_at_a_time_of_the_workers_own_workload() {
        let services = Services::new(SecretString::from("token"), Vec::new());
        let routes = routes(Scripted(0.into()), services, WORKLOAD);
        for wrong in [None, Some("other"), Some("")] {
            assert_eq!(ask(&routes, WORKLOAD.kind(), wrong).await.0, StatusCode::UNAUTHORIZED);
        }
        let (status, foreign) = ask(&routes, "document-rendering", Some("token")).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(foreign["detail"].as_str().unwrap().contains("render-worker"), "{foreign}");
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
