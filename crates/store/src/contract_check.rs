//! Compares the database with the contract, so that a process whose numbers differ doesn't start.

use contract::Workload;

use crate::error::Error;
use crate::pool::Pool;

/// A workload's row, in both places.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    kind: String,
    queue: String,
    dead_letter_queue: String,
    class: i16,
    lease_seconds: i32,
    max_attempts: i32,
    max_crashes: i32,
    run_deadline_seconds: i32,
    backoff_first_seconds: i32,
    backoff_cap_seconds: i32,
    not_yet_seconds: i32,
    replay_policies: Vec<String>,
}

impl Row {
    fn of(workload: Workload) -> Self {
        let spec = workload.spec();
        let whole = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
        Self {
            kind: spec.kind.to_owned(),
            queue: spec.queue.name.to_owned(),
            dead_letter_queue: spec.queue.dead_letter.to_owned(),
            class: spec.class.number(),
            lease_seconds: whole(spec.queue.lease.as_secs()),
            max_attempts: whole(spec.max_attempts.into()),
            max_crashes: whole(spec.max_crashes.into()),
            run_deadline_seconds: whole(spec.run_deadline.as_secs()),
            backoff_first_seconds: whole(spec.backoff_first.as_secs()),
            backoff_cap_seconds: whole(spec.backoff_cap.as_secs()),
            not_yet_seconds: whole(spec.not_yet_at_most.as_secs()),
            replay_policies: spec.replay.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Succeeds when the server can be written to, and every workload's row and queues are there and say what the contract says.
pub async fn require(pool: &Pool) -> Result<(), Error> {
    pool.ping().await?;
    let (rows, queues): (Vec<Row>, Vec<String>) = pool
        .bounded("comparing the database with the contract", async {
            let mut session = pool.session().await?;
            let rows =
                sqlx::query_file_as!(Row, "sql/contract/workloads.sql").fetch_all(&mut *session).await?;
            let queues = sqlx::query_file_scalar!("sql/contract/queues.sql").fetch_all(&mut *session).await?;
            session.release().await?;
            Ok((rows, queues))
        })
        .await
        .map_err(schema_is_missing)?;
    match Workload::ALL.into_iter().find_map(|workload| mismatch(workload, &rows, &queues)) {
        Some(mismatch) => Err(Error::Schema { mismatch }),
        None => Ok(()),
    }
}

fn mismatch(workload: Workload, rows: &[Row], queues: &[String]) -> Option<String> {
    let expected = Row::of(workload);
    match rows.iter().find(|row| row.kind == expected.kind) {
        None => return Some(format!("spillway.workload has no row for {workload}")),
        Some(row) if *row != expected => return Some(format!("spillway.workload differs for {workload}")),
        Some(_) => {}
    }
    let missing =
        [expected.queue, expected.dead_letter_queue].into_iter().find(|queue| !queues.contains(queue));
    missing.map(|queue| format!("queue {queue} is missing"))
}

/// Undefined table, schema or function: the database was never migrated, or not far enough.
fn schema_is_missing(error: Error) -> Error {
    match &error {
        Error::Query { source: sqlx::Error::Database(refusal), .. }
            if matches!(refusal.code().as_deref(), Some("42P01" | "3F000" | "42883" | "42703")) =>
        {
            Error::Schema { mismatch: refusal.message().to_owned() }
        }
        _ => error,
    }
}
