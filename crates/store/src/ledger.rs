//! How a run ends: one fenced transaction that settles message, ledger and effect together.

use std::time::Duration;

use chrono::{DateTime, Utc};
use contract::{Blocked, Cause, DeadReason, Workload};
use serde_json::Value;
use uuid::Uuid;

use crate::effect::Effect;
use crate::error::Error;
use crate::pool::{Connection, Pool, Session};
use crate::queue::{Fence, milliseconds};

/// A run that succeeded.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its lease.
    pub fence: Fence,
    /// Its command.
    pub command: Uuid,
    /// When it started, by the database's clock.
    pub started_at: DateTime<Utc>,
    /// What the status shows as the result.
    pub result: Option<Value>,
    /// The provider's ids of the requests it made.
    pub request_ids: Vec<String>,
}

/// Settles runs without an effect, many in one statement. Answers the messages that were still ours.
pub async fn succeed(pool: &Pool, queue: &'static str, runs: &[Done]) -> Result<Vec<i64>, Error> {
    pool.bounded("settling successes", async {
        let mut session = pool.session().await?;
        let settled = settle_successes(&mut session, queue, runs).await?;
        session.release().await?;
        Ok(settled)
    })
    .await
}

/// Settles one run together with its effect. False where the lease had gone to another worker: then nothing
/// was changed.
pub async fn succeed_with(pool: &Pool, run: &Done, effect: &Effect) -> Result<bool, Error> {
    pool.bounded("settling a success with its effect", async {
        let mut session: Session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let Fence { queue, msg_id, read_ct } = run.fence;
        let ours = sqlx::query_file_scalar!("sql/queue/lock.sql", queue, msg_id, read_ct)
            .fetch_one(&mut *transaction)
            .await?;
        if ours {
            // Taken back or superseded while it ran: then nobody wants the effect any more.
            let is_open = sqlx::query_file_scalar!("sql/ledger/hold_open.sql", run.command)
                .fetch_optional(&mut *transaction)
                .await?;
            if is_open.is_some() {
                effect.apply(&mut transaction).await?;
            }
            settle_successes(&mut transaction, queue, std::slice::from_ref(run)).await?;
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        session.release().await?;
        Ok(ours)
    })
    .await
}

async fn settle_successes(
    connection: &mut Connection,
    queue: &str,
    runs: &[Done],
) -> Result<Vec<i64>, sqlx::Error> {
    let results: Vec<Option<Value>> = runs.iter().map(|run| run.result.clone()).collect();
    let request_ids: Vec<String> = runs.iter().map(|run| run.request_ids.join(" ")).collect();
    let settled = sqlx::query_file_scalar!(
        "sql/ledger/succeed.sql",
        queue,
        &runs.iter().map(|run| run.fence.msg_id).collect::<Vec<_>>(),
        &runs.iter().map(|run| run.fence.read_ct).collect::<Vec<_>>(),
        &runs.iter().map(|run| run.command).collect::<Vec<_>>(),
        &runs.iter().map(|run| run.started_at).collect::<Vec<_>>(),
        &results as &[Option<Value>],
        &request_ids,
    )
    .fetch_one(connection)
    .await?;
    Ok(settled.unwrap_or_default())
}

/// A run that did not succeed and whose message will be due again.
#[derive(Clone, Debug)]
pub struct Unfinished<'a> {
    /// Its lease.
    pub fence: Fence,
    /// Its command.
    pub command: Uuid,
    /// The pause, from the database's now.
    pub after: Duration,
    /// What was seen.
    pub cause: &'a Cause,
    /// The process that ran it.
    pub worker: &'a str,
}

/// Counts a failure and makes the message due again after a pause. False where the lease was lost.
pub async fn delay(pool: &Pool, run: &Unfinished<'_>) -> Result<bool, Error> {
    pool.bounded("recording a failure", postpone(pool, run, None)).await
}

/// Counts nothing, shows the command as blocked, and makes the message due again after a pause. False where
/// the lease was lost.
pub async fn park(pool: &Pool, run: &Unfinished<'_>, why: Blocked) -> Result<bool, Error> {
    pool.bounded("parking a message", postpone(pool, run, Some(why))).await
}

async fn postpone(pool: &Pool, run: &Unfinished<'_>, why: Option<Blocked>) -> Result<bool, sqlx::Error> {
    let Fence { queue, msg_id, read_ct } = run.fence;
    faults::point!("wk.retry_before_setvt", sqlx::Error::PoolTimedOut);
    let mut session = pool.session().await?;
    let moved = sqlx::query_file_scalar!(
        "sql/ledger/postpone.sql",
        queue,
        msg_id,
        read_ct,
        milliseconds(run.after),
        run.command,
        why.map(|why| why.to_string()),
        run.cause.class.to_string(),
        run.cause.code,
        run.cause.message,
        run.cause.request_id,
        run.worker,
    )
    .fetch_optional(&mut *session)
    .await?;
    session.release().await?;
    Ok(moved.is_some())
}

/// A message to be given up.
#[derive(Clone, Debug)]
pub struct Dead<'a> {
    /// The dead letter's id (UUID version 7).
    pub id: Uuid,
    /// The lease.
    pub fence: Fence,
    /// Its command; absent where the message names none.
    pub command: Option<Uuid>,
    /// The workload of its queue.
    pub workload: Workload,
    /// The reason code.
    pub reason: DeadReason,
    /// What went wrong last.
    pub cause: &'a Cause,
    /// The process that gave it up.
    pub worker: &'a str,
}

/// Gives a message up: dead-letter message, dead-letter row, ledger and archive in one statement. False where
/// the lease was lost.
pub async fn bury(pool: &Pool, dead: &Dead<'_>) -> Result<bool, Error> {
    let policies: Vec<String> =
        dead.workload.spec().ways_out(dead.reason).iter().map(ToString::to_string).collect();
    let queue = dead.workload.queue();
    if faults::lacks!("one_dead_letter_transaction") {
        drop_closed(pool, dead.fence).await?;
    }
    pool.bounded("dead-lettering a message", async {
        faults::point!("wk.dlq_mid", sqlx::Error::PoolTimedOut);
        let mut session = pool.session().await?;
        let buried = sqlx::query_file_scalar!(
            "sql/ledger/bury.sql",
            queue.name,
            dead.fence.msg_id,
            dead.fence.read_ct,
            queue.dead_letter,
            dead.id,
            dead.command,
            dead.workload.kind(),
            dead.reason.to_string(),
            dead.cause.code,
            dead.cause.message,
            &policies,
            dead.cause.class.to_string(),
            dead.cause.request_id,
            dead.worker,
            i32::from(dead.reason.is_attempt()),
        )
        .fetch_optional(&mut *session)
        .await?;
        session.release().await?;
        Ok(buried.is_some())
    })
    .await
}

/// Archives a message whose command is closed already. False where the lease was lost.
pub async fn drop_closed(pool: &Pool, fence: Fence) -> Result<bool, Error> {
    pool.bounded("archiving the message of a closed command", async {
        let mut session = pool.session().await?;
        let gone =
            sqlx::query_file_scalar!("sql/ledger/drop_closed.sql", fence.queue, fence.msg_id, fence.read_ct)
                .fetch_optional(&mut *session)
                .await?;
        session.release().await?;
        Ok(gone.is_some())
    })
    .await
}
