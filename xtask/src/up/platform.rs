//! The platform while it comes up and runs: its processes as our children, and their record on disk.

use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, bail};

use super::environment;
use crate::env_file::Values;
use crate::home::Home;
use crate::postgres::{Cluster, Purpose};
use crate::secrets::Secrets;
use crate::state::{self, Process, State};
use crate::terminal::say;
use crate::{command, interrupt, process, ready};

pub(super) struct Platform<'a> {
    home: &'a Home,
    state: State,
    secrets: Secrets,
    children: Vec<(String, Child)>,
}

/// The listeners of a process, as URLs.
#[derive(Default)]
pub(super) struct Urls {
    pub(super) public: Option<String>,
    pub(super) internal: Option<String>,
}

impl<'a> Platform<'a> {
    /// Refused while one is up. The record of one that was killed is dropped.
    pub(super) fn new(home: &'a Home) -> anyhow::Result<Self> {
        let mut state = State::load(home)?;
        if state.any_alive() {
            bail!(
                "a platform of this checkout is up already: `cargo xtask status` shows it, `cargo xtask down` ends it"
            );
        }
        state.processes.clear();
        state.stopping = false;
        Ok(Self { home, state, secrets: Secrets::load(home.secrets())?, children: Vec::new() })
    }

    pub(super) fn home(&self) -> &'a Home {
        self.home
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(super) fn secrets_mut(&mut self) -> &mut Secrets {
        &mut self.secrets
    }

    /// A free address on this machine, the one of the last time if possible.
    pub(super) fn listen(&mut self, name: &str) -> anyhow::Result<String> {
        Ok(format!("127.0.0.1:{}", self.state.ports.pick(name)?))
    }

    pub(super) fn start_postgres(&mut self) -> anyhow::Result<Cluster> {
        let port = self.state.ports.pick(state::POSTGRES)?;
        let cluster = Cluster::prepare(self.home, Purpose::Platform, &mut self.secrets, port)?;
        say(format_args!("starting Postgres {} on 127.0.0.1:{port}", cluster.version()));
        let child = cluster.start()?;
        self.state.postgres =
            Some(state::Postgres { data: cluster.data(), port, version: cluster.version() });
        self.record(child, state::POSTGRES, state::POSTGRES, Urls::default())?;
        cluster.psql("postgres").run(&environment::create_database())?;
        Ok(cluster)
    }

    /// Starts a process of a service with exactly these settings.
    pub(super) fn start(
        &mut self,
        (name, service): (&str, &str),
        command: &mut Command,
        settings: &Values,
        urls: Urls,
    ) -> anyhow::Result<()> {
        interrupt::check()?;
        environment::apply(command, settings);
        let child = process::spawn(command.current_dir(self.home.root()), &self.home.log(name))?;
        self.record(child, name, service, urls)
    }

    /// Runs the operator's CLI to its end.
    pub(super) fn spillway(&self, log: &str, arguments: &[&str], settings: &Values) -> anyhow::Result<()> {
        let log = self.home.log(log);
        let mut command = Command::new(self.home.program("spillway"));
        environment::apply(command.args(arguments).current_dir(self.home.root()), settings);
        let status = command::logged(&mut command, &log)?;
        if !status.success() {
            bail!("`{}` failed ({status}); {}", command::describe(&command), process::tail(&log));
        }
        Ok(())
    }

    /// Waits until `GET base/probe` answers 200. An end of the process is noticed at once.
    pub(super) fn wait_until_ok(&mut self, name: &str, base: &str, probe: &str) -> anyhow::Result<()> {
        let log = self.home.log(name);
        ready::wait(name, (base, probe), &log, || self.end_of(name))
    }

    /// The first process found to have ended.
    pub(super) fn first_ended(&mut self) -> anyhow::Result<Option<(String, ExitStatus)>> {
        for (name, child) in &mut self.children {
            if let Some(status) = child.try_wait().with_context(|| format!("looking after {name}"))? {
                return Ok(Some((name.clone(), status)));
            }
        }
        Ok(None)
    }

    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        self.state.stop_all(self.home)
    }

    fn end_of(&mut self, name: &str) -> anyhow::Result<Option<ExitStatus>> {
        match self.children.iter_mut().find(|(other, _)| other == name) {
            Some((_, child)) => child.try_wait().with_context(|| format!("looking after {name}")),
            None => Ok(None),
        }
    }

    /// On disk before anything waits for it: if we are killed meanwhile, `down` still finds it.
    fn record(&mut self, child: Child, name: &str, service: &str, urls: Urls) -> anyhow::Result<()> {
        let mut process = Process::of(&child, name, service, self.home.log(name));
        process.url = urls.public;
        process.internal_url = urls.internal;
        self.state.processes.push(process);
        self.children.push((name.to_owned(), child));
        self.state.save(self.home)
    }
}
