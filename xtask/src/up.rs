//! `cargo xtask up`: a running platform from a bare checkout.
//!
//! The order is the story: database, build, settings, migration, sandbox, demo, services, readiness. If any
//! step fails, what was started is stopped again.

mod demo;
pub(crate) mod environment;
mod platform;
mod report;
pub(crate) mod services;
mod watch;

use std::process::ExitCode;

use crate::env_file::{self, Values};
use crate::home::Home;
use crate::postgres::Cluster;
use crate::terminal::say;
use crate::{command, private_file, workspace};
use platform::Platform;
use services::Scale;

pub(crate) use demo::Demo;

/// Packages built beside the services: the operator's CLI, and the sandbox with the load generator.
const TOOLS: [&str; 2] = ["spillway", "tests"];

const HELP: &str = "\
Everything private lives under .spillway/; data, secrets and ports are kept between `down` and `up`.

Any SANMOPIA_… variable you set overrides what `up` would choose. With SANMOPIA_DATABASE_URL no private
Postgres is started, with SANMOPIA_SNAPTRADE_BASE_URL no sandbox.";

/// Start the platform on private servers and free ports, and keep it until Ctrl-C
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Return when everything is ready; `cargo xtask down` ends it
    #[arg(long)]
    detach: bool,

    /// How many processes of a service to start, such as gateway=2; may be repeated
    #[arg(long, value_name = "NAME=N")]
    scale: Vec<String>,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let scale = Scale::parse(&args.scale)?;
    let lock = home.lock()?;
    let mut platform = Platform::new(home)?;
    if let Err(error) = bring_up(&mut platform, &scale) {
        say("the platform did not come up; stopping what was started");
        platform.stop()?;
        return Err(error);
    }
    report::print(home, platform.state(), args.detach);
    drop(lock);
    if args.detach { Ok(ExitCode::SUCCESS) } else { watch::until_stopped(&mut platform) }
}

fn bring_up(platform: &mut Platform<'_>, scale: &Scale) -> anyhow::Result<()> {
    let given = environment::given();
    let server =
        if given.contains_key(environment::DATABASE_URL) { None } else { Some(platform.start_postgres()?) };
    build(platform.home())?;
    let settings = environment::settings(platform, server.as_ref(), &given)?;
    private_file::write(&platform.home().env(), &env_file::render(&settings)?)?;
    migrate(platform, server.as_ref(), &settings)?;
    if !given.contains_key(environment::SNAPTRADE_BASE_URL) {
        demo::start_sandbox(platform, &settings)?;
    }
    services::start(platform, scale, &settings)
}

fn build(home: &Home) -> anyhow::Result<()> {
    say("building");
    let mut cargo = workspace::cargo(home.root());
    cargo.args(["build", "--locked", "--bins"]);
    for package in services::ALL.iter().map(|service| service.binary).chain(TOOLS) {
        cargo.args(["-p", package]);
    }
    command::run(&mut cargo)
}

/// The migration makes the roles without a password; only a private server's are given one.
fn migrate(platform: &Platform<'_>, server: Option<&Cluster>, settings: &Values) -> anyhow::Result<()> {
    say("migrating");
    platform.spillway("migrate", &["migrate"], settings)?;
    let Some(server) = server else { return Ok(()) };
    server.psql(environment::DATABASE).run(&environment::role_logins(platform.secrets())?)
}
