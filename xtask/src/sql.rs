//! `cargo xtask sql`: the cache against which the SQL macros check their statements without a server.
//!
//! The macros write it themselves when they compile against a live database, so no other tool is needed.

mod cache;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, bail};

use crate::home::Home;
use crate::postgres::test_server::TestServer;
use crate::terminal::say;
use crate::workspace::{self, Metadata};
use crate::{command, postgres};
use cache::{Cache, Difference};

const PACKAGE: &str = "store";
const CACHE: &str = "crates/store/.sqlx";
const ROOT_FILE: &str = "crates/store/src/lib.rs";
const PGMQ: &str = "pgmq";
const PGMQ_SQL: &str = "src/install/embedded/sql/pgmq.sql";

/// Write the SQL macros' compile-time cache of the store, from a private Postgres with all migrations
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if the committed cache is not what would be written
    #[arg(long)]
    check: bool,
}

impl Args {
    pub(crate) fn to_check() -> Self {
        Self { check: true }
    }
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let committed = home.root().join(CACHE);
    let fresh = fresh_cache(home)?;
    let difference = Difference::between(&Cache::read(&committed)?, &fresh);
    if !difference.is_empty() && args.check {
        bail!("{CACHE} is not what the statements and migrations give ({difference}): run `cargo xtask sql`");
    }
    if difference.is_empty() {
        say(format_args!("{CACHE} is up to date, {} statements", fresh.len()));
    } else {
        fresh.replace(&committed)?;
        say(format_args!("{CACHE} written, {} statements ({difference})", fresh.len()));
    }
    Ok(ExitCode::SUCCESS)
}

fn fresh_cache(home: &Home) -> anyhow::Result<Cache> {
    let pgmq = pgmq_sql(home.root())?;
    let migrations = migrations(home.root())?;
    let server = TestServer::start(home)?;
    let database = format!("spillway_sql_{}", std::process::id());
    server.psql("postgres").run(&format!("create database {database}"))?;
    let psql = server.psql(&database);
    for file in std::iter::once(&pgmq).chain(&migrations) {
        psql.file(file).with_context(|| format!("running {}", home.relative(file)))?;
    }
    let cache = compile(home, &server.url(&database));
    // Dropped at the next start at the latest, so a failure here must not hide the compiler's.
    let _ = server.psql("postgres").run(&format!("drop database {database}"));
    cache
}

/// Compiles the store against the database. The macros only run when it is really compiled, and what
/// they saw is no input that cargo knows of: so its root file is touched before, and after, lest the
/// next build takes this one for its own.
fn compile(home: &Home, url: &str) -> anyhow::Result<Cache> {
    let folder = home.tests().join("sqlx");
    postgres::remove(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let mut cargo = workspace::cargo(home.root());
    cargo.args(["check", "--locked", "-p", PACKAGE]);
    cargo.env("DATABASE_URL", url).env("SQLX_OFFLINE", "false").env("SQLX_OFFLINE_DIR", &folder);
    touch(&home.root().join(ROOT_FILE))?;
    let compiled = command::run(&mut cargo);
    touch(&home.root().join(ROOT_FILE))?;
    compiled.context("compiling the store against a migrated database")?;
    let cache = Cache::read(&folder)?;
    postgres::remove(&folder)?;
    Ok(cache)
}

fn touch(file: &Path) -> anyhow::Result<()> {
    File::options()
        .append(true)
        .open(file)
        .and_then(|file| file.set_modified(SystemTime::now()))
        .with_context(|| format!("touching {}", file.display()))
}

/// The SQL that `spillway migrate` installs where the server has no such extension.
fn pgmq_sql(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = Metadata::read(root)?;
    let package = metadata.packages.iter().find(|package| package.name == PGMQ);
    let manifest =
        &package.with_context(|| format!("no package of the workspace uses `{PGMQ}`"))?.manifest_path;
    Ok(manifest.with_file_name(PGMQ_SQL))
}

/// In the order of their names, which start with their time.
fn migrations(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = root.join("migrations");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    Ok(files)
}
