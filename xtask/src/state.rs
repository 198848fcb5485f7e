//! What `up` started, on disk, so that `status` and `down` of another terminal know it.

use std::path::PathBuf;
use std::process::Child;

use anyhow::Context;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::ports::Ports;
use crate::private_file;
use crate::process::{self, Stopped};
use crate::terminal::say;

/// The service name of the private database server.
pub(crate) const POSTGRES: &str = "postgres";
/// The service name of the stand-in for the providers.
pub(crate) const SANDBOX: &str = "sandbox";

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// Set by `down`, so that an `up` in the foreground does not take the end of a process for a crash.
    #[serde(default)]
    pub(crate) stopping: bool,
    #[serde(default)]
    pub(crate) postgres: Option<Postgres>,
    /// In the order they were started.
    #[serde(default)]
    pub(crate) processes: Vec<Process>,
    /// Survives `down`.
    #[serde(default)]
    pub(crate) ports: Ports,
}

/// The private server; absent when the caller gave one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Postgres {
    pub(crate) data: PathBuf,
    pub(crate) port: u16,
    pub(crate) version: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Unique, such as `snaptrade-worker-2`.
    pub(crate) name: String,
    /// What it is one of, such as `snaptrade-worker`.
    pub(crate) service: String,
    pub(crate) pid: i32,
    pub(crate) started: String,
    /// The listener for callers, if it has one.
    pub(crate) url: Option<String>,
    /// The listener with `/livez`, `/readyz` and `/metrics`.
    pub(crate) internal_url: Option<String>,
    pub(crate) log: PathBuf,
}

impl State {
    pub(crate) fn load(home: &Home) -> anyhow::Result<Self> {
        let path = home.state();
        let Some(text) = private_file::read(&path)? else { return Ok(Self::default()) };
        serde_json::from_str(&text)
            .with_context(|| format!("reading {}; `cargo xtask down --wipe` starts afresh", path.display()))
    }

    pub(crate) fn save(&self, home: &Home) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self).context("writing the state as JSON")?;
        private_file::write(&home.state(), &text)
    }

    pub(crate) fn any_alive(&self) -> bool {
        self.processes.iter().any(Process::is_alive)
    }

    pub(crate) fn of_service<'a>(&'a self, service: &'a str) -> impl Iterator<Item = &'a Process> {
        self.processes.iter().filter(move |process| process.service == service)
    }

    /// Stops all, the latest first, the processes of one service together. Says how each one ended.
    pub(crate) fn stop_all(&mut self, home: &Home) -> anyhow::Result<()> {
        self.stopping = true;
        self.save(home)?;
        self.processes.reverse();
        for group in self.processes.chunk_by(|one, next| one.service == next.service) {
            stop_group(group);
        }
        self.processes.clear();
        self.postgres = None;
        self.stopping = false;
        self.save(home)
    }
}

impl Process {
    /// Records a child that has just been started.
    pub(crate) fn of(child: &Child, name: &str, service: &str, log: PathBuf) -> Self {
        let pid = child.id().cast_signed();
        Self {
            name: name.to_owned(),
            service: service.to_owned(),
            pid,
            // Empty for one that has ended already, which matches no process.
            started: process::started(pid).unwrap_or_default(),
            url: None,
            internal_url: None,
            log,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        process::started(self.pid).is_some_and(|started| started == self.started)
    }
}

fn stop_group(group: &[Process]) {
    let ids: Vec<(i32, &str)> = group.iter().map(|process| (process.pid, process.started.as_str())).collect();
    for (process, stopped) in
        group.iter().zip(process::stop(&ids, signal_for(&group[0].service), process::GRACE))
    {
        match stopped {
            Stopped::WasGone => say(format_args!("{} had ended already", process.name)),
            Stopped::Ended => say(format_args!("{} stopped", process.name)),
            Stopped::Killed => {
                say(format_args!(
                    "{} did not stop within {} s and was killed",
                    process.name,
                    process::GRACE.as_secs()
                ));
            }
        }
    }
}

/// Postgres takes SIGTERM for "when all clients have left" and SIGINT for "now, cleanly".
fn signal_for(service: &str) -> Signal {
    if service == POSTGRES { Signal::SIGINT } else { Signal::SIGTERM }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn ports_outlive_the_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::new(folder.path().to_owned());
        let mut state = State::default();
        state.ports.pick("sandbox").expect("a port");
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        state.processes.push(Process::of(&child, "sandbox-1", SANDBOX, home.log("sandbox-1")));
        assert!(state.any_alive());

        state.stop_all(&home).expect("stopped");

        let kept = State::load(&home).expect("saved");
        assert!(!kept.any_alive() && kept.processes.is_empty() && !kept.stopping);
        assert!(kept.ports == state.ports && kept.ports != Ports::default());
        child.wait().expect("reaped");
    }
}
