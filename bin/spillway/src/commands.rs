//! `spillway commands …`.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use process::Error;
use serde_json::json;
use store::command::Command;
use uuid::Uuid;

use crate::{database, show};

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Show where one command stands, as the ledger says.
    Show {
        /// The command's id.
        id: Uuid,
    },
}

pub(crate) async fn run(action: &Action, as_json: bool) -> Result<(), Error> {
    let Action::Show { id } = action;
    let command = store::command::get(&database()?, *id)
        .await
        .map_err(|error| Error::failed(format!("reading command {id}"), error))?
        .ok_or_else(|| Error::failed("reading the ledger", format!("there is no command {id}")))?;
    if as_json {
        show::json(&object(&command));
    } else {
        print(&command);
    }
    Ok(())
}

fn print(command: &Command) {
    let time =
        |time: DateTime<Utc>| format!("{} ({} ago)", time.format("%Y-%m-%d %H:%M:%S UTC"), show::ago(time));
    let blocked = command.blocked_reason.as_ref().map(|reason| match command.blocked_until {
        Some(until) => format!("{reason} until {}", until.format("%Y-%m-%d %H:%M:%S UTC")),
        None => reason.clone(),
    });
    show::facts(&[
        ("command", Some(command.id.to_string())),
        ("workload", Some(command.workload.clone())),
        ("class", Some(format!("P{}", command.class))),
        ("scope", Some(command.scope.clone())),
        ("actor", Some(command.actor_id.clone())),
        ("status", Some(command.status.clone())),
        ("blocked", blocked),
        ("attempts", Some(format!("{} of {}", command.attempts, command.max_attempts))),
        ("crashes", Some(command.crashes.to_string()).filter(|_| command.crashes > 0)),
        ("next attempt", command.next_attempt_at.map(|at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string())),
        ("failure", command.failure_code.clone()),
        ("message", command.failure_message.clone()),
        ("result", command.result.as_ref().map(ToString::to_string)),
        ("accepted", Some(time(command.accepted_at))),
        ("started", command.started_at.map(time)),
        ("finished", command.finished_at.map(time)),
        ("trace", telemetry::trace::id_of(&command.traceparent).map(str::to_owned)),
        ("correlation", Some(command.correlation_id.clone())),
    ]);
}

fn object(command: &Command) -> serde_json::Value {
    json!({
        "id": command.id,
        "workload": command.workload,
        "class": command.class,
        "scope": command.scope,
        "actor": command.actor_id,
        "status": command.status,
        "blocked_reason": command.blocked_reason,
        "blocked_until": command.blocked_until,
        "attempts": command.attempts,
        "max_attempts": command.max_attempts,
        "crashes": command.crashes,
        "next_attempt_at": command.next_attempt_at,
        "failure_code": command.failure_code,
        "failure_message": command.failure_message,
        "result": command.result,
        "accepted_at": command.accepted_at,
        "started_at": command.started_at,
        "finished_at": command.finished_at,
        "trace_id": telemetry::trace::id_of(&command.traceparent),
        "correlation_id": command.correlation_id,
    })
}
