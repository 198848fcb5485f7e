//! `cargo xtask spike`: whether the platform holds when an incident happens to it.
//!
//! This starts a platform of its own; the incident is made and judged by `lab spike`. A platform that is up is left
//! alone.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::home::Home;
use crate::rig::platform::Cast;
use crate::rig::{self, EVERY, Header, Platform, Profile};
use crate::terminal::say;
use crate::up::services::{GATEWAY, SNAPTRADE_WORKER};
use crate::{command, postgres};

/// One drill: a command of `lab spike`, and what runs meanwhile beside the sandbox.
struct Drill {
    name: &'static str,
    services: &'static [&'static str],
}

const ALL: &[Drill] =
    &[Drill { name: "snaptrade-fanout", services: &[GATEWAY, GATEWAY, SNAPTRADE_WORKER, SNAPTRADE_WORKER] }];

const HELP: &str = "\
What follows `--` goes to `lab spike NAME`, whose `--help` lists it:
  cargo xtask spike snaptrade-fanout -- --idle-seconds 30";

/// Let an incident happen to a private platform, and check that everything held
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Which drill, or `all`
    #[arg(default_value = EVERY)]
    name: String,

    /// How much of the whole drill
    #[arg(long, default_value_t = 1.0)]
    scale: f64,

    /// Repeat a drill with the seed that its report names
    #[arg(long)]
    seed: Option<u32>,

    /// `kill -9` of a worker and of a gateway in the middle of it
    #[arg(long)]
    kill: bool,

    /// Write the report as JSON to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write a page that explains what happened to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// How the programs are built
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,

    /// Passed to `lab spike`
    #[arg(last = true, value_name = "ARGS")]
    lab: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    header: Header,
    scenarios: Vec<Box<RawValue>>,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let drills = rig::choose("drill", ALL, |drill| drill.name, &args.name)?;
    let _lock = home.lock_bench()?;
    let seed = rig::seed(args.seed)?;
    rig::build(home, args.profile)?;
    let mut platform = Platform::start(home, args.profile)?;
    let header = Header::new(seed, args.profile, platform.durability()?, home);
    say(header.line());
    let mut report = Report { header, scenarios: Vec::new() };
    let mut failed = Vec::new();
    for drill in drills {
        say(format_args!("\npreparing {}", drill.name));
        platform.prepare(Cast { services: drill.services, has_sandbox: true })?;
        let about = report.header.line();
        let (scenario, passed) = happen(home, &mut platform, drill, args, seed, &about)?;
        report.scenarios.extend(scenario);
        if !passed {
            failed.push(drill.name);
        }
    }
    platform.forget();
    rig::conclude(args.json.as_deref(), &report, &failed)
}

/// Runs the program that makes the incident. A drill that has failed has a report all the same.
fn happen(
    home: &Home,
    platform: &mut Platform<'_>,
    drill: &Drill,
    args: &Args,
    seed: u32,
    about: &str,
) -> anyhow::Result<(Option<Box<RawValue>>, bool)> {
    let file = home.bench().join(format!("{}.json", drill.name));
    postgres::remove(&file)?;
    let workers = drill.services.iter().filter(|name| **name == SNAPTRADE_WORKER).count();
    let mut lab = platform.lab(&["spike", drill.name, "--seed", &seed.to_string(), "--about", about]);
    lab.args(["--scale", &args.scale.to_string(), "--workers", &workers.to_string(), "--json"]).arg(&file);
    for url in platform.urls() {
        lab.args(["--gateway", url]);
    }
    if args.kill {
        lab.arg("--kill");
    }
    if let Some(html) = &args.html {
        lab.arg("--html").arg(std::path::absolute(html)?);
    }
    let status = command::status_beside(lab.args(&args.lab), || platform.keep_up(args.kill))?;
    Ok((rig::read_raw(&file)?, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::platform::service;

    #[test]
    fn every_drill_starts_services_that_exist() {
        for name in ALL.iter().flat_map(|drill| drill.services) {
            assert_eq!(service(name).name, *name);
        }
    }
}
