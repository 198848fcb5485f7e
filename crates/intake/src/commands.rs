//! `GET /v1/commands/{id}`: the ledger's word on a command, never the queue's.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde_json::{Value, json};
use store::command::Command;
use uuid::Uuid;

use crate::caller;
use crate::door::{Door, in_a_task};
use crate::problem::Problem;

/// An id that is no UUID names nothing.
pub(crate) async fn get(
    State(door): State<Arc<Door>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    caller::authenticate(&door.options, &headers)?;
    let id: Uuid = id.parse().map_err(|_| Problem::NotFound)?;
    let pool = door.reads.clone();
    let command = in_a_task(async move { store::command::get(&pool, id).await }).await?;
    command.map(|command| Json(view(&command))).ok_or(Problem::NotFound)
}

/// The shape that callers rely on.
fn view(command: &Command) -> Value {
    let blocked = command.blocked_reason.as_ref();
    let failure = command.failure_code.as_ref();
    let progress = command.progress_total.or(command.progress_done);
    json!({
        "id": command.id,
        "workload": command.workload,
        "status": command.status,
        "blocked": blocked.map(|reason| json!({ "reason": reason, "until": command.blocked_until })),
        "attempts": command.attempts,
        "crashes": command.crashes,
        "progress": progress.map(|_| json!({ "done": command.progress_done, "total": command.progress_total })),
        "result": command.result,
        "failure": failure.map(|code| json!({ "code": code, "message": command.failure_message })),
        "accepted_at": command.accepted_at,
        "started_at": command.started_at,
        "finished_at": command.finished_at,
        "trace_id": telemetry::trace::id_of(&command.traceparent),
    })
}
