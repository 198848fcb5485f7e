//! The end of rows that are past their time. The database decides which; this asks batch by batch.

use std::time::Duration;

use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;

/// How long the rows of one table live.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub rule: String,
    /// The table.
    pub relation: String,
    /// What goes, and from when its time is counted.
    pub what: String,
    /// How long it stays.
    pub keep: Duration,
}

/// Whether rows that are past their time are removed or only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Mode {
    Remove,
    Count,
}

/// What became of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Rows past their time.
    pub past: u32,
    /// True where nothing is left to look at.
    pub is_last: bool,
    /// Where the next batch goes on.
    pub reached: Option<Uuid>,
}

/// Every rule, in the order in which they run.
pub async fn rules(pool: &Pool) -> Result<Vec<Rule>, Error> {
    pool.bounded("reading the retention rules", async {
        let mut session = pool.session().await?;
        let rows = sqlx::query_file!("sql/retention/rules.sql").fetch_all(&mut *session).await?;
        session.release().await?;
        let rule = |keep: i64| Duration::from_secs(keep.unsigned_abs());
        Ok(rows
            .into_iter()
            .map(|row| Rule {
                rule: row.rule,
                relation: row.relation,
                what: row.what,
                keep: rule(row.keep_seconds),
            })
            .collect())
    })
    .await
}

/// Looks at up to `limit` rows of one rule, in a transaction of its own, going on after `after`.
pub async fn batch(
    pool: &Pool,
    rule: &str,
    after: Option<Uuid>,
    limit: u32,
    mode: Mode,
) -> Result<Batch, Error> {
    let most = i32::try_from(limit).unwrap_or(i32::MAX);
    pool.bounded("trimming a batch", async {
        let mut session = pool.session().await?;
        let row = sqlx::query_file!("sql/retention/batch.sql", rule, after, most, mode == Mode::Remove)
            .fetch_one(&mut *session)
            .await?;
        session.release().await?;
        Ok(Batch { past: row.past.unsigned_abs(), is_last: row.examined < most, reached: row.reached })
    })
    .await
}
