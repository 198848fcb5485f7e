//! `cargo xtask test`: everything that must pass, with a Postgres of its own.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::home::Home;
use crate::postgres::pooler::Pooler;
use crate::postgres::server::Server;
use crate::postgres::test_server::{self, TestServer};
use crate::terminal::say;
use crate::{chaos, command, workspace};

/// Where the tests look for a server on which they may make databases.
const SERVER_KEY: &str = "SPILLWAY_TEST_POSTGRES";
/// Where they look for a server that is a standby.
const STANDBY_KEY: &str = "SPILLWAY_TEST_STANDBY";
/// Where they look for a transaction pooler in front of it.
const POOLER_KEY: &str = "SPILLWAY_TEST_POOLER";

const HELP: &str = "\
What follows `--` goes to `cargo test`, which then is all that runs:
  cargo xtask test -- -p store a_second_delivery
  cargo xtask test -- -p policy -- --nocapture

SPILLWAY_TEST_POSTGRES=postgres://… uses a server of yours instead; its user must be allowed to create
databases and roles. SPILLWAY_TEST_STANDBY=postgres://… then names a standby, and SPILLWAY_TEST_POOLER=HOST:PORT
a pgbouncer in transaction mode in front of your server, which knows that user and, with the same password,
spillway_gateway_pooled and spillway_worker_pooled.";

/// Run all tests, then the smoke tier of chaos, with a private Postgres that is up for as long as they run
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Passed to `cargo test`; a `-p` among them replaces `--workspace`
    #[arg(last = true, value_name = "ARGS")]
    cargo: Vec<String>,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let servers = Servers::start(home)?;
    let started = Instant::now();
    // Flow tests start the platform's programs, which `cargo test` alone would not build.
    command::run(workspace::cargo(home.root()).args(["build", "--locked", "--workspace", "--bins"]))?;
    let mut cargo = workspace::cargo(home.root());
    servers.tell(cargo.args(cargo_arguments(&args.cargo)));
    let mut status = command::status(&mut cargo)?;
    if status.success() && args.cargo.is_empty() {
        say(format_args!(
            "tests passed in {} s; now the faults of money and loss",
            started.elapsed().as_secs()
        ));
        status = chaos::smoke(home, &servers)?;
    }

    let seconds = started.elapsed().as_secs();
    let code = command::exit_code(status);
    match code {
        0 => say(format_args!("tests passed in {seconds} s")),
        _ => say(format_args!("tests failed after {seconds} s ({status})")),
    }
    Ok(ExitCode::from(code))
}

/// What tests and chaos drills stand on; stopped when it is dropped.
pub(crate) struct Servers {
    /// In the order in which they are stopped.
    own: Option<(Pooler, Server, TestServer)>,
}

impl Servers {
    /// Nothing where the environment names a server.
    pub(crate) fn start(home: &Home) -> anyhow::Result<Self> {
        if std::env::var(SERVER_KEY).is_ok_and(|url| !url.is_empty()) {
            return Ok(Self { own: None });
        }
        let server = TestServer::start(home)?;
        let standby = test_server::start_standby(home)?;
        let pooler = Pooler::start(home, server.cluster())?;
        Ok(Self { own: Some((pooler, standby, server)) })
    }

    /// Tells a program where they are; what the environment says it hears anyway.
    pub(crate) fn tell(&self, program: &mut Command) {
        if let Some((pooler, standby, server)) = &self.own {
            program.env(SERVER_KEY, server.url("postgres"));
            program.env(STANDBY_KEY, standby.cluster().url("postgres"));
            program.env(POOLER_KEY, pooler.address());
        }
    }
}

fn cargo_arguments(given: &[String]) -> Vec<&str> {
    let for_cargo = given.split(|argument| argument == "--").next().unwrap_or_default();
    let picks = |argument: &String| argument.starts_with("-p") || argument.starts_with("--package");
    let mut arguments = vec!["test", "--locked"];
    if !for_cargo.iter().any(picks) {
        arguments.push("--workspace");
    }
    arguments.extend(given.iter().map(String::as_str));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(given: &str) -> String {
        let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        cargo_arguments(&given).join(" ")
    }

    #[test]
    fn without_arguments_the_whole_workspace_is_tested() {
        assert_eq!(arguments(""), "test --locked --workspace");
    }

    #[test]
    fn a_package_replaces_the_workspace() {
        assert_eq!(arguments("-p store a_name"), "test --locked -p store a_name");
        assert_eq!(arguments("--package=store"), "test --locked --package=store");
        assert_eq!(arguments("-pstore"), "test --locked -pstore");
    }

    #[test]
    fn what_the_test_program_is_told_does_not_pick_a_package() {
        assert_eq!(arguments("a_name -- -p"), "test --locked --workspace a_name -- -p");
    }
}
