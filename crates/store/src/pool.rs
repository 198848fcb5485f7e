//! The one way to a connection.
//!
//! Two things make it more than sqlx's pool. A connection that comes back inside a transaction is closed:
//! sqlx 0.8.6 leaves one there when `begin()` is cancelled, and the next user's writes would vanish with it.
//! And a call that is cancelled or takes too long loses its connection: the answer it is still owed would
//! otherwise be read by the next user.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use contract::env::{Key, keys};
use secrecy::{ExposeSecret, SecretString};
use settings::{Env, Noted};
use sqlx::pool::{PoolConnection, PoolConnectionMetadata};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Postgres};

use crate::error::Error;

/// Where the database is and how patient its users are.
#[derive(Clone, Debug)]
pub struct Options {
    url: SecretString,
    /// Connections for the process' main work.
    pub size: u32,
    acquire: Duration,
    deadline: Duration,
}

impl Options {
    /// Reads the database settings; `login` names the URL of the process' own role.
    pub fn read(env: &mut Env, login: &'static Key) -> Result<Self, Noted> {
        let url = env.database_url(login, &keys::DATABASE_URL);
        let size = env.count(&keys::DATABASE_POOL, 1..=500);
        let acquire = env.duration(&keys::DATABASE_ACQUIRE_TIMEOUT_MS, 50..=60_000);
        let deadline = env.duration(&keys::DATABASE_DEADLINE_MS, 100..=600_000);
        Ok(Self { url: url?, size: size?, acquire: acquire?, deadline: deadline? })
    }

    /// Options for a database given by URL, with the deadlines that tests want.
    pub fn of_url(url: impl Into<String>, size: u32) -> Self {
        Self {
            url: SecretString::from(url.into()),
            size,
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

    pub(crate) fn connect_options(&self, purpose: &str) -> Result<PgConnectOptions, Error> {
        let options: PgConnectOptions =
            self.url.expose_secret().parse().map_err(|source| Error::Url { source })?;
        Ok(options
            .application_name(&format!("spillway {purpose}"))
            // Statements are logged by nobody: they are in the repository, their values are payloads.
            .disable_statement_logging())
    }

    /// A backend that waits for a lock doesn't notice that its client has given up, so the server gives up a
    /// little earlier by itself.
    fn session_options(&self, purpose: &str) -> Result<PgConnectOptions, Error> {
        let statement =
            self.deadline.saturating_sub(Duration::from_secs(1)).max(self.deadline / 2).as_millis();
        let timeouts = [
            ("statement_timeout", statement.to_string()),
            ("lock_timeout", (statement / 2).to_string()),
            ("idle_in_transaction_session_timeout", (2 * statement).to_string()),
        ];
        Ok(self.connect_options(purpose)?.options(timeouts))
    }
}

/// Connections of one process for one purpose. Main work, heartbeats, status reads and health each have their
/// own, so that one can't starve another.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: PgPool,
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
        Ok(Self { inner, deadline: options.deadline })
    }

    /// Succeeds when the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        self.bounded("asking Postgres for a sign of life", async {
            let mut session = self.session().await?;
            sqlx::query_file!("sql/ping.sql").fetch_one(&mut *session).await?;
            session.release();
            Ok(())
        })
        .await
    }

    /// Closes every connection; calls in progress finish first.
    pub async fn close(&self) {
        self.inner.close().await;
    }

    /// For pgmq's installer, which wants sqlx's own type.
    pub(crate) fn sqlx(&self) -> PgPool {
        self.inner.clone()
    }

    pub(crate) async fn session(&self) -> Result<Session, sqlx::Error> {
        Ok(Session { connection: Some(self.inner.acquire().await?) })
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

/// One connection in use. Dropped without [`Session::release`] it is closed, not given back.
pub(crate) struct Session {
    connection: Option<PoolConnection<Postgres>>,
}

impl Session {
    /// Gives the connection back: every statement was answered and no transaction is open.
    pub(crate) fn release(mut self) {
        self.connection.take();
    }
}

impl Deref for Session {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("only `release` takes the connection, and it takes the session too")
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("only `release` takes the connection, and it takes the session too")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
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
