//! A connection past all of our code, for those who prepare a server or look at it from outside.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor, raw_sql};

/// One session on one database.
pub struct Session(PgConnection);

/// Why a statement or the connection failed.
pub type Error = sqlx::Error;

impl Session {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let options: PgConnectOptions = url.parse()?;
        Ok(Self(options.disable_statement_logging().connect().await?))
    }

    /// Runs statements.
    pub async fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.0.execute(raw_sql(sql)).await.map(|_| ())
    }

    /// The one number that a query answers.
    pub async fn number(&mut self, sql: &str) -> Result<i64, Error> {
        sqlx::query_scalar(sql).fetch_one(&mut self.0).await
    }

    /// The one text that a query answers.
    pub async fn text(&mut self, sql: &str) -> Result<String, Error> {
        sqlx::query_scalar(sql).fetch_one(&mut self.0).await
    }
}
