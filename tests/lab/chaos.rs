//! `lab chaos`: breaks the platform on purpose and checks that what was promised still holds.
//!
//! Every fault has a scene of its own (`scene`): a database, an outside provider, and the real programs as processes,
//! from a build that knows how to die at a named place and how to work without one of its guards. What callers were
//! told is written down (`history`); when the fault is over and the platform has healed, what was committed and what
//! the provider saw is judged by the same `checker` for all of them. A fault that never happened has not passed, and
//! neither has one after which too little worked. The `controls` take guards away and must be caught.

mod catalogue;
mod checker;
mod controls;
mod faults;
mod gateway;
mod history;
mod programs;
mod report;
mod rounds;
mod scene;
mod soak;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

pub use report::Report;

/// Breaks the platform on purpose.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A fault by its id, such as F01; a control by its name; or `all`.
    #[arg(default_value = "all")]
    pub name: String,
    /// Repeat a run with the seed that its report names.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Which faults `all` means.
    #[arg(long, value_enum, default_value_t = Tier::Full)]
    pub tier: Tier,
    /// How long `--tier soak` takes.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1440))]
    pub minutes: u64,
    /// Write the report to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Tier {
    /// Money and loss: a few minutes, part of the tests.
    Smoke,
    /// Every fault.
    Full,
    /// Random faults on one platform under load, instead of the single ones.
    Soak,
}

/// Runs what was asked for, prints it, writes it, and fails unless everything held and every control was caught.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let report = match args.tier {
        Tier::Soak => rounds::soak(args.seed, Duration::from_mins(args.minutes)).await,
        tier => rounds::all(catalogue::choose(&args.name, tier)?, args.seed).await?,
    };
    report.print();
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&report).context("writing the report as JSON")?;
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let failed = report.failed();
    ensure!(failed.is_empty(), "did not hold: {}", failed.join(", "));
    Ok(())
}
