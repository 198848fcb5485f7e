//! What benches run against: a private server of their own with a fresh database, and services in release builds.
//!
//! Dropping it stops everything, whatever the reason: a failure, Ctrl-C or the end.

use std::process::{Child, Command};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::report::Durability;
use crate::env_file::Values;
use crate::home::Home;
use crate::ports::Ports;
use crate::postgres::server::Server;
use crate::postgres::{self, Cluster, Purpose, STATEMENTS};
use crate::secrets::Secrets;
use crate::terminal::say;
use crate::up::environment::{self, DATABASE};
use crate::up::services::{self, Service};
use crate::{command, interrupt, process, ready};

const POSTGRES: &str = "postgres";

pub(super) struct Platform<'a> {
    home: &'a Home,
    /// Before the server, so that they are stopped first.
    running: Vec<Running>,
    server: Server,
    secrets: Secrets,
    settings: Values,
}

/// A service's process; dropping it stops the process.
struct Running {
    name: &'static str,
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.child.id().cast_signed();
        if let Some(started) = process::started(pid) {
            process::stop(&[(pid, &started)], Signal::SIGTERM, process::GRACE);
        }
        // It has ended or was killed, so this returns at once.
        let _ = self.child.wait();
    }
}

/// The service of that name.
pub(super) fn service(name: &str) -> &'static Service {
    services::ALL
        .iter()
        .find(|service| service.name == name)
        .expect("a test looks for every bench's services")
}

impl<'a> Platform<'a> {
    /// Starts the server.
    pub(super) fn start(home: &'a Home) -> anyhow::Result<Self> {
        postgres::remove(&Purpose::Bench.log(home))?;
        let mut secrets = Secrets::load(home.bench().join("secrets"))?;
        let port = Ports::default().pick(POSTGRES)?;
        let cluster = Cluster::prepare(home, Purpose::Bench, &mut secrets, port)?;
        let server = Server::start(cluster)?;
        Ok(Self { home, running: Vec::new(), server, secrets, settings: Values::new() })
    }

    pub(super) fn home(&self) -> &'a Home {
        self.home
    }

    pub(super) fn durability(&self) -> anyhow::Result<Durability> {
        Durability::parse(&self.server.cluster().psql("postgres").ask(Durability::QUERY)?)
    }

    /// Stops the services of the last bench, and starts these on a new, migrated database.
    pub(super) fn prepare(&mut self, services: &[&'static str]) -> anyhow::Result<()> {
        self.forget();
        let services: Vec<&Service> = services.iter().map(|name| service(name)).collect();
        self.choose_settings(&services)?;
        self.migrate()?;
        services.into_iter().try_for_each(|service| self.start_service(service))
    }

    /// Stops the services and drops their database, which may be large.
    pub(super) fn forget(&mut self) {
        self.running.clear();
        // What stays behind is dropped before the next one is made.
        let _ = self.server.cluster().psql("postgres").run(&drop_database());
    }

    /// Tells `lab` where things are.
    pub(super) fn describe(&self, lab: &mut Command) {
        environment::apply(lab.current_dir(self.home.root()), &self.settings);
        let services = self.running.iter().map(|running| (running.name, running.child.id()));
        for (name, pid) in services.chain([(POSTGRES, self.server.pid())]) {
            lab.arg("--process").arg(format!("{name}={pid}"));
        }
        match self.server.cluster().program("pgbench") {
            Some(pgbench) => drop(lab.arg("--pgbench").arg(pgbench)),
            None => say("pgbench is not installed beside the server, so it is not measured"),
        }
    }

    fn choose_settings(&mut self, services: &[&Service]) -> anyhow::Result<()> {
        let mut ports = Ports::default();
        let mut addresses = Values::new();
        for (key, port_name) in services.iter().flat_map(|service| service.listeners(1)) {
            addresses.insert(key.to_owned(), format!("127.0.0.1:{}", ports.pick(&port_name)?));
        }
        let cluster = self.server.cluster();
        self.settings = environment::private(self.home, cluster, &mut self.secrets, addresses)?;
        Ok(())
    }

    fn migrate(&self) -> anyhow::Result<()> {
        let cluster = self.server.cluster();
        cluster.psql("postgres").run(&format!("{}create database {DATABASE};\n", drop_database()))?;
        let log = self.home.bench().join("migrate.log");
        let mut spillway = Command::new(self.home.release_program("spillway"));
        environment::apply(spillway.arg("migrate").current_dir(self.home.root()), &self.settings);
        if !command::logged(&mut spillway, &log)?.success() {
            bail!("migrating failed; {}", process::tail(&log));
        }
        let psql = cluster.psql(DATABASE);
        psql.run(&environment::role_logins(&self.secrets)?)?;
        if cluster.counts_statements() {
            psql.run(&format!(
                "create extension {STATEMENTS};\nalter role spillway_gateway set {STATEMENTS}.track = 'top';\n"
            ))?;
        }
        Ok(())
    }

    fn start_service(&mut self, service: &'static Service) -> anyhow::Result<()> {
        interrupt::check()?;
        let log = self.home.bench().join(format!("{}.log", service.name));
        postgres::remove(&log)?;
        let mut program = Command::new(self.home.release_program(service.binary));
        environment::apply(program.args(service.arguments).current_dir(self.home.root()), &self.settings);
        self.running.push(Running { name: service.name, child: process::spawn(&mut program, &log)? });
        let running = self.running.last_mut().context("it was pushed a line above")?;
        let internal = services::url_of(&self.settings[service.internal]);
        ready::wait(service.name, (&internal, "/readyz"), &log, || {
            running.child.try_wait().with_context(|| format!("looking after {}", service.name))
        })
    }
}

fn drop_database() -> String {
    format!("drop database if exists {DATABASE} with (force);\n")
}
