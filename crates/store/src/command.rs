//! The ledger as callers see it: commands go in together with their messages, and come out as status.

use chrono::{DateTime, Utc};
use contract::NewCommand;
use serde::Serialize;
use serde_json::Value;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;

/// What became of a command that was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The ledger row and the message are written.
    New,
    /// The same command was accepted before.
    Replayed,
    /// Its key was used before for other content.
    Conflict,
}

/// The answer for one command that was put in.
#[derive(Clone, Copy, Debug)]
pub struct Enqueued {
    /// The id that was asked for.
    pub requested: Uuid,
    /// The command that the idempotency key stands for.
    pub id: Uuid,
    /// Whether it is this one.
    pub outcome: Outcome,
}

/// Puts commands in within the caller's transaction.
pub(crate) async fn enqueue(
    connection: &mut PgConnection,
    commands: &[&NewCommand],
) -> Result<Vec<Enqueued>, sqlx::Error> {
    let rows: Vec<Row<'_>> = commands.iter().map(|command| Row::of(command)).collect();
    let rows = serde_json::to_value(rows).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let answers = sqlx::query_file!("sql/command/enqueue.sql", rows).fetch_all(connection).await?;
    Ok(answers
        .into_iter()
        .map(|answer| Enqueued {
            requested: answer.requested,
            id: answer.id,
            outcome: outcome(&answer.outcome),
        })
        .collect())
}

fn outcome(word: &str) -> Outcome {
    match word {
        "new" => Outcome::New,
        "replayed" => Outcome::Replayed,
        _ => Outcome::Conflict,
    }
}

/// A command as `spillway.enqueue` takes it.
#[derive(Serialize)]
struct Row<'a> {
    id: Uuid,
    workload: &'static str,
    kind: &'a str,
    version: u32,
    idempotency_key: &'a str,
    payload: &'a Value,
    actor_id: &'a str,
    actor_type: &'a str,
    scope: &'a str,
    decision: &'a str,
    class: i16,
    not_before: Option<DateTime<Utc>>,
    snapshots: &'a [String],
    expected_revision: Option<i64>,
    traceparent: &'a str,
    tracestate: &'a str,
    correlation_id: &'a str,
}

impl<'a> Row<'a> {
    fn of(command: &'a NewCommand) -> Self {
        Self {
            id: command.id,
            workload: command.workload.kind(),
            kind: command.kind,
            version: command.version,
            idempotency_key: &command.idempotency_key,
            payload: &command.payload,
            actor_id: &command.actor.id,
            actor_type: &command.actor.kind,
            scope: &command.actor.scope,
            decision: &command.actor.decision,
            class: command.class.number(),
            not_before: command.not_before,
            snapshots: &command.snapshots,
            expected_revision: command.expected_revision,
            traceparent: &command.traceparent,
            tracestate: &command.tracestate,
            correlation_id: &command.correlation_id,
        }
    }
}

/// A command's public face.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the ledger's columns, explained in its migration")]
pub struct Command {
    pub id: Uuid,
    pub workload: String,
    pub scope: String,
    pub status: String,
    pub blocked_reason: Option<String>,
    pub blocked_until: Option<DateTime<Utc>>,
    pub attempts: i32,
    pub crashes: i32,
    pub max_attempts: i32,
    pub class: i16,
    pub actor_id: String,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub progress_done: Option<i64>,
    pub progress_total: Option<i64>,
    pub result: Option<Value>,
    pub failure_code: Option<String>,
    pub failure_message: Option<String>,
    pub accepted_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub traceparent: String,
    pub correlation_id: String,
}

/// Reads one command.
pub async fn get(pool: &Pool, id: Uuid) -> Result<Option<Command>, Error> {
    pool.bounded("reading a command", async {
        let mut session = pool.session().await?;
        let command =
            sqlx::query_file_as!(Command, "sql/command/get.sql", id).fetch_optional(&mut *session).await?;
        session.release();
        Ok(command)
    })
    .await
}
