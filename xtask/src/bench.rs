//! `cargo xtask bench`: how fast the platform is on this machine, beside its peers in the same run.
//!
//! This starts what a bench needs, in release builds on a private server whose writes are durable; the measuring is
//! done by `lab bench`. A platform that is up is left alone, though it takes CPU that the bench would like.

mod machine;
mod peers;
mod platform;
mod report;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use serde_json::value::RawValue;

use crate::home::Home;
use crate::terminal::say;
use crate::up::services::{GATEWAY, SNAPTRADE_WORKER};
use crate::{command, postgres, random, workspace};
use platform::Platform;
use report::Report;

const SEED_BYTES: usize = 4;

/// Packages built beside the services: the operator's CLI, which migrates, and the program that measures.
const TOOLS: [&str; 2] = ["spillway", "tests"];

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

const EVERY: &str = "all";

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

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let benches = chosen(&args.name)?;
    let _lock = home.lock_bench()?;
    let seed = args.seed.map_or_else(|| random::hex(SEED_BYTES).and_then(|hex| from_hex(&hex)), Ok)?;
    build(home)?;
    let peers = args.peers.then(|| peers::install(home)).transpose()?;
    let mut platform = Platform::start(home)?;
    let mut report = Report::new(seed, platform.durability()?, home);
    say(report.header());
    let mut failed = Vec::new();
    for bench in benches {
        say(format_args!("\npreparing {}", bench.name));
        platform.prepare(bench.services)?;
        let (figures, passed) = measure(&platform, bench, args, peers.as_deref(), seed)?;
        report.benches.extend(figures);
        if !passed {
            failed.push(bench.name);
        }
    }
    platform.forget();
    if let Some(file) = &args.json {
        report.write(file)?;
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("failed: {}", failed.join(", ")));
    Ok(ExitCode::FAILURE)
}

fn chosen(name: &str) -> anyhow::Result<Vec<&'static Bench>> {
    let benches: Vec<_> = ALL.iter().filter(|bench| name == EVERY || bench.name == name).collect();
    if benches.is_empty() {
        let known: Vec<&str> = ALL.iter().map(|bench| bench.name).collect();
        bail!("no bench is called `{name}`; there are: {}, {EVERY}", known.join(", "));
    }
    Ok(benches)
}

fn from_hex(digits: &str) -> anyhow::Result<u32> {
    u32::from_str_radix(digits, 16).context("making a seed")
}

/// Whatever bench is run, everything: another choice of packages may have other features, and builds them all anew.
fn build(home: &Home) -> anyhow::Result<()> {
    say("building in release");
    let mut cargo = workspace::cargo(home.root());
    cargo.args(["build", "--release", "--locked", "--bins"]);
    let services = ALL.iter().flat_map(|bench| bench.services).map(|name| platform::service(name).binary);
    for package in services.chain(TOOLS) {
        cargo.args(["-p", package]);
    }
    command::run(&mut cargo)
}

/// Runs the program that measures. A bench that failed a check has figures all the same.
fn measure(
    platform: &Platform<'_>,
    bench: &Bench,
    args: &Args,
    peers: Option<&Path>,
    seed: u32,
) -> anyhow::Result<(Option<Box<RawValue>>, bool)> {
    let file = platform.home().bench().join(format!("{}.json", bench.name));
    postgres::remove(&file)?;
    let mut lab = Command::new(platform.home().release_program("lab"));
    lab.args(["bench", bench.name, "--seed", &seed.to_string(), "--json"]).arg(&file);
    if let Some(folder) = peers {
        lab.arg("--peers").arg(folder);
    }
    platform.describe(&mut lab);
    let status = command::status(lab.args(&args.lab))?;
    Ok((figures(&file)?, status.success()))
}

fn figures(file: &Path) -> anyhow::Result<Option<Box<RawValue>>> {
    let Some(text) = crate::private_file::read(file)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).with_context(|| format!("reading {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_bench_is_answered_with_the_known_ones() {
        let error = chosen("speed").err().expect("there is no `speed`");

        assert!(error.to_string().contains("intake"), "{error}");
        assert_eq!(chosen(EVERY).expect("all").len(), ALL.len());
    }

    #[test]
    fn every_bench_starts_services_that_exist() {
        for bench in ALL {
            for name in bench.services {
                assert_eq!(platform::service(name).name, *name);
            }
        }
    }
}
