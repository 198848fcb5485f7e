//! Other sessions of the database, as far as they keep dead rows from being removed, and how many dead rows there are.

use chrono::{DateTime, Utc};

use crate::error::Error;
use crate::pool::Pool;

/// Something that holds a snapshot or a transaction open. Times are absent where they are hidden from the role that
/// owns the schema.
#[derive(Clone, Debug)]
pub struct SnapshotHolder {
    /// A session, a prepared transaction or a replication slot.
    pub kind: String,
    /// The backend, where there is one.
    pub pid: Option<i32>,
    /// Whose it is.
    pub login: Option<String>,
    /// What it calls itself.
    pub application: Option<String>,
    /// Such as `idle in transaction`.
    pub state: Option<String>,
    /// How many transactions its snapshot is old.
    pub transactions: i32,
    /// How long its transaction has been open.
    pub held_seconds: Option<f64>,
    /// How long it has been idle in its transaction.
    pub idle_seconds: Option<f64>,
    /// The beginning of its statement, up to the first literal.
    pub statement: Option<String>,
}

/// How much of a table is dead.
#[derive(Clone, Debug)]
pub struct DeadRows {
    /// With its schema.
    pub table: String,
    /// Rows that vacuum has still to remove, as the server estimates.
    pub dead: i64,
    /// Rows that are alive, as the server estimates.
    pub live: i64,
    /// When it was vacuumed last.
    pub vacuumed_at: Option<DateTime<Utc>>,
}

/// What is seen at one moment.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// The oldest snapshot first.
    pub holders: Vec<SnapshotHolder>,
    /// False where sessions of other roles show neither state nor times.
    pub sees_all: bool,
    /// The table with the most dead rows first.
    pub dead_rows: Vec<DeadRows>,
}

impl Sessions {
    /// What has been open for the longest time, and how long.
    pub fn oldest(&self) -> Option<(&SnapshotHolder, f64)> {
        let times = self.holders.iter().filter_map(|holder| holder.held_seconds.map(|held| (holder, held)));
        times.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// How many transactions the oldest snapshot is old.
    pub fn oldest_transactions(&self) -> i32 {
        self.holders.iter().map(|holder| holder.transactions).max().unwrap_or_default()
    }

    /// How long the session that has been idle in its transaction for the longest time has been so.
    pub fn longest_idle_seconds(&self) -> f64 {
        self.holders.iter().filter_map(|holder| holder.idle_seconds).fold(0.0, f64::max)
    }
}

/// Looks at the sessions and at the tables' statistics.
pub async fn look(pool: &Pool) -> Result<Sessions, Error> {
    pool.bounded("looking at other sessions", async {
        let mut session = pool.session().await?;
        let holders = sqlx::query_file_as!(SnapshotHolder, "sql/session/snapshot_holders.sql")
            .fetch_all(&mut *session)
            .await?;
        let sees_all = sqlx::query_file_scalar!("sql/session/sees_all.sql").fetch_one(&mut *session).await?;
        let dead_rows =
            sqlx::query_file_as!(DeadRows, "sql/session/dead_rows.sql").fetch_all(&mut *session).await?;
        session.release().await?;
        Ok(Sessions { holders, sees_all, dead_rows })
    })
    .await
}
