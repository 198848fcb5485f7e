//! `/livez`, `/readyz`, `/metrics`.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::{Value, json};
use telemetry::Metrics;

use crate::health::Health;

/// The routes of the internal listener.
pub fn router(health: Health, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/livez", get(livez).with_state(health.clone()))
        .route("/readyz", get(readyz).with_state(health))
        .route("/metrics", get(scrape).with_state(metrics))
}

/// 503 when a loop stands still: only a restart helps.
async fn livez(State(health): State<Health>) -> (StatusCode, Json<Value>) {
    let silent = health.silent(Instant::now());
    let status = if silent.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "live": silent.is_empty(), "silent": silent })))
}

/// 503 while a dependency fails or the process is stopping: send it no work, and wait.
async fn readyz(State(health): State<Health>) -> (StatusCode, Json<Value>) {
    let unready = health.unready();
    let status = if unready.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let failing: serde_json::Map<String, Value> =
        unready.iter().map(|(name, why)| ((*name).to_owned(), Value::from(why.as_str()))).collect();
    (status, Json(json!({ "ready": unready.is_empty(), "failing": failing })))
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.text())
}
