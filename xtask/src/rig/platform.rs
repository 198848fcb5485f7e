//! A private platform that `lab` measures: a server of its own with a fresh database, and services with nothing else
//! to do.
//!
//! Dropping it stops everything, whatever the reason: a failure, Ctrl-C or the end.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::Profile;
use super::header::Durability;
use crate::env_file::Values;
use crate::home::Home;
use crate::ports::Ports;
use crate::postgres::server::Server;
use crate::postgres::{self, Cluster, Purpose, STATEMENTS};
use crate::secrets::Secrets;
use crate::up::environment::{self, DATABASE, SNAPTRADE_BASE_URL};
use crate::up::services::{self, Service};
use crate::{command, interrupt, process, ready, state};

const POSTGRES: &str = "postgres";

pub(crate) struct Platform<'a> {
    home: &'a Home,
    profile: Profile,
    /// Before the server, so that they are stopped first.
    running: Vec<Running>,
    server: Server,
    secrets: Secrets,
    settings: Values,
}

/// What runs while something is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    /// Names of services; a name stands here once for each of its processes.
    pub(crate) services: &'static [&'static str],
    /// Whether the outside providers are played.
    pub(crate) has_sandbox: bool,
}

/// A process, and how it is started; dropping it stops the process.
struct Running {
    start: Start,
    child: Child,
}

struct Start {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    settings: Values,
    log: PathBuf,
    /// Where callers reach it, where they do.
    url: Option<String>,
    /// Where it says that it is ready.
    probe: (String, &'static str),
}

impl Start {
    fn spawn(&self, home: &Home) -> anyhow::Result<Child> {
        let mut program = Command::new(&self.program);
        environment::apply(program.args(&self.arguments).current_dir(home.root()), &self.settings);
        process::spawn(&mut program, &self.log)
    }
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
pub(crate) fn service(name: &str) -> &'static Service {
    services::ALL
        .iter()
        .find(|service| service.name == name)
        .expect("tests look for the services of every bench and drill")
}

/// Each process with its number among those of its service, and its name: the service's where it is the only one.
fn processes(services: &[&'static str]) -> Vec<(&'static Service, u32, String)> {
    let mut processes = Vec::new();
    for (i, name) in services.iter().enumerate() {
        let before = services[..i].iter().filter(|other| *other == name).count();
        let is_only = services.iter().filter(|other| *other == name).count() == 1;
        let number = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
        let own = if is_only { (*name).to_owned() } else { format!("{name}-{number}") };
        processes.push((service(name), number, own));
    }
    processes
}

impl<'a> Platform<'a> {
    /// Starts the server.
    pub(crate) fn start(home: &'a Home, profile: Profile) -> anyhow::Result<Self> {
        postgres::remove(&Purpose::Bench.log(home))?;
        let mut secrets = Secrets::load(home.bench().join("secrets"))?;
        let port = Ports::default().pick(POSTGRES)?;
        let cluster = Cluster::prepare(home, Purpose::Bench, &mut secrets, port)?;
        let server = Server::start(cluster)?;
        Ok(Self { home, profile, running: Vec::new(), server, secrets, settings: Values::new() })
    }

    pub(crate) fn durability(&self) -> anyhow::Result<Durability> {
        Durability::parse(&self.server.cluster().psql("postgres").ask(Durability::QUERY)?)
    }

    /// Stops what ran last, and starts these on a new, migrated database.
    pub(crate) fn prepare(&mut self, cast: Cast) -> anyhow::Result<()> {
        self.forget();
        let mut ports = Ports::default();
        let mut listen = |name: &str| anyhow::Ok(format!("127.0.0.1:{}", ports.pick(name)?));
        let mut ours = Values::new();
        if cast.has_sandbox {
            ours.insert(SNAPTRADE_BASE_URL.to_owned(), format!("http://{}", listen(state::SANDBOX)?));
        }
        let processes = processes(cast.services);
        let mut listeners = Vec::new();
        for (service, number, _) in &processes {
            let mut own = Values::new();
            for (key, port_name) in service.listeners(*number) {
                own.insert(key.to_owned(), listen(&port_name)?);
            }
            // Of several processes the settings that are common to all name the first.
            for (key, address) in &own {
                ours.entry(key.clone()).or_insert_with(|| address.clone());
            }
            listeners.push(own);
        }
        self.settings = environment::private(self.home, self.server.cluster(), &mut self.secrets, ours)?;
        self.migrate()?;
        if cast.has_sandbox {
            self.start_one(self.sandbox())?;
        }
        for ((service, _, name), own) in processes.into_iter().zip(listeners) {
            self.start_one(self.service(service, name, own))?;
        }
        Ok(())
    }

    /// Stops what runs and drops its database, which may be large.
    pub(crate) fn forget(&mut self) {
        self.running.clear();
        // What stays behind is dropped before the next one is made.
        let _ = self.server.cluster().psql("postgres").run(&drop_database());
    }

    /// A command of `lab` that knows the settings and the processes.
    pub(crate) fn lab(&self, arguments: &[&str]) -> Command {
        let mut lab = Command::new(self.profile.program(self.home, "lab"));
        environment::apply(lab.args(arguments).current_dir(self.home.root()), &self.settings);
        let running = self.running.iter().map(|running| (running.start.name.as_str(), running.child.id()));
        for (name, pid) in running.chain([(POSTGRES, self.server.pid())]) {
            lab.arg("--process").arg(format!("{name}={pid}"));
        }
        lab
    }

    /// The program `pgbench` of the server, where it is installed.
    pub(crate) fn pgbench(&self) -> Option<PathBuf> {
        self.server.cluster().program("pgbench")
    }

    /// Where callers reach the platform.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        self.running.iter().filter_map(|running| running.start.url.as_deref())
    }

    /// Starts again what was killed, if killing is part of it. Whatever else has ended should not have.
    pub(crate) fn keep_up(&mut self, is_killed_at_times: bool) -> anyhow::Result<()> {
        for Running { start, child } in &mut self.running {
            let ended = child.try_wait().with_context(|| format!("looking after {}", start.name))?;
            match ended {
                None => {}
                Some(status) if is_killed_at_times && was_killed(status) => {
                    *child = start.spawn(self.home)?;
                }
                Some(status) => {
                    bail!("{} ended by itself ({status}); {}", start.name, process::tail(&start.log))
                }
            }
        }
        Ok(())
    }

    fn migrate(&self) -> anyhow::Result<()> {
        let cluster = self.server.cluster();
        cluster.psql("postgres").run(&format!("{}create database {DATABASE};\n", drop_database()))?;
        let log = self.home.bench().join("migrate.log");
        let mut spillway = Command::new(self.profile.program(self.home, "spillway"));
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

    fn sandbox(&self) -> Start {
        let url = self.settings[SNAPTRADE_BASE_URL].clone();
        let listen = url.trim_start_matches("http://").to_owned();
        Start {
            name: state::SANDBOX.to_owned(),
            program: self.profile.program(self.home, "lab"),
            arguments: vec!["sandbox".to_owned(), "--listen".to_owned(), listen],
            settings: self.settings.clone(),
            log: self.log(state::SANDBOX),
            url: None,
            probe: (url, "/livez"),
        }
    }

    fn service(&self, service: &Service, name: String, listeners: Values) -> Start {
        let mut settings = self.settings.clone();
        settings.extend(listeners);
        Start {
            program: self.profile.program(self.home, service.binary),
            arguments: service.arguments.iter().map(|&argument| argument.to_owned()).collect(),
            log: self.log(&name),
            url: service.public.map(|key| services::url_of(&settings[key])),
            probe: (services::url_of(&settings[service.internal]), "/readyz"),
            name,
            settings,
        }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.home.bench().join(format!("{name}.log"))
    }

    /// Starts a process and waits until it is ready.
    fn start_one(&mut self, start: Start) -> anyhow::Result<()> {
        interrupt::check()?;
        postgres::remove(&start.log)?;
        let child = start.spawn(self.home)?;
        self.running.push(Running { start, child });
        let Running { start, child } = self.running.last_mut().context("it was pushed a line above")?;
        ready::wait(&start.name, (&start.probe.0, start.probe.1), &start.log, || {
            child.try_wait().with_context(|| format!("looking after {}", start.name))
        })
    }
}

fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SIGKILL as i32)
}

fn drop_database() -> String {
    format!("drop database if exists {DATABASE} with (force);\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::services::{GATEWAY, SNAPTRADE_WORKER};

    #[test]
    fn a_process_has_a_number_where_there_are_others_like_it() {
        let names = |services: &[&'static str]| {
            processes(services).into_iter().map(|(_, number, name)| (number, name)).collect::<Vec<_>>()
        };

        assert_eq!(names(&[GATEWAY, SNAPTRADE_WORKER]), [(1, GATEWAY.into()), (1, SNAPTRADE_WORKER.into())]);
        assert_eq!(
            names(&[GATEWAY, SNAPTRADE_WORKER, SNAPTRADE_WORKER]),
            [(1, GATEWAY.into()), (1, "snaptrade-worker-1".into()), (2, "snaptrade-worker-2".into())]
        );
    }

    #[test]
    fn only_a_kill_is_a_kill() {
        assert!(was_killed(ExitStatus::from_raw(Signal::SIGKILL as i32)));
        assert!(!was_killed(ExitStatus::from_raw(Signal::SIGTERM as i32)));
        assert!(!was_killed(ExitStatus::from_raw(9 << 8)));
    }
}
