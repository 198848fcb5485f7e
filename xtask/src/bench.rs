//! `cargo xtask bench`: how fast the platform is on this machine, beside its peers in the same run.
//!
//! This starts what a bench needs, in release builds on a private server whose writes are durable; the measuring is
//! done by `lab bench`. A platform that is up is left alone, though it takes CPU that the bench would like.

mod peers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::home::Home;
use crate::rig::platform::Cast;
use crate::rig::{self, EVERY, Header, Platform, Profile};
use crate::terminal::say;
use crate::up::services::{GATEWAY, SNAPTRADE_WORKER};
use crate::{command, postgres};

/// One bench: a command of `lab bench`, and what runs while it measures.
struct Bench {
    name: &'static str,
    /// Names of services, one process each.
    services: &'static [&'static str],
}

const ALL: &[Bench] = &[
    Bench { name: "intake", services: &[GATEWAY] },
    Bench { name: "drain", services: &[] },
    Bench { name: "growth", services: &[] },
    Bench { name: "latency", services: &[] },
    Bench { name: "claim", services: &[] },
    Bench { name: "idle", services: &[GATEWAY, SNAPTRADE_WORKER] },
];

const HELP: &str = "\
What follows `--` goes to `lab bench NAME`, whose `--help` lists it:
  cargo xtask bench intake -- --rounds 5 --connections 256";

/// Measure release builds on a private Postgres with durable writes
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Which bench, or `all`
    #[arg(default_value = EVERY)]
    name: String,

    /// Also measure the peers that a bench does not measure anyway
    #[arg(long)]
    peers: bool,

    /// Write the report as JSON to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Repeat a run with the seed that its report names
    #[arg(long)]
    seed: Option<u32>,

    /// Passed to `lab bench`
    #[arg(last = true, value_name = "ARGS")]
    lab: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    header: Header,
    benches: Vec<Box<RawValue>>,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let benches = rig::choose("bench", ALL, |bench| bench.name, &args.name)?;
    let _lock = home.lock_bench()?;
    let seed = rig::seed(args.seed)?;
    rig::build(home, Profile::Release)?;
    let peers = args.peers.then(|| peers::install(home)).transpose()?;
    let mut platform = Platform::start(home, Profile::Release)?;
    let header = Header::new(seed, Profile::Release, platform.durability()?, home);
    say(header.line());
    let mut report = Report { header, benches: Vec::new() };
    let mut failed = Vec::new();
    for bench in benches {
        say(format_args!("\npreparing {}", bench.name));
        platform.prepare(Cast { services: bench.services, has_sandbox: false })?;
        let (figures, passed) = measure(home, &platform, bench, args, peers.as_deref(), seed)?;
        report.benches.extend(figures);
        if !passed {
            failed.push(bench.name);
        }
    }
    platform.forget();
    rig::conclude(args.json.as_deref(), &report, &failed)
}

/// Runs the program that measures. A bench that failed a check has figures all the same.
fn measure(
    home: &Home,
    platform: &Platform<'_>,
    bench: &Bench,
    args: &Args,
    peers: Option<&Path>,
    seed: u32,
) -> anyhow::Result<(Option<Box<RawValue>>, bool)> {
    let file = home.bench().join(format!("{}.json", bench.name));
    postgres::remove(&file)?;
    let mut lab = platform.lab(&["bench", bench.name, "--seed", &seed.to_string()]);
    lab.arg("--json").arg(&file);
    if let Some(folder) = peers {
        lab.arg("--peers").arg(folder);
    }
    match platform.pgbench() {
        Some(pgbench) => drop(lab.arg("--pgbench").arg(pgbench)),
        None => say("pgbench is not installed beside the server, so it is not measured"),
    }
    let status = command::status(lab.args(&args.lab))?;
    Ok((rig::read_raw(&file)?, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::platform::service;

    #[test]
    fn every_bench_starts_services_that_exist() {
        for bench in ALL {
            for name in bench.services {
                assert_eq!(service(name).name, *name);
            }
        }
    }
}
