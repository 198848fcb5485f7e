//! A private Postgres server: made once, started on a local port, stopped with its data kept.
//!
//! `up`, the tests and the benches have one each. Nothing in here touches a server that somebody else runs.

mod account;
pub(crate) mod forgotten;
mod install;
pub(crate) mod pooler;
mod programs;
pub(crate) mod psql;
pub(crate) mod server;
pub(crate) mod test_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::home::Home;
use crate::secrets::Secrets;
use crate::terminal::say;
use crate::{command, interrupt, private_file, process, random};
use account::Place;
use programs::Programs;
use psql::Psql;

/// The superuser of the private servers.
pub(crate) const SUPERUSER: &str = "spillway";
const PASSWORD: &str = "POSTGRES_PASSWORD";
const PASSWORD_BYTES: usize = 24;
/// The extension that counts statements.
pub(crate) const STATEMENTS: &str = "pg_stat_statements";
/// Recovery after a crash included.
const START_BUDGET: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// What the server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Platform,
    Tests,
    /// For tests that must not be able to store anything.
    Standby,
    Bench,
}

impl Purpose {
    fn inside(self, home: &Home) -> PathBuf {
        match self {
            Self::Platform => home.folder().join("postgres"),
            Self::Tests => home.tests().join("postgres"),
            Self::Standby => home.tests().join("standby"),
            Self::Bench => home.bench().join("postgres"),
        }
    }

    fn outside(self, home: &Home) -> PathBuf {
        home.outside().join(match self {
            Self::Platform => "postgres",
            Self::Tests => "test-postgres",
            Self::Standby => "test-standby",
            Self::Bench => "bench-postgres",
        })
    }

    /// Where the server's data are or would be, for `down --wipe`.
    pub(crate) fn places(self, home: &Home) -> [PathBuf; 2] {
        [self.inside(home), self.outside(home)]
    }

    pub(crate) fn log(self, home: &Home) -> PathBuf {
        match self {
            Self::Platform => home.log("postgres"),
            Self::Tests => home.tests().join("postgres.log"),
            Self::Standby => home.tests().join("standby.log"),
            Self::Bench => home.bench().join("postgres.log"),
        }
    }

    /// Tests run in parallel with a pool each.
    fn max_connections(self) -> u32 {
        match self {
            Self::Platform | Self::Bench => 300,
            Self::Tests => 400,
            // No fewer than its data were made with.
            Self::Standby => 100,
        }
    }

    /// Benches have the server count statements, where it can. It counts nobody's until a role is said to be
    /// counted: counting costs time, and would cost a peer with small statements the most.
    fn own_settings(self, programs: &Programs) -> Vec<String> {
        if self != Self::Bench || !programs.has_library(STATEMENTS) {
            return Vec::new();
        }
        vec![format!("shared_preload_libraries={STATEMENTS}"), format!("{STATEMENTS}.track=none")]
    }
}

/// A server whose data directory exists.
#[derive(Debug)]
pub(crate) struct Cluster {
    programs: Programs,
    place: Place,
    password: String,
    max_connections: u32,
    own_settings: Vec<String>,
    pub(crate) port: u16,
    pub(crate) log: PathBuf,
}

impl Cluster {
    /// Finds or installs the programs, and makes the data directory unless there is one.
    pub(crate) fn prepare(
        home: &Home,
        purpose: Purpose,
        secrets: &mut Secrets,
        port: u16,
    ) -> anyhow::Result<Self> {
        // First, because an installation makes the user whom the place is then given to.
        let found = programs::find_or_install(home)?;
        let place = Place::choose(&purpose.inside(home), &purpose.outside(home))?;
        if secrets.kept(PASSWORD).is_none() {
            place.clear_leftovers()?;
        }
        let programs = programs::for_data(found, &place.data())?;
        let password = secrets.get(PASSWORD, || random::hex(PASSWORD_BYTES))?;
        let (max_connections, log) = (purpose.max_connections(), purpose.log(home));
        let own_settings = purpose.own_settings(&programs);
        let cluster = Self { programs, place, password, max_connections, own_settings, port, log };
        if !cluster.data().exists() {
            cluster.make_data()?;
        }
        if purpose == Purpose::Standby {
            cluster.follow_nobody()?;
        }
        Ok(cluster)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.data()
    }

    pub(crate) fn version(&self) -> u32 {
        self.programs.version
    }

    pub(crate) fn url(&self, database: &str) -> String {
        self.url_for(SUPERUSER, &self.password, database)
    }

    pub(crate) fn url_for(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", self.port)
    }

    /// A program that comes with the server, where it is installed.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        Some(self.programs.path(name)).filter(|path| path.is_file())
    }

    /// Whether the server counts statements.
    pub(crate) fn counts_statements(&self) -> bool {
        !self.own_settings.is_empty()
    }

    pub(crate) fn psql(&self, database: &str) -> Psql {
        Psql::new(&self.programs, self.port, &self.password, database)
    }

    /// Starts the server and waits until it takes connections.
    pub(crate) fn start(&self) -> anyhow::Result<Child> {
        forgotten::end(&self.data())?;
        let mut child = process::spawn(&mut self.server(), &self.log)?;
        let outcome = self.wait_until_ready(&mut child);
        if outcome.is_err() {
            stop(&mut child);
        }
        outcome.map(|()| child)
    }

    fn make_data(&self) -> anyhow::Result<()> {
        let folder = self.place.folder();
        say(format_args!("making a private Postgres {} in {}", self.version(), folder.display()));
        let unfinished = folder.join("data.new");
        remove(&unfinished)?;
        let password_file = folder.join("password.new");
        private_file::write(&password_file, &self.password)?;
        self.place.hand_over(&password_file)?;
        let mut initdb = self.place.command(&self.programs.path("initdb"));
        initdb.arg("--pgdata").arg(&unfinished).arg("--pwfile").arg(&password_file);
        initdb.args(["--username", SUPERUSER, "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        // macOS has no C.UTF-8; there, plain C sorts the same bytes.
        initdb.args(["--locale", if cfg!(target_os = "macos") { "C" } else { "C.UTF-8" }]);
        let made = command::output(&mut initdb);
        remove(&password_file)?;
        made.context("making the data directory of the private Postgres")?;
        // Only now is it complete: a run that was killed before this line leaves no half-made `data`.
        fs::rename(&unfinished, self.data()).context("naming the finished data directory")
    }

    /// A standby that no primary sends anything to: it recovers for ever and answers reads.
    fn follow_nobody(&self) -> anyhow::Result<()> {
        let signal = self.data().join("standby.signal");
        private_file::write(&signal, "")?;
        self.place.hand_over(&signal)
    }

    /// On the command line, so that what holds is what `ps` shows and no file of the data directory
    /// has to be kept in step.
    fn server(&self) -> Command {
        let mut server = self.place.command(&self.programs.path("postgres"));
        server.arg("-D").arg(self.data());
        let settings = [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            // Socket paths have a limit of about a hundred bytes that a checkout's path may pass.
            "unix_socket_directories=".to_owned(),
            format!("max_connections={}", self.max_connections),
            "shared_buffers=256MB".to_owned(),
            "max_wal_size=2GB".to_owned(),
            "fsync=on".to_owned(),
            "synchronous_commit=on".to_owned(),
            "autovacuum=on".to_owned(),
            "track_io_timing=off".to_owned(),
            "log_min_duration_statement=-1".to_owned(),
            // A login that a drill holds back would keep databases from being dropped for a minute.
            "authentication_timeout=15s".to_owned(),
        ];
        for setting in settings.iter().chain(&self.own_settings) {
            server.arg("-c").arg(setting);
        }
        server
    }

    fn wait_until_ready(&self, child: &mut Child) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_BUDGET;
        loop {
            interrupt::check()?;
            if let Some(status) = child.try_wait().context("looking after Postgres")? {
                bail!("Postgres ended at its start ({status}); {}", process::tail(&self.log));
            }
            if self.says_ready(child.id()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let seconds = START_BUDGET.as_secs();
                bail!("Postgres was not ready within {seconds} s; {}", process::tail(&self.log));
            }
            thread::sleep(POLL);
        }
    }

    /// The server writes its pid into the first and its condition into the eighth line of its pid file.
    fn says_ready(&self, pid: u32) -> bool {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.first() == Some(&pid.to_string().as_str())
            && matches!(lines.get(7), Some(&("ready" | "standby")))
    }
}

/// Ends a server of ours cleanly. Its data stay.
fn stop(child: &mut Child) {
    let pid = child.id().cast_signed();
    if let Some(started) = process::started(pid) {
        process::stop(&[(pid, &started)], Signal::SIGINT, process::GRACE);
    }
    // It has ended or was killed, so this returns at once.
    let _ = child.wait();
}

/// Removes a file or a folder with all in it, if it is there.
pub(crate) fn remove(path: &Path) -> anyhow::Result<()> {
    let gone = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
    gone.with_context(|| format!("removing {}", path.display()))
}
