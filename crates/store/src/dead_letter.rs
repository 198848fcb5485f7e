//! Dead letters, for people to read.

use chrono::{DateTime, Utc};
use contract::Workload;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;

/// A command that was given up.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.dead_letter, explained in its migration")]
pub struct DeadLetter {
    pub id: Uuid,
    pub command_id: Option<Uuid>,
    pub workload: String,
    pub reason: String,
    pub detail_code: String,
    pub detail: String,
    pub policies: Vec<String>,
    pub attempts: i32,
    pub crashes: i32,
    pub state: String,
    pub died_at: DateTime<Utc>,
    pub decided_at: Option<DateTime<Utc>>,
    pub decided_by: Option<String>,
    pub replays: i32,
    pub first_dead_letter: Option<Uuid>,
}

/// A failed attempt.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.attempt_failure, explained in its migration")]
pub struct Failure {
    pub failed_at: DateTime<Utc>,
    pub class: String,
    pub code: String,
    pub message: String,
    pub request_id: Option<String>,
    pub worker: String,
}

/// What an operator did to the dead letter.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.operator_action, explained in its migration")]
pub struct OperatorAction {
    pub at: DateTime<Utc>,
    pub actor: String,
    pub action: String,
    pub why: String,
}

/// A dead letter with its history.
#[derive(Clone, Debug)]
pub struct Details {
    /// The dead letter.
    pub letter: DeadLetter,
    /// The message as it was.
    pub message: Value,
    /// Its failed attempts, oldest first.
    pub failures: Vec<Failure>,
    /// What operators did to it and to the earlier dead letters of its command, oldest first.
    pub actions: Vec<OperatorAction>,
}

/// The newest open dead letters, of one workload or of all.
pub async fn list(pool: &Pool, workload: Option<Workload>, limit: u32) -> Result<Vec<DeadLetter>, Error> {
    pool.bounded("listing dead letters", async {
        let mut session = pool.session().await?;
        let letters = sqlx::query_file_as!(
            DeadLetter,
            "sql/dead_letter/list.sql",
            workload.map(Workload::kind),
            i64::from(limit)
        )
        .fetch_all(&mut *session)
        .await?;
        session.release().await?;
        Ok(letters)
    })
    .await
}

/// One dead letter with its history.
pub async fn show(pool: &Pool, id: Uuid) -> Result<Option<Details>, Error> {
    pool.bounded("reading a dead letter", async {
        let mut session = pool.session().await?;
        let letter = sqlx::query_file_as!(DeadLetter, "sql/dead_letter/get.sql", id)
            .fetch_optional(&mut *session)
            .await?;
        let details = match letter {
            None => None,
            Some(letter) => {
                let message = sqlx::query_file_scalar!("sql/dead_letter/message.sql", id)
                    .fetch_one(&mut *session)
                    .await?;
                let failures =
                    sqlx::query_file_as!(Failure, "sql/dead_letter/failures.sql", letter.command_id)
                        .fetch_all(&mut *session)
                        .await?;
                let actions = sqlx::query_file_as!(OperatorAction, "sql/dead_letter/actions.sql", id)
                    .fetch_all(&mut *session)
                    .await?;
                Some(Details { letter, message, failures, actions })
            }
        };
        session.release().await?;
        Ok(details)
    })
    .await
}
