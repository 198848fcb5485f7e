//! The platform's programs as processes that can be killed, stopped and continued.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::Instant;

/// Names the folder with the programs of the build that can be broken.
const PROGRAMS: &str = "SPILLWAY_CHAOS_BIN";

const POLL: Duration = Duration::from_millis(20);

/// A running program; killed when it is dropped.
pub(super) struct Program {
    name: String,
    child: Child,
}

impl Program {
    /// Starts `name` with exactly this environment. What it says goes to `log`.
    pub(super) fn start(
        name: &str,
        arguments: &[String],
        environment: &[(String, String)],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let path = folder()?.join(name);
        let mut command = Command::new(path);
        command.args(arguments);
        Self::spawn(name, command, environment, log)
    }

    /// The same with so many mebibytes of address space at most.
    pub(super) fn start_limited(
        name: &str,
        arguments: &[String],
        environment: &[(String, String)],
        log: &Path,
        mib: u64,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new("/bin/sh");
        let script = format!("ulimit -v {} && exec \"$0\" \"$@\"", mib * 1024);
        command.arg("-c").arg(script).arg(folder()?.join(name)).args(arguments);
        Self::spawn(name, command, environment, log)
    }

    fn spawn(
        name: &str,
        mut command: Command,
        environment: &[(String, String)],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let said = File::options().create(true).append(true).open(log).context("opening a log")?;
        let child = command
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(said.try_clone().context("opening a log")?)
            .stdout(said)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        Ok(Self { name: name.to_owned(), child })
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).context("a pid")?);
        kill(pid, signal).with_context(|| format!("sending {signal} to {}", self.name))
    }

    /// `kill -9`: nothing of it runs after this.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().with_context(|| format!("killing {}", self.name))?;
        self.child.wait().with_context(|| format!("waiting for {}", self.name))?;
        Ok(())
    }

    /// Nothing while it runs.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("looking at {}", self.name))
    }

    /// Waits until it ends by itself.
    pub(super) async fn ends(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("{} still runs after {within:?}", self.name);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until it has died by `kill -9`, which nobody but itself sent.
    pub(super) async fn dies(&mut self, within: Duration) -> anyhow::Result<()> {
        let status = self.ends(within).await?;
        anyhow::ensure!(status.signal() == Some(9), "{} ended with {status} and was not killed", self.name);
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A stopped process dies of this too; one that has ended is only reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> anyhow::Result<PathBuf> {
    std::env::var_os(PROGRAMS)
        .map(PathBuf::from)
        .with_context(|| format!("{PROGRAMS} is not set: run this with `cargo xtask chaos`"))
}
