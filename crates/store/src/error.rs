//! What can go wrong with the database, and in which of three ways.

use std::time::Duration;

/// A database operation that failed. The text names the operation; the cause is in `source`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's text says what it is")]
pub enum Error {
    #[error("{operation}")]
    Query { operation: &'static str, source: sqlx::Error },
    #[error("{operation}: no answer from Postgres within {limit:?}; the connection was closed")]
    Deadline { operation: &'static str, limit: Duration },
    #[error("the database URL is not usable")]
    Url { source: sqlx::Error },
    #[error("the server is a standby or takes no writes; the URL must lead to the primary")]
    Standby,
    #[error(
        "the database URL leads through a transaction pooler, which loses the lock on migrations; \
         give SANMOPIA_DATABASE_URL the server's own address"
    )]
    Pooler,
    #[error("installing pgmq's SQL")]
    InstallPgmq { source: pgmq::PgmqError },
    #[error("applying migrations")]
    Migrate { source: sqlx::migrate::MigrateError },
    #[error("the schema does not match this binary ({mismatch}); run `spillway migrate`")]
    Schema { mismatch: String },
    #[error(
        "the sealed secret of SnapTrade user {user_id} does not open; was it sealed with another data key?"
    )]
    Unseal { user_id: String },
    #[error("account {account_id} belongs to another SnapTrade user already")]
    AccountMoved { account_id: uuid::Uuid },
}

/// Who has to do something about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The database was away, busy or read-only: the same call may succeed next time.
    Passing,
    /// The values themselves were refused: the same call will fail again.
    Values,
    /// Neither; somebody has to look.
    Other,
}

impl Error {
    /// Decides on the SQLSTATE, never on the text.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Deadline { .. } | Self::Standby => Fault::Passing,
            Self::Query { source, .. } => fault_of(source),
            _ => Fault::Other,
        }
    }
}

fn fault_of(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(refusal) => match refusal.code().as_deref().map(|code| (code, code.get(..2))) {
            // Cardinality, data exceptions, violated constraints, raised by a function.
            Some((_, Some("21" | "22" | "23" | "P0"))) => Fault::Values,
            // Connection lost, rolled back, out of resources, shutting down; read-only; lock not available.
            Some((_, Some("08" | "40" | "53" | "57")) | ("25006" | "55P03", _)) => Fault::Passing,
            _ => Fault::Other,
        },
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => Fault::Passing,
        _ => Fault::Other,
    }
}
