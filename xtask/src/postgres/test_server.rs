//! The server that tests and the SQL cache use: up while one command runs, its data directory kept so
//! that the next command need not make it again.

use std::fs::{File, TryLockError};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::psql::Psql;
use super::server::Server;
use super::{Cluster, Purpose, remove};
use crate::home::{self, Home};
use crate::interrupt;
use crate::ports::Ports;
use crate::secrets::Secrets;
use crate::terminal::say;

/// The names of the databases that tests and the SQL cache make begin so.
const THROWAWAY: [&str; 2] = [r"spillway\_test\_%", r"spillway\_sql\_%"];
/// Tests clone a migrated database, one for each state of the migrations.
const TEMPLATES: &str = r"spillway\_template\_%";
const KEPT_TEMPLATES: u32 = 3;

const LOCK_POLL: Duration = Duration::from_millis(200);

/// A standby, with nothing in it; dropping it stops the server.
pub(crate) fn start_standby(home: &Home) -> anyhow::Result<Server> {
    remove(&Purpose::Standby.log(home))?;
    let mut secrets = Secrets::load(home.tests().join("standby-secrets"))?;
    let port = Ports::default().pick("standby")?;
    Server::start(Cluster::prepare(home, Purpose::Standby, &mut secrets, port)?)
}

/// A running server; dropping it stops the server.
#[derive(Debug)]
pub(crate) struct TestServer {
    server: Server,
    _lock: File,
}

impl TestServer {
    /// Waits for another command that uses the server.
    pub(crate) fn start(home: &Home) -> anyhow::Result<Self> {
        let lock = wait_for_lock(home)?;
        // Tests fail statements on purpose: a log kept for ever would only grow.
        remove(&Purpose::Tests.log(home))?;
        let mut secrets = Secrets::load(home.tests().join("secrets"))?;
        let port = Ports::default().pick("postgres")?;
        let cluster = Cluster::prepare(home, Purpose::Tests, &mut secrets, port)?;
        let server = Self { server: Server::start(cluster)?, _lock: lock };
        say(format_args!("test Postgres {} on 127.0.0.1:{port}", server.server.cluster().version()));
        server.drop_leftovers()?;
        Ok(server)
    }

    pub(crate) fn url(&self, database: &str) -> String {
        self.server.cluster().url(database)
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.server.cluster()
    }

    pub(crate) fn psql(&self, database: &str) -> Psql {
        self.server.cluster().psql(database)
    }

    /// Databases of runs that were killed, and migrated templates of schemas long past. Nobody uses them:
    /// this server has only just been started.
    fn drop_leftovers(&self) -> anyhow::Result<()> {
        let is_ours = THROWAWAY.map(|pattern| format!("datname like '{pattern}'")).join(" or ");
        let old_templates = format!(
            "select oid from pg_database where datname like '{TEMPLATES}' order by oid desc offset {KEPT_TEMPLATES}"
        );
        let from = format!("from pg_database where {is_ours} or oid in ({old_templates})");
        self.psql("postgres").run(&format!(
            "select format('alter database %I is_template false', datname) {from} \\gexec\n\
             select format('drop database %I', datname) {from} \\gexec\n"
        ))
    }
}

fn wait_for_lock(home: &Home) -> anyhow::Result<File> {
    let path = home.tests_lock();
    let file = home::open_lock(&path)?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => {
                return Err(source).with_context(|| format!("locking {}", path.display()));
            }
            Err(TryLockError::WouldBlock) if !told => {
                say("waiting for another command to free the test Postgres");
            }
            Err(TryLockError::WouldBlock) => {}
        }
        told = true;
        interrupt::check()?;
        thread::sleep(LOCK_POLL);
    }
}
