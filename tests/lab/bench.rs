//! `lab bench`: measures a running platform and says what it found, as a table and as JSON.
//!
//! A bench starts nothing: `cargo xtask bench` starts what it needs and tells it where things are. What it was not
//! told about it does not measure, and the figure is absent.

pub mod claim;
mod cpu;
pub mod drain;
pub mod growth;
pub mod idle;
pub mod intake;
pub mod latency;
mod load;
mod peers;
mod pgbench;
mod statements;
mod work;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use serde::Serialize;

use crate::connection::Settings;

/// Measures a running platform.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(clap::Subcommand)]
enum Bench {
    /// Webhooks a second that are committed before they are answered, beside pgbench on the same server.
    Intake(intake::Args),
    /// Commands that do nothing a second, beside the bare pgmq loop.
    Drain(drain::Args),
    /// How fast a worker drains in front of backlogs up to a million.
    Growth(growth::Args),
    /// How soon an idle worker starts a command.
    Latency(latency::Args),
    /// What a claim takes before queues that are hard to search.
    Claim(claim::Args),
    /// What the processes use while there is nothing to do.
    Idle(idle::Args),
}

/// What every bench is told.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// Write the figures to this file as JSON too.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Decides ids and order.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where other queues are installed, to be measured in turn with ours.
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
    /// A process whose CPU time counts, children included; may be repeated.
    #[arg(long = "process", value_name = "NAME=PID")]
    pub processes: Vec<Process>,
    /// The program `pgbench` of the server's version.
    #[arg(long)]
    pub pgbench: Option<PathBuf>,
}

/// A process of the platform.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it is, such as `postgres`.
    pub name: String,
    /// Its id.
    pub pid: u32,
}

impl FromStr for Process {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, pid) = text.split_once('=').ok_or("expected NAME=PID")?;
        Ok(Self { name: name.to_owned(), pid: pid.parse().map_err(|_| "the PID is no number".to_owned())? })
    }
}

impl Common {
    fn pid(&self, name: &str) -> Option<u32> {
        self.processes.iter().find(|process| process.name == name).map(|process| process.pid)
    }
}

/// What a bench found.
trait Report: Serialize {
    /// For a person.
    fn table(&self) -> String;

    /// Fails where what was measured is not what was meant to be measured.
    fn check(&self) -> anyhow::Result<()>;
}

/// Measures, prints, and fails if a check did not hold.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = Settings::find()?;
    match args.bench {
        Bench::Intake(args) => {
            conclude(&intake::measure(&args, &settings).await?, args.common.json.as_deref())
        }
        Bench::Drain(args) => conclude(&drain::measure(&args, &settings).await?, args.common.json.as_deref()),
        Bench::Growth(args) => {
            conclude(&growth::measure(&args, &settings).await?, args.common.json.as_deref())
        }
        Bench::Latency(args) => {
            conclude(&latency::measure(&args, &settings).await?, args.common.json.as_deref())
        }
        Bench::Claim(args) => conclude(&claim::measure(&args, &settings).await?, args.common.json.as_deref()),
        Bench::Idle(args) => conclude(&idle::measure(&args).await?, args.common.json.as_deref()),
    }
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn conclude(report: &impl Report, file: Option<&Path>) -> anyhow::Result<()> {
    print!("{}", report.table());
    if let Some(file) = file {
        let text = serde_json::to_string(report).context("writing the figures as JSON")?;
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    report.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_with_its_id() {
        let process: Process = "gateway=17".parse().unwrap();

        assert_eq!((process.name.as_str(), process.pid), ("gateway", 17));
        assert!("gateway".parse::<Process>().is_err());
        assert!("gateway=x".parse::<Process>().is_err());
    }
}
