//! How many statements the gateway has sent, as the server counts them.

use anyhow::Context;
use serde::Serialize;
use strum::IntoStaticStr;
use testkit::Session;

/// What the server counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum Counter {
    /// Every statement of the gateway's role, BEGIN and COMMIT too.
    PgStatStatements,
    /// Transactions of everybody on the database: fewer than statements, and not only the gateway's.
    XactCommit,
}

impl Counter {
    /// The better one that the server has.
    pub(super) async fn of(server: &mut Session) -> anyhow::Result<Self> {
        let installed = "select count(*) from pg_extension where extname = 'pg_stat_statements'";
        let found = server.number(installed).await.context("looking for pg_stat_statements")?;
        Ok(if found > 0 { Self::PgStatStatements } else { Self::XactCommit })
    }

    /// How many there have been until now.
    pub(super) async fn count(self, server: &mut Session) -> anyhow::Result<i64> {
        let sql = match self {
            Self::PgStatStatements => {
                "select coalesce(sum(calls), 0)::bigint from pg_stat_statements
                 where userid = 'spillway_gateway'::regrole"
            }
            Self::XactCommit => "select xact_commit from pg_stat_database where datname = current_database()",
        };
        server.number(sql).await.context("counting statements")
    }
}
