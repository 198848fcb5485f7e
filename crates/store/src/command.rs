//! The ledger as callers see it: commands go in together with their messages, and come out as status.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use contract::{NewCommand, Status, Workload};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::{Connection, Pool};

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

/// Puts commands in within the caller's transaction. Answers each by the id that was asked for.
pub(crate) async fn enqueue(
    connection: &mut Connection,
    commands: &[&NewCommand],
) -> Result<HashMap<Uuid, Enqueued>, sqlx::Error> {
    if commands.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<Row<'_>> = commands.iter().map(|command| Row::of(command)).collect();
    let rows = serde_json::to_value(rows).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let answers = sqlx::query_file!("sql/command/enqueue.sql", rows).fetch_all(connection).await?;
    let enqueued: HashMap<Uuid, Enqueued> = answers
        .into_iter()
        .map(|answer| {
            let outcome = outcome(&answer.outcome);
            (answer.requested, Enqueued { requested: answer.requested, id: answer.id, outcome })
        })
        .collect();
    if commands.iter().all(|command| enqueued.contains_key(&command.id)) {
        Ok(enqueued)
    } else {
        // A workload without its row: nothing must be promised.
        Err(sqlx::Error::RowNotFound)
    }
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
        session.release().await?;
        Ok(command)
    })
    .await
}

/// Which commands a list shows.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only this scope's.
    pub scope: Option<String>,
    /// Only this workload's.
    pub workload: Option<Workload>,
    /// Only those with this status.
    pub status: Option<Status>,
    /// Only those before this one.
    pub before: Option<Uuid>,
    /// So many.
    pub limit: u32,
}

/// Commands, the newest first. Ids are time-ordered, so they are the order. Of those that are queued, the ones behind
/// the 10,000 newest messages of each queue are shown.
pub async fn list(pool: &Pool, filter: &Filter) -> Result<Vec<Command>, Error> {
    let (scope, before, limit) = (filter.scope.as_deref(), filter.before, i64::from(filter.limit));
    let (workload, status) = (filter.workload.map(Workload::kind), filter.status);
    pool.bounded("listing commands", async {
        let mut session = pool.session().await?;
        let connection = &mut *session;
        // A statement each, because each finds its rows by another way.
        let commands = match status.map(|status| (status.to_string(), status)) {
            Some((_, Status::Succeeded)) => {
                sqlx::query_file_as!(
                    Command,
                    "sql/command/list_succeeded.sql",
                    scope,
                    workload,
                    before,
                    limit
                )
                .fetch_all(connection)
                .await?
            }
            Some((_, Status::Queued)) => {
                sqlx::query_file_as!(Command, "sql/command/list_queued.sql", scope, workload, before, limit)
                    .fetch_all(connection)
                    .await?
            }
            Some((word, _)) => {
                sqlx::query_file_as!(
                    Command,
                    "sql/command/list_listed.sql",
                    scope,
                    workload,
                    before,
                    limit,
                    word
                )
                .fetch_all(connection)
                .await?
            }
            None => {
                sqlx::query_file_as!(Command, "sql/command/list.sql", scope, workload, before, limit)
                    .fetch_all(connection)
                    .await?
            }
        };
        session.release().await?;
        Ok(commands)
    })
    .await
}

/// Takes a command back, unless it is shown as running or has ended. True where this call did it.
///
/// A run that has not beaten yet loses: none of its effect is stored. The message stays until its time has come, and
/// is archived by the worker that then claims it.
pub async fn cancel(pool: &Pool, id: Uuid) -> Result<bool, Error> {
    pool.bounded("cancelling a command", async {
        let mut session = pool.session().await?;
        let cancelled =
            sqlx::query_file_scalar!("sql/command/cancel.sql", id).fetch_optional(&mut *session).await?;
        session.release().await?;
        Ok(cancelled.is_some())
    })
    .await
}
