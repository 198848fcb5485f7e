//! How full each queue is. For people: it counts rows, so it is not for a request's path.

use chrono::{DateTime, Utc};
use contract::Workload;

use crate::error::Error;
use crate::pool::Pool;

/// Counting stops here; a larger queue is "at least" so long.
pub const COUNTED_AT_MOST: i32 = 100_000;

/// One queue's depth.
#[derive(Clone, Debug)]
pub struct Depth {
    /// Whose queue it is.
    pub workload: Workload,
    /// Messages that a worker could claim now.
    pub due: i64,
    /// Messages in work, delayed or blocked.
    pub later: i64,
    /// Since when the first claimable message is due.
    pub oldest_due_at: Option<DateTime<Utc>>,
    /// Dead letters that nobody has decided on.
    pub open_dead_letters: i64,
}

/// The depth of every queue, in the contract's order.
pub async fn depths(pool: &Pool) -> Result<Vec<Depth>, Error> {
    pool.bounded("counting queues", async {
        let mut session = pool.session().await?;
        let mut depths = Vec::with_capacity(Workload::ALL.len());
        for workload in Workload::ALL {
            let queue = workload.queue().name;
            let row = sqlx::query_file!("sql/queue/depth.sql", queue, COUNTED_AT_MOST)
                .fetch_one(&mut *session)
                .await?;
            depths.push(Depth {
                workload,
                due: row.due,
                later: row.later,
                oldest_due_at: row.oldest_due_at,
                open_dead_letters: row.open_dead_letters,
            });
        }
        session.release().await?;
        Ok(depths)
    })
    .await
}
