//! Brings a database to this version's schema, whoever brought it to an earlier one.
//!
//! The same files run under the Supabase CLI. What that has applied is adopted, not applied again.

use std::sync::LazyLock;

use pgmq::PGMQueueExt;
use sqlx::migrate::{Migrate, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Executor, Row};

use crate::error::Error;
use crate::pool::{Options, Pool};

/// Newer versions than ours may be there already (`ignore_missing`), and the lock is our own, since it also
/// covers pgmq and the adoption.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!("../../migrations");
    migrations.set_ignore_missing(true);
    migrations.set_locking(false);
    migrations
});

/// The SQLSTATE.
const PROTOCOL_VIOLATION: &str = "08P01";

/// What a run of [`run`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Versions that the Supabase CLI had applied and that are now known here too.
    pub adopted: Vec<i64>,
    /// Versions applied by this run.
    pub applied: Vec<i64>,
    /// True where pgmq's SQL was installed because the server offers no extension.
    pub installed_pgmq: bool,
}

/// Applies what is missing. Two runs at once wait for one another; a run that was killed is repeated.
pub async fn run(options: &Options) -> Result<Report, Error> {
    let connect = options.connect_options("migrate")?;
    let failed = |operation| move |source| Error::Query { operation, source };
    let mut connection = connect.connect().await.map_err(not_connected)?;
    if is_shared(&mut connection, &connect).await.map_err(failed("looking for a pooler"))? {
        return Err(Error::Pooler);
    }
    lock(&mut connection).await.map_err(failed("waiting for another migration to end"))?;

    let mut report =
        Report { installed_pgmq: install_pgmq(&mut connection, options).await?, ..Report::default() };
    open_own_schema(&mut connection).await.map_err(failed("creating the schema `spillway`"))?;
    connection.ensure_migrations_table().await.map_err(|source| Error::Migrate { source })?;
    report.adopted =
        adopt(&mut connection).await.map_err(failed("adopting the Supabase CLI's migrations"))?;
    let before = applied(&mut connection).await?;
    apply(&mut connection).await?;
    report.applied = applied(&mut connection).await?;
    report.applied.retain(|version| !before.contains(version));
    protect_history(&mut connection).await.map_err(failed("protecting the migration history"))?;
    connection.close().await.map_err(failed("closing the migration's connection"))?;
    Ok(report)
}

/// A pooler refuses parameters of a session that it would have to keep.
fn not_connected(source: sqlx::Error) -> Error {
    match &source {
        sqlx::Error::Database(refusal) if refusal.code().as_deref() == Some(PROTOCOL_VIOLATION) => {
            Error::Pooler
        }
        _ => Error::Query { operation: "connecting to migrate", source },
    }
}

/// True where a second connection is given the same server session while the first one is open, which only a
/// pooler does, and only one that parts with a session after each transaction.
async fn is_shared(connection: &mut PgConnection, options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let backend = include_str!("../sql/migrate/backend.sql");
    let first: i32 = connection.fetch_one(sqlx::raw_sql(backend)).await?.try_get(0)?;
    let mut other = options.connect().await?;
    let second: i32 = other.fetch_one(sqlx::raw_sql(backend)).await?.try_get(0)?;
    other.close().await?;
    Ok(first == second)
}

/// Identifies the migrations that this binary carries: databases migrated by equal ones are equal.
pub fn fingerprint() -> String {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for byte in MIGRATIONS.iter().flat_map(|migration| migration.checksum.iter()) {
        digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{digest:016x}")
}

async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_file!("sql/migrate/lock.sql").fetch_one(connection).await.map(drop)
}

/// Installs pgmq where neither the schema nor an extension is there.
async fn install_pgmq(connection: &mut PgConnection, options: &Options) -> Result<bool, Error> {
    let needed = sqlx::query_file_scalar!("sql/migrate/pgmq_is_missing.sql")
        .fetch_one(connection)
        .await
        .map_err(|source| Error::Query { operation: "looking for pgmq", source })?;
    if needed {
        let pool = Pool::prepare(options, "pgmq", 1)?;
        let installer = PGMQueueExt::new_with_pool(pool.sqlx()).await;
        installer.install_sql_from_embedded().await.map_err(|source| Error::InstallPgmq { source })?;
        pool.close().await;
    }
    Ok(needed)
}

/// sqlx keeps its history in the first schema of the path; Supabase exposes `public` to everybody.
async fn open_own_schema(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(include_str!("../sql/migrate/open_schema.sql"))).await.map(drop)
}

async fn adopt(connection: &mut PgConnection) -> Result<Vec<i64>, sqlx::Error> {
    let known = sqlx::query_file_scalar!("sql/migrate/supabase_history_exists.sql")
        .fetch_one(&mut *connection)
        .await?;
    if !known {
        return Ok(Vec::new());
    }
    let versions =
        sqlx::query(include_str!("../sql/migrate/supabase_versions.sql")).fetch_all(&mut *connection).await?;
    let versions: Vec<String> = versions.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let mut adopted = Vec::new();
    for migration in MIGRATIONS.iter().filter(|migration| versions.contains(&migration.version.to_string())) {
        let inserted = sqlx::query(include_str!("../sql/migrate/adopt.sql"))
            .bind(migration.version)
            .bind(migration.description.as_ref())
            .bind(migration.checksum.as_ref())
            .execute(&mut *connection)
            .await?;
        if inserted.rows_affected() == 1 {
            adopted.push(migration.version);
        }
    }
    Ok(adopted)
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, Error> {
    let applied = connection.list_applied_migrations().await.map_err(|source| Error::Migrate { source })?;
    Ok(applied.into_iter().map(|migration| migration.version).collect())
}

async fn apply(connection: &mut PgConnection) -> Result<(), Error> {
    MIGRATIONS.run_direct(connection).await.map_err(|source| Error::Migrate { source })
}

async fn protect_history(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(include_str!("../sql/migrate/protect_history.sql"))).await.map(drop)
}
