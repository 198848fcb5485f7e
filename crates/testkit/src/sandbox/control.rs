//! Routes for those who hold the sandbox, not for its callers: neither signed nor recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::desk::Desk;
use super::killbill::Killbill;
use super::overlap::ProviderOverlap;
use super::record::Call;
use super::roster::Roster;
use super::script::{Rule, RuleReport};
use super::snaptrade::Snaptrade;

/// `/livez` and what begins with `/sandbox/`.
pub(super) fn router(desk: &Arc<Desk>, snaptrade: &Arc<Snaptrade>, killbill: &Arc<Killbill>) -> Router {
    let of_desk = Router::new()
        .route("/livez", get(async || "ok"))
        .route("/sandbox/calls", get(calls))
        .route("/sandbox/overlap", get(overlap))
        .route("/sandbox/script", get(rules).post(add_rule).delete(clear_rules))
        .with_state(Arc::clone(desk));
    let of_accounts = Router::new()
        .route("/sandbox/accounts/{account}/bump", post(bump))
        .route("/sandbox/snaptrade/users", post(add_users))
        .route("/sandbox/snaptrade/quota", put(set_quota))
        .with_state(Arc::clone(snaptrade));
    let of_payments =
        Router::new().route("/sandbox/killbill/payments", post(play)).with_state(Arc::clone(killbill));
    of_desk.merge(of_accounts).merge(of_payments)
}

#[derive(Deserialize)]
struct Since {
    #[serde(default)]
    since: usize,
}

async fn calls(State(desk): State<Arc<Desk>>, Query(from): Query<Since>) -> Json<Vec<Call>> {
    Json(desk.record.since(from.since))
}

async fn overlap(State(desk): State<Arc<Desk>>) -> Json<BTreeMap<&'static str, ProviderOverlap>> {
    Json(desk.overlaps.all())
}

async fn rules(State(desk): State<Arc<Desk>>) -> Json<Vec<RuleReport>> {
    Json(desk.script.reports())
}

async fn add_rule(State(desk): State<Arc<Desk>>, Json(rule): Json<Rule>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "id": desk.script.add(rule) })))
}

async fn clear_rules(State(desk): State<Arc<Desk>>) -> StatusCode {
    desk.script.clear();
    StatusCode::NO_CONTENT
}

async fn add_users(State(snaptrade): State<Arc<Snaptrade>>, Json(roster): Json<Roster>) -> StatusCode {
    snaptrade.add_users(&roster.users);
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quota {
    calls: u32,
    seconds: u64,
}

async fn set_quota(State(snaptrade): State<Arc<Snaptrade>>, Json(quota): Json<Quota>) -> StatusCode {
    snaptrade.set_quota(quota.calls, Duration::from_secs(quota.seconds));
    StatusCode::NO_CONTENT
}

async fn bump(
    State(snaptrade): State<Arc<Snaptrade>>,
    Path(account): Path<Uuid>,
) -> Result<Json<Value>, StatusCode> {
    let revision = snaptrade.bump(account).ok_or(StatusCode::NOT_FOUND)?;
    Ok(Json(json!({ "revision": revision })))
}

/// How many payments are to happen.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Play {
    payments: usize,
}

async fn play(
    State(killbill): State<Arc<Killbill>>,
    Json(play): Json<Play>,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let notifications = killbill.play(play.payments).ok_or(StatusCode::NOT_FOUND)?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "notifications": notifications }))))
}
