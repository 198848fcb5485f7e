//! A connection in use, and what a call on it consists of.
//!
//! Behind a pooler that hands out server sessions by the transaction, everything that one call does is one
//! transaction: sqlx prepares and executes in two steps, which would else meet different sessions. For the same
//! reason no statement gets a name there: the name would stay in a session that somebody else has next.

use std::fmt::Write;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Execute, Executor, Postgres, raw_sql};

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// How a call uses its connection.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// The server session is ours: statements outside a transaction stand alone, and keep their names.
    Session,
    /// Each call is a transaction, which begins with this statement.
    Transactions(Arc<str>),
}

impl Manner {
    /// Transactions with these timeouts.
    pub(super) fn transactions(timeouts: &[(&str, String)]) -> Self {
        let mut begin = "begin".to_owned();
        for (name, milliseconds) in timeouts {
            let _ = write!(begin, "; set local {name} = {milliseconds}");
        }
        Self::Transactions(begin.into())
    }

    fn begin(&self) -> &str {
        match self {
            Self::Session => "begin",
            Self::Transactions(begin) => begin,
        }
    }
}

/// A commit of a transaction in which a statement failed is answered like a rollback, not with an error; the empty
/// query in front of it is what fails then.
const COMMIT: &str = "select; commit";

/// What statements run on.
#[derive(Debug)]
pub(crate) struct Connection {
    inner: PoolConnection<Postgres>,
    manner: Manner,
    open: Open,
}

/// Whether a transaction is open, and who ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    /// The release commits it.
    Call,
    /// [`Transaction`] commits it or nobody does.
    Transaction,
}

impl Connection {
    fn statement<Q>(&mut self, query: Q) -> (&mut sqlx::PgConnection, Statement<Q>) {
        let has_name = matches!(self.manner, Manner::Session);
        debug_assert!(
            has_name || self.open != Open::Nothing,
            "behind a pooler a call ends with its transaction"
        );
        (&mut self.inner, Statement { query, has_name })
    }

    async fn begin(&mut self, open: Open) -> Result<(), sqlx::Error> {
        self.inner.execute(raw_sql(self.manner.begin())).await?;
        self.open = open;
        Ok(())
    }

    async fn end(&mut self, how: &str) -> Result<(), sqlx::Error> {
        self.inner.execute(raw_sql(how)).await?;
        self.open = Open::Nothing;
        Ok(())
    }
}

impl<'c> Executor<'c> for &'c mut Connection {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (connection, statement) = self.statement(query);
        connection.fetch_many(statement)
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> Answer<'e, Option<PgRow>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (connection, statement) = self.statement(query);
        connection.fetch_optional(statement)
    }

    fn prepare_with<'e, 'q: 'e>(
        self,
        sql: &'q str,
        parameters: &'e [PgTypeInfo],
    ) -> Answer<'e, PgStatement<'q>>
    where
        'c: 'e,
    {
        self.inner.prepare_with(sql, parameters)
    }

    fn describe<'e, 'q: 'e>(self, sql: &'q str) -> Answer<'e, Describe<Postgres>>
    where
        'c: 'e,
    {
        self.inner.describe(sql)
    }
}

/// A query that may be kept under a name in the server session, or may not.
struct Statement<Q> {
    query: Q,
    has_name: bool,
}

impl<'q, Q: Execute<'q, Postgres>> Execute<'q, Postgres> for Statement<Q> {
    fn sql(&self) -> &'q str {
        self.query.sql()
    }

    fn statement(&self) -> Option<&PgStatement<'q>> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    fn persistent(&self) -> bool {
        self.has_name && self.query.persistent()
    }
}

/// One connection in use. Dropped without [`Session::release`] it is closed, not given back, and what its
/// transaction did is undone.
pub(crate) struct Session {
    connection: Option<Connection>,
}

impl Session {
    pub(super) async fn start(inner: PoolConnection<Postgres>, manner: Manner) -> Result<Self, sqlx::Error> {
        let in_transactions = matches!(manner, Manner::Transactions(_));
        // A session from here on: a beginning that fails or is cancelled costs the connection.
        let mut session = Self { connection: Some(Connection { inner, manner, open: Open::Nothing }) };
        if in_transactions {
            Connection::begin(&mut session, Open::Call).await?;
        }
        Ok(session)
    }

    /// Begins a transaction, or goes on in the one that the call is.
    pub(crate) async fn begin(&mut self) -> Result<Transaction<'_>, sqlx::Error> {
        match self.open {
            Open::Nothing => Connection::begin(self, Open::Transaction).await?,
            Open::Call | Open::Transaction => self.open = Open::Transaction,
        }
        Ok(Transaction(self))
    }

    /// Gives the connection back: every statement was answered, and a call that is a transaction is committed. An
    /// error means that the call as a whole has failed.
    pub(crate) async fn release(mut self) -> Result<(), sqlx::Error> {
        if self.open == Open::Call {
            self.end(COMMIT).await?;
        }
        if self.open == Open::Nothing {
            self.connection.take();
        }
        Ok(())
    }
}

impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("only `release` takes the connection, and it takes the session too")
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("only `release` takes the connection, and it takes the session too")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if faults::lacks!("release_check") {
            return;
        }
        if let Some(connection) = self.connection.take() {
            drop(connection.inner.detach());
        }
    }
}

/// A transaction of a session. One that is dropped without an end is undone, and its connection closed.
pub(crate) struct Transaction<'s>(&'s mut Session);

impl Transaction<'_> {
    /// An error means that nothing is stored, or that nobody knows.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.0.end(COMMIT).await
    }

    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.0.end("rollback").await
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0
    }
}
