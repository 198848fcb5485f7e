//! `lab spike`: lets an incident happen to a running platform, and checks what became of it.
//!
//! A drill starts nothing: `cargo xtask spike` starts a platform and tells it where things are. What is offered is
//! decided before it begins (`plan`), what happens is written down (`history`), and only then is it judged
//! (`checks`), by what the platform has committed and the provider has recorded.

mod checks;
mod clock;
mod fanout;
mod history;
mod killer;
mod page;
mod plan;
mod probe;
mod provider;
mod report;
mod rows;
mod runs;
mod senders;
mod tally;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::bench::Process;
use crate::connection::Settings;

pub use checks::Check;
pub use fanout::drill as snaptrade_fanout;
pub use report::Scenario;

/// Lets an incident happen.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    drill: Drill,
}

#[derive(clap::Subcommand)]
enum Drill {
    /// Signed SnapTrade events about many accounts at once, most of them repeated, while the provider throttles and
    /// fails.
    SnaptradeFanout(Options),
}

/// What every drill is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How much of the whole drill.
    #[arg(long, default_value_t = 1.0)]
    pub scale: f64,
    /// Decides ids, times and order.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to send; may be repeated. Default: the platform of the settings.
    #[arg(long = "gateway", value_name = "URL")]
    pub gateways: Vec<String>,
    /// How many worker processes there are.
    #[arg(long, default_value_t = 1)]
    pub workers: u32,
    /// A process of the platform; may be repeated.
    #[arg(long = "process", value_name = "NAME=PID")]
    pub processes: Vec<Process>,
    /// `kill -9` of a worker and of a gateway in the middle of it.
    #[arg(long)]
    pub kill: bool,
    /// How long status is read before the first delivery.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub idle_seconds: u64,
    /// In how many seconds the provider counts its quota.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub quota_seconds: u64,
    /// How long the last command may take to end.
    #[arg(long, default_value_t = 900)]
    pub wait_seconds: u64,
    /// Write the result to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page that explains what happened to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// What the page says the drill ran on.
    #[arg(long, default_value = "")]
    pub about: String,
}

impl Options {
    /// What is told before it takes an hour to find out.
    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.scale > 0.0 && self.scale <= 100.0, "--scale has to be more than 0 and at most 100");
        ensure!(self.workers > 0, "--workers has to be more than 0");
        if self.kill {
            killer::check(&self.processes)?;
        }
        Ok(())
    }

    const fn quota_period(&self) -> Duration {
        Duration::from_secs(self.quota_seconds)
    }
}

/// A drill that is over: its figures, and the page that explains it.
pub struct Outcome {
    /// See there.
    pub scenario: Scenario,
    /// Self-contained HTML.
    pub page: String,
}

/// Drills, prints, writes, and fails unless every check held.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = Settings::find()?;
    let Drill::SnaptradeFanout(mut options) = args.drill;
    if options.gateways.is_empty() {
        options.gateways = vec![settings.url_of_listener("SANMOPIA_GATEWAY_LISTEN")?];
    }
    let outcome = snaptrade_fanout(&options, &settings).await?;
    outcome.scenario.print();
    if let Some(file) = &options.json {
        let text = serde_json::to_string(&outcome.scenario).context("writing the result as JSON")?;
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    if let Some(file) = &options.html {
        std::fs::write(file, &outcome.page).with_context(|| format!("writing {}", file.display()))?;
    }
    let failed: Vec<&str> = outcome.scenario.failed().collect();
    ensure!(failed.is_empty(), "did not hold: {}", failed.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn check(arguments: &[&str]) -> anyhow::Result<()> {
        Command::parse_from([&["drill"], arguments].concat()).options.check()
    }

    #[test]
    fn a_drill_that_is_to_kill_must_know_whom() {
        assert!(check(&[]).is_ok());
        assert!(check(&["--kill"]).is_err());
        assert!(check(&["--kill", "--process", "gateway-1=77"]).is_err());
        assert!(
            check(&["--kill", "--process", "gateway-1=77", "--process", "snaptrade-worker-1=0"]).is_err()
        );
        assert!(
            check(&["--kill", "--process", "gateway-1=77", "--process", "snaptrade-worker-1=78"]).is_ok()
        );
    }

    #[test]
    fn a_scale_of_nothing_is_refused() {
        assert!(check(&["--scale", "0"]).is_err());
        assert!(check(&["--scale=-1"]).is_err());
        assert!(check(&["--scale", "NaN"]).is_err());
    }
}
