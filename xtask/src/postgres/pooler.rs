//! pgbouncer in transaction mode in front of the tests' server: up while the tests run.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::{Cluster, POLL, START_BUDGET, SUPERUSER, install, stop};
use crate::home::Home;
use crate::ports::Ports;
use crate::terminal::say;
use crate::{interrupt, private_file, process};

/// Logins that tests make, with the superuser's password: a pooler takes no role by an option of the connection.
const LOGINS: [&str; 2] = ["spillway_gateway_pooled", "spillway_worker_pooled"];

/// A running pooler; dropping it stops the pooler.
#[derive(Debug)]
pub(crate) struct Pooler {
    child: Child,
    port: u16,
}

impl Pooler {
    pub(crate) fn start(home: &Home, cluster: &Cluster) -> anyhow::Result<Self> {
        let program = find_or_install(home)?;
        let port = Ports::default().pick("pooler")?;
        let folder = cluster.place.folder();
        let (configuration, pid) = (folder.join("pooler.ini"), folder.join("pooler.pid"));
        end_forgotten(&pid, &configuration)?;
        let users = folder.join("pooler-users.txt");
        let logins = LOGINS.iter().chain([&SUPERUSER]);
        let lines: Vec<String> =
            logins.map(|login| format!("\"{login}\" \"{}\"\n", cluster.password)).collect();
        // Fewer sessions than there are connections, and each transaction in the one that rested longest: what
        // relies on the session of its last transaction fails at once.
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\npidfile = {}\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 6\nserver_round_robin = 1\nmax_client_conn = 1000\n",
            cluster.port,
            pid.display(),
            users.display(),
        );
        for (file, text) in [(&users, lines.concat()), (&configuration, settings)] {
            private_file::write(file, &text)?;
            cluster.place.hand_over(file)?;
        }
        let log = home.tests().join("pooler.log");
        super::remove(&log)?;
        let child = process::spawn(cluster.place.command(&program).arg(&configuration), &log)?;
        let mut pooler = Self { child, port };
        pooler.wait_until_ready(&log)?;
        say(format_args!("pgbouncer in front of it on 127.0.0.1:{port}"));
        Ok(pooler)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn wait_until_ready(&mut self, log: &Path) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_BUDGET;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            interrupt::check()?;
            if let Some(status) = self.child.try_wait().context("looking after pgbouncer")? {
                bail!("pgbouncer ended at its start ({status}); {}", process::tail(log));
            }
            if Instant::now() > deadline {
                bail!("pgbouncer does not listen; {}", process::tail(log));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// A killed `cargo xtask` can leave its pooler running with nobody to tell.
fn end_forgotten(pid_file: &Path, configuration: &Path) -> anyhow::Result<()> {
    let Ok(text) = fs::read_to_string(pid_file) else { return Ok(()) };
    let pid = text.trim().parse().unwrap_or_default();
    let is_ours =
        process::command_line(pid).is_some_and(|line| line.contains(&configuration.display().to_string()));
    if let Some(started) = process::started(pid).filter(|_| is_ours) {
        say(format_args!("ending a pgbouncer (pid {pid}) that an earlier run left behind"));
        process::stop(&[(pid, &started)], Signal::SIGTERM, process::GRACE);
    }
    super::remove(pid_file)
}

fn find_or_install(home: &Home) -> anyhow::Result<PathBuf> {
    if let Some(program) = find() {
        return Ok(program);
    }
    install::pooler(home)?;
    find().context(install::POOLER_CURE)
}

/// Debian keeps it where only root looks.
fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let others = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"].map(PathBuf::from);
    folders.chain(others).map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}
