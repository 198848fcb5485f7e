//! The one way to a connection.
//!
//! Two things make it more than sqlx's pool. A connection that comes back inside a transaction is closed:
//! sqlx 0.8.6 leaves one there when `begin()` is cancelled, and the next user's writes would vanish with it.
//! And a call that is cancelled or takes too long loses its connection: the answer it is still owed would
//! otherwise be read by the next user.

mod session;

use std::future::Future;
use std::time::Duration;

use contract::env::{Key, keys};
use secrecy::{ExposeSecret, SecretString};
use settings::{Env, Noted};
use sqlx::pool::PoolConnectionMetadata;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection as _};

use crate::error::Error;

use session::Manner;
pub(crate) use session::{Connection, Session};

/// What stands between a process and Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing, or a pooler that gives each of our connections a server session of its own.
    None,
    /// A pooler that gives each transaction whichever server session is free: nothing of a session outlives a
    /// transaction, and nobody can listen.
    Transaction,
}

/// Where the database is and how patient its users are.
#[derive(Clone, Debug)]
pub struct Options {
    url: SecretString,
    /// Connections for the process' main work.
    pub size: u32,
    pooler: Pooler,
    acquire: Duration,
    deadline: Duration,
}

impl Options {
    /// Reads the database settings of a service; `login` names the URL of its own role.
    pub fn read(env: &mut Env, login: &'static Key) -> Result<Self, Noted> {
        let words = [("none", Pooler::None), ("transaction", Pooler::Transaction)];
        let pooler = env.word(&keys::DATABASE_POOLER, &words);
        let direct = Self::read_direct(env, login);
        Ok(Self { pooler: pooler?, ..direct? })
    }

    /// The same for an operator's program, whose URL always leads to the server itself.
    pub fn read_direct(env: &mut Env, login: &'static Key) -> Result<Self, Noted> {
        let url = env.database_url(login, &keys::DATABASE_URL);
        let size = env.count(&keys::DATABASE_POOL, 1..=500);
        let acquire = env.duration(&keys::DATABASE_ACQUIRE_TIMEOUT_MS, 50..=60_000);
        let deadline = env.duration(&keys::DATABASE_DEADLINE_MS, 100..=600_000);
        Ok(Self { url: url?, size: size?, pooler: Pooler::None, acquire: acquire?, deadline: deadline? })
    }

    /// Options for a database given by URL, with the deadlines that tests want.
    pub fn of_url(url: impl Into<String>, size: u32) -> Self {
        Self {
            url: SecretString::from(url.into()),
            size,
            pooler: Pooler::None,
            acquire: Duration::from_secs(10),
            deadline: Duration::from_secs(20),
        }
    }

    /// The same with another deadline for each call.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same behind a pooler.
    #[must_use]
    pub fn behind(mut self, pooler: Pooler) -> Self {
        self.pooler = pooler;
        self
    }

    /// True where calls can be heard: a session that listens must stay ours.
    pub fn can_listen(&self) -> bool {
        self.pooler == Pooler::None
    }

    pub(crate) fn connect_options(&self, purpose: &str) -> Result<PgConnectOptions, Error> {
        let options: PgConnectOptions =
            self.url.expose_secret().parse().map_err(|source| Error::Url { source })?;
        Ok(options
            .application_name(&format!("spillway {purpose}"))
            // Statements are logged by nobody: they are in the repository, their values are payloads.
            .disable_statement_logging())
    }

    /// A pooler refuses what would change a server session for good, and a statement that was prepared on one
    /// server session is not there on the next.
    fn session_options(&self, purpose: &str) -> Result<PgConnectOptions, Error> {
        let options = self.connect_options(purpose)?;
        Ok(match self.pooler {
            Pooler::None => options.options(self.timeouts()),
            Pooler::Transaction => options.extra_float_digits(None).statement_cache_capacity(0),
        })
    }

    fn manner(&self) -> Manner {
        match self.pooler {
            Pooler::None => Manner::Session,
            Pooler::Transaction => Manner::transactions(&self.timeouts()),
        }
    }

    /// A backend that waits for a lock doesn't notice that its client has given up, so the server gives up a
    /// little earlier by itself.
    fn timeouts(&self) -> [(&'static str, String); 3] {
        let statement =
            self.deadline.saturating_sub(Duration::from_secs(1)).max(self.deadline / 2).as_millis();
        [
            ("statement_timeout", statement.to_string()),
            ("lock_timeout", (statement / 2).to_string()),
            ("idle_in_transaction_session_timeout", (2 * statement).to_string()),
        ]
    }
}

/// Connections of one process for one purpose. Main work, heartbeats, status reads and health each have their
/// own, so that one can't starve another.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: PgPool,
    manner: Manner,
    deadline: Duration,
}

impl Pool {
    /// Prepares `size` connections; none is opened before the first use. `purpose` shows in
    /// `pg_stat_activity`.
    #[expect(clippy::disallowed_methods, reason = "this is the one pool builder")]
    pub fn prepare(options: &Options, purpose: &str, size: u32) -> Result<Self, Error> {
        let inner = PgPoolOptions::new()
            .max_connections(size)
            .acquire_timeout(options.acquire)
            .test_before_acquire(false)
            .before_acquire(|connection, used| Box::pin(is_there(connection, used)))
            .after_release(|connection, _| Box::pin(is_clean(connection)))
            .connect_lazy_with(options.session_options(purpose)?);
        Ok(Self { inner, manner: options.manner(), deadline: options.deadline })
    }

    /// Succeeds when the database answers and can be written to.
    pub async fn ping(&self) -> Result<(), Error> {
        let is_standby = self.bounded("asking Postgres for a sign of life", async {
            let mut session = self.session().await?;
            let is_standby = sqlx::query_file_scalar!("sql/ping.sql").fetch_one(&mut *session).await?;
            session.release().await?;
            Ok(is_standby)
        });
        if is_standby.await? { Err(Error::Standby) } else { Ok(()) }
    }

    /// Closes every connection; calls in progress finish first.
    pub async fn close(&self) {
        self.inner.close().await;
    }

    /// For pgmq's installer, which wants sqlx's own type.
    pub(crate) fn sqlx(&self) -> PgPool {
        self.inner.clone()
    }

    /// True where whoever listens can be called.
    pub(crate) fn can_call(&self) -> bool {
        matches!(self.manner, Manner::Session)
    }

    /// A connection to run statements on. Nothing of what they did is certain before [`Session::release`].
    pub(crate) async fn session(&self) -> Result<Session, sqlx::Error> {
        Session::start(self.inner.acquire().await?, self.manner.clone()).await
    }

    /// Runs `work` under the deadline. `work` keeps its [`Session`] inside, so a late or cancelled call drops
    /// it unreleased.
    pub(crate) async fn bounded<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.deadline, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(Error::Query { operation, source }),
            Err(_) => Err(Error::Deadline { operation, limit: self.deadline }),
        }
    }
}

/// How long a returned connection may take to prove itself; one that takes longer is closed.
const PROOF: Duration = Duration::from_secs(2);

/// A connection that was in use a moment ago needs no question that costs a round trip.
const FRESH: Duration = Duration::from_secs(1);

async fn is_there(connection: &mut PgConnection, used: PoolConnectionMetadata) -> Result<bool, sqlx::Error> {
    if used.idle_for < FRESH {
        return Ok(true);
    }
    Ok(tokio::time::timeout(PROOF, connection.ping()).await.is_ok_and(|answer| answer.is_ok()))
}

async fn is_clean(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    if faults::lacks!("release_check") {
        return Ok(true);
    }
    tokio::time::timeout(PROOF, is_outside_a_transaction(connection)).await.unwrap_or(Ok(false))
}

/// In a transaction `now()` stands still at its start; outside, in the simple protocol, it is the statement's
/// own time.
async fn is_outside_a_transaction(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    use sqlx::{Executor, Row};

    let row = connection.fetch_one(sqlx::raw_sql(include_str!("../sql/outside_transaction.sql"))).await?;
    row.try_get(0)
}

#[cfg(test)]
mod tests;
