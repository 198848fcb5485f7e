//! The bench `growth`: whether a worker that has fallen behind is as fast as one that has not.
//!
//! The backlogs grow out of one another, each filled up anew for each round. What is timed begins when the worker has
//! ended as many commands as it then is timed with, so that its connections are open and their statements planned, and
//! it ends with the whole backlog still waiting.

mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use store::Pool;
use testkit::Session;

use super::Common;
use super::work::{self, QUEUE, Worker, calm, fill};
use crate::connection::Settings;
use crate::figures::{count, per_s};

pub use super::work::Counts;
pub use report::Report;

/// The backlogs, by the names that they have in the report, from the smallest to the largest.
const BACKLOGS: [(&str, u32); 4] = [("1k", 1000), ("10k", 10_000), ("100k", 100_000), ("1m", 1_000_000)];

/// A worker's commands at work or on their way to their end, as a multiple of what it runs at a time.
const UNDER_WAY: u32 = 3;

/// So that a worker that stands still ends the bench.
const LIMIT: Duration = Duration::from_mins(10);

/// Measures how fast a worker drains in front of a backlog.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many commands a round is timed with.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub n: u32,
    /// How many rounds for each backlog.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Backlogs so much smaller.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub divisor: u32,
    /// Runs at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub concurrency: u32,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its documentation would be taken for the program's")]
    pub common: Common,
}

/// What one round measured.
#[derive(Clone, Copy, Debug)]
struct Round {
    per_s: f64,
    wal_bytes_per_message: f64,
}

/// Measures one backlog after the other.
pub async fn measure(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    // A worker ends many at once, as many as it runs: of a few times that no rate can be told.
    ensure!(args.n >= 4 * args.concurrency, "--n has to be at least four times --concurrency");
    let mut bench =
        Bench { server: work::server(settings).await?, gateway: work::gateway(settings)?, settings, args };
    let mut rounds = BTreeMap::new();
    for (name, backlog) in BACKLOGS {
        let mut measured = Vec::new();
        for _ in 0..args.rounds {
            let round = bench.round(backlog / args.divisor).await;
            measured.push(round.with_context(|| format!("draining before a backlog of {name}"))?);
        }
        rounds.insert(name, measured);
    }
    let counts = work::counts(&mut bench.server).await?;
    let durable = work::is_durable(&mut bench.server).await?;
    Ok(Report::of(args, &rounds, counts, durable))
}

struct Bench<'a> {
    server: Session,
    gateway: Pool,
    settings: &'a Settings,
    args: &'a Args,
}

impl Bench<'_> {
    async fn round(&mut self, backlog: u32) -> anyhow::Result<Round> {
        let Args { n, concurrency, .. } = *self.args;
        self.fill_up_to(backlog + 2 * n + UNDER_WAY * concurrency).await?;
        calm(&mut self.server).await?;
        let written = work::wal_bytes(&mut self.server).await?;
        let worker = Worker::start(self.settings, concurrency, |_| ())?;
        let (began, before) = ended(&worker, u64::from(n)).await?;
        let (end, after) = ended(&worker, 2 * u64::from(n)).await?;
        let succeeded = worker.stop().await?;
        let written = work::wal_bytes(&mut self.server).await? - written;
        Ok(Round {
            per_s: per_s(usize::try_from(after - before)?, end - began),
            wal_bytes_per_message: count(usize::try_from(written)?) / count(usize::try_from(succeeded)?),
        })
    }

    async fn fill_up_to(&mut self, messages: u32) -> anyhow::Result<()> {
        let waiting = self.server.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await;
        let waiting = u32::try_from(waiting.context("counting the messages")?)?;
        fill(&self.gateway, messages.saturating_sub(waiting)).await
    }
}

/// When the worker had ended at least so many commands, and how many those were: it ends many at once.
async fn ended(worker: &Worker, least: u64) -> anyhow::Result<(Instant, u64)> {
    let counted = async {
        loop {
            let (now, succeeded) = (Instant::now(), worker.succeeded());
            if succeeded >= least {
                return (now, succeeded);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, counted).await.context("the worker stands still")
}
