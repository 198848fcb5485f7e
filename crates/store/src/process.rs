//! Who is there: every long-running process keeps a row of its own, by the database's clock.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use contract::Workload;

use crate::error::Error;
use crate::pool::Pool;

/// How often a process shows itself.
pub const BEAT: Duration = Duration::from_secs(10);

/// A process that missed three beats is taken as gone.
const SILENT: Duration = Duration::from_secs(30);

/// What a process says of itself.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Never the same twice.
    pub id: String,
    /// The binary.
    pub kind: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Where it runs.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// The queue it works on, where it works on one.
    pub queue: Option<&'static str>,
    /// What it may have in work at a time.
    pub slots: u32,
}

/// A process as the others see it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.process, explained in its migration")]
pub struct Process {
    pub id: String,
    pub kind: String,
    pub version: String,
    pub host: String,
    pub pid: i32,
    pub queue: Option<String>,
    pub slots: i32,
    pub started_at: DateTime<Utc>,
    pub last_seen_at: DateTime<Utc>,
    /// True where it showed itself lately.
    pub is_live: bool,
}

/// Shows that the process is there.
pub async fn beat(pool: &Pool, identity: &Identity) -> Result<(), Error> {
    let whole = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    pool.bounded("showing that the process is there", async {
        let mut session = pool.session().await?;
        sqlx::query_file!(
            "sql/process/beat.sql",
            identity.id,
            identity.kind,
            identity.version,
            identity.host,
            whole(identity.pid),
            identity.queue,
            whole(identity.slots),
        )
        .execute(&mut *session)
        .await?;
        session.release().await?;
        Ok(())
    })
    .await
}

/// Takes the process' row away.
pub async fn leave(pool: &Pool, id: &str) -> Result<(), Error> {
    pool.bounded("saying that the process has ended", async {
        let mut session = pool.session().await?;
        sqlx::query_file!("sql/process/leave.sql", id).execute(&mut *session).await?;
        session.release().await?;
        Ok(())
    })
    .await
}

/// Every process that has a row, gone or not.
pub async fn list(pool: &Pool) -> Result<Vec<Process>, Error> {
    pool.bounded("listing processes", async {
        let mut session = pool.session().await?;
        let processes = sqlx::query_file_as!(Process, "sql/process/list.sql", SILENT.as_secs_f64())
            .fetch_all(&mut *session)
            .await?;
        session.release().await?;
        Ok(processes)
    })
    .await
}

/// How many live processes work on each queue.
pub fn workers(processes: &[Process]) -> Vec<(Workload, usize)> {
    let works_on = |process: &Process, workload: Workload| {
        process.is_live && process.queue.as_deref() == Some(workload.queue().name)
    };
    let count = |workload| processes.iter().filter(|process| works_on(process, workload)).count();
    Workload::ALL.into_iter().map(|workload| (workload, count(workload))).collect()
}

/// The versions of the live processes, each with how many run it. More than one is a rollout or a drift.
pub fn versions(processes: &[Process]) -> BTreeMap<&str, usize> {
    let mut versions = BTreeMap::new();
    for process in processes.iter().filter(|process| process.is_live) {
        *versions.entry(process.version.as_str()).or_default() += 1;
    }
    versions
}
