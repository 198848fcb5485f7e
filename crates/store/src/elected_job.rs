//! Jobs that one process does for all: whoever holds a job's row does it, until a time of the database's clock.

use std::time::Duration;

use crate::error::Error;
use crate::pool::Pool;

/// Takes or renews the job for `lease`. False while another process holds it.
pub async fn hold(pool: &Pool, job: &str, holder: &str, lease: Duration) -> Result<bool, Error> {
    pool.bounded("standing for election", async {
        let mut session = pool.session().await?;
        let held = sqlx::query_file_scalar!("sql/elected_job/hold.sql", job, holder, lease.as_secs_f64())
            .fetch_optional(&mut *session)
            .await?;
        session.release().await?;
        Ok(held.is_some())
    })
    .await
}

/// Gives the job to whoever asks next.
pub async fn release(pool: &Pool, job: &str, holder: &str) -> Result<(), Error> {
    pool.bounded("giving an elected job back", async {
        let mut session = pool.session().await?;
        sqlx::query_file!("sql/elected_job/release.sql", job, holder).execute(&mut *session).await?;
        session.release().await?;
        Ok(())
    })
    .await
}
