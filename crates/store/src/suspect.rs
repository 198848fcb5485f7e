//! Messages under suspicion of taking their process down: what they are charged with, and who may run one alone.

use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;
use crate::queue::Fence;

/// Charges a command with a crash: it ran alone, and its claim ended without a word. `crashes` is the new count, so
/// that a second try charges nothing more. False where the lease was lost.
pub async fn charge(pool: &Pool, fence: Fence, command: Uuid, crashes: u32) -> Result<bool, Error> {
    let crashes = i32::try_from(crashes).unwrap_or(i32::MAX);
    pool.bounded("charging a crash", async {
        let mut session = pool.session().await?;
        let charged = sqlx::query_file_scalar!(
            "sql/suspect/charge.sql",
            fence.queue,
            fence.msg_id,
            command,
            crashes,
            fence.read_ct,
        )
        .fetch_optional(&mut *session)
        .await?;
        session.release().await?;
        Ok(charged.is_some())
    })
    .await
}

/// Takes the queue's one place for a run alone, which is free once the claim that had it has ended. False where
/// another claim has it.
pub async fn take_place(pool: &Pool, fence: Fence) -> Result<bool, Error> {
    pool.bounded("taking the place of a run alone", async {
        let mut session = pool.session().await?;
        let taken =
            sqlx::query_file_scalar!("sql/suspect/take_place.sql", fence.queue, fence.msg_id, fence.read_ct)
                .fetch_optional(&mut *session)
                .await?;
        session.release().await?;
        Ok(taken.is_some())
    })
    .await
}

/// Notes, just before it starts, that a command runs alone: if nothing is heard of it again, it is charged. False
/// where the lease was lost.
pub async fn mark(pool: &Pool, fence: Fence, command: Uuid) -> Result<bool, Error> {
    pool.bounded("marking a run alone", async {
        let mut session = pool.session().await?;
        let marked = sqlx::query_file_scalar!(
            "sql/suspect/mark.sql",
            fence.queue,
            fence.msg_id,
            fence.read_ct,
            command
        )
        .fetch_optional(&mut *session)
        .await?;
        session.release().await?;
        Ok(marked.is_some())
    })
    .await
}
