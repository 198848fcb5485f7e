//! The gate: keys with a cap, who holds them, who waits for them. Claims and settlements work it inside the
//! database; here are the handles that people and upkeep have.

use chrono::{DateTime, Utc};

use crate::error::Error;
use crate::pool::Pool;

/// The key whose pause holds a whole queue.
pub fn key_of_queue(queue: &str) -> String {
    format!("queue:{queue}")
}

/// A key.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.limit_key, explained in its migration")]
pub struct Key {
    pub key: String,
    pub cap: i32,
    pub limit_now: Option<i32>,
    pub in_use: i32,
    pub cooldown_until: Option<DateTime<Utc>>,
    pub paused_at: Option<DateTime<Utc>>,
    pub paused_by: Option<String>,
    pub paused_why: Option<String>,
    /// Messages in its line.
    pub waiting: i64,
}

/// Keys in use, waited for, paused or cooling down, in the order of their names.
pub async fn list(pool: &Pool, limit: u32) -> Result<Vec<Key>, Error> {
    pool.bounded("listing limits", async {
        let mut session = pool.session().await?;
        let keys = sqlx::query_file_as!(Key, "sql/limit/list.sql", i64::from(limit))
            .fetch_all(&mut *session)
            .await?;
        session.release().await?;
        Ok(keys)
    })
    .await
}

/// Pauses a key: nothing new gets it; what runs goes on.
pub async fn pause(pool: &Pool, key: &str, by: &str, why: &str) -> Result<(), Error> {
    pool.bounded("pausing a key", async {
        let mut session = pool.session().await?;
        sqlx::query_file!("sql/limit/pause.sql", key, by, why).fetch_one(&mut *session).await?;
        session.release().await?;
        Ok(())
    })
    .await
}

/// Lets a paused key go on and calls who waits for it. False where it was not paused.
pub async fn resume(pool: &Pool, key: &str, by: &str, why: &str) -> Result<bool, Error> {
    pool.bounded("resuming a key", async {
        let mut session = pool.session().await?;
        let was_paused =
            sqlx::query_file_scalar!("sql/limit/resume.sql", key, by, why).fetch_one(&mut *session).await?;
        session.release().await?;
        Ok(was_paused)
    })
    .await
}

/// Calls again whoever was to be called and did not hear. Answers how many hear it now.
pub async fn recall(pool: &Pool) -> Result<u64, Error> {
    pool.bounded("calling who waits again", async {
        let mut session = pool.session().await?;
        let heard = sqlx::query_file_scalar!("sql/limit/recall.sql").fetch_one(&mut *session).await?;
        session.release().await?;
        Ok(heard.unsigned_abs())
    })
    .await
}

/// Compares keys, holds, lines and messages of a queue. Answers how much did not fit and was mended: it is expected
/// to be nothing.
pub async fn sweep(pool: &Pool, queue: &str) -> Result<u64, Error> {
    pool.bounded("sweeping limits", async {
        let mut session = pool.session().await?;
        let mended = sqlx::query_file_scalar!("sql/limit/sweep.sql", queue).fetch_one(&mut *session).await?;
        session.release().await?;
        Ok(mended.unsigned_abs())
    })
    .await
}
