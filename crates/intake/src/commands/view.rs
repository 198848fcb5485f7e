//! The shape of a command that callers rely on.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use store::command::Command;
use uuid::Uuid;

/// Where a command stands.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct View {
    id: Uuid,
    /// Which kind of work it is.
    workload: String,
    /// One of the public statuses; a terminal one never goes back by itself.
    status: String,
    /// Why it waits, while it is `blocked`.
    blocked: Option<Blocked>,
    /// Runs that counted.
    attempts: i32,
    /// Runs that took their process down.
    crashes: i32,
    /// How far a long run is.
    progress: Option<Progress>,
    /// What it came to, once it has succeeded.
    result: Option<Value>,
    /// What went wrong last.
    failure: Option<Failure>,
    accepted_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    /// The trace of the request that brought it.
    trace_id: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Blocked {
    reason: String,
    /// Until when, where that is known.
    until: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Progress {
    done: i64,
    total: Option<i64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Failure {
    code: String,
    message: Option<String>,
}

impl From<Command> for View {
    fn from(command: Command) -> Self {
        let message = command.failure_message;
        Self {
            id: command.id,
            workload: command.workload,
            status: command.status,
            blocked: command.blocked_reason.map(|reason| Blocked { reason, until: command.blocked_until }),
            attempts: command.attempts,
            crashes: command.crashes,
            progress: command.progress_done.map(|done| Progress { done, total: command.progress_total }),
            result: command.result,
            failure: command.failure_code.map(|code| Failure { code, message }),
            accepted_at: command.accepted_at,
            started_at: command.started_at,
            finished_at: command.finished_at,
            trace_id: telemetry::trace::id_of(&command.traceparent).map(str::to_owned),
        }
    }
}
