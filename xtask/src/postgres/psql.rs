//! Runs SQL on a private server through psql. The password goes by the environment, never by an argument.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::SUPERUSER;
use super::programs::Programs;
use crate::command;

/// The superuser's session on one database.
#[derive(Debug)]
pub(crate) struct Psql {
    program: PathBuf,
    port: u16,
    password: String,
    database: String,
}

impl Psql {
    pub(super) fn new(programs: &Programs, port: u16, password: &str, database: &str) -> Self {
        let (password, database) = (password.to_owned(), database.to_owned());
        Self { program: programs.path("psql"), port, password, database }
    }

    /// Runs a script given on standard input, so that secrets in it show up in no process list.
    pub(crate) fn run(&self, script: &str) -> anyhow::Result<()> {
        let mut psql = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting psql")?;
        let mut input = psql.stdin.take().context("psql has no standard input")?;
        let sent = input.write_all(script.as_bytes());
        drop(input);
        let output = psql.wait_with_output().context("waiting for psql")?;
        if !output.status.success() {
            bail!("psql on `{}`: {}", self.database, String::from_utf8_lossy(&output.stderr).trim());
        }
        sent.context("sending a script to psql")
    }

    /// What a query answers, as text: its rows by line, its columns parted by `|`.
    pub(crate) fn ask(&self, query: &str) -> anyhow::Result<String> {
        let answer =
            command::output(self.command().args(["--tuples-only", "--no-align", "--command", query]))?;
        Ok(answer.trim().to_owned())
    }

    /// Runs a file as one transaction.
    pub(crate) fn file(&self, path: &Path) -> anyhow::Result<()> {
        command::output(self.command().arg("--single-transaction").arg("--file").arg(path))?;
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        forget_settings(&mut command);
        command
            .args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"])
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", SUPERUSER)
            .env("PGPASSWORD", &self.password)
            .env("PGDATABASE", &self.database)
            .env("PGCONNECT_TIMEOUT", "10")
            .env("PGOPTIONS", "--client-min-messages=warning");
        command
    }
}

/// The caller's `PG…` variables are about the caller's own servers.
pub(super) fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
}
