//! The bench `latency`: how soon an idle worker starts a command, from before it is put in, by one clock.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use store::intake::take_in;
use store::wake::Notifier;
use testkit::Dice;
use tokio::sync::mpsc;

use super::work::{self, QUEUE, Worker, command};
use super::{Common, peers};
use crate::connection::Settings;
use crate::figures::Percentiles;

/// Longer than any start should take, so that a lost one ends the bench.
const LIMIT: Duration = Duration::from_secs(30);

/// Measures how soon an idle worker starts.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many commands, one by one.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its documentation would be taken for the program's")]
    pub common: Common,
}

/// What the bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `latency`.
    pub name: &'static str,
    /// From before a command is put in until its handler starts.
    #[serde(flatten)]
    pub ours: Option<Percentiles>,
    /// The same of others.
    pub peers: BTreeMap<String, Percentiles>,
    /// Commands.
    pub samples: u32,
    /// Commands that started.
    pub started: u32,
}

/// Measures ours, then the peers.
pub async fn measure(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    let (gateway, mut dice) = (work::gateway(settings)?, Dice::new("latency", &[args.common.seed]));
    let notifier = Notifier::start(gateway.clone());
    let (sender, mut starts) = mpsc::unbounded_channel();
    let worker = Worker::start(settings, 1, move |n| {
        let _ = sender.send((n, Instant::now()));
    })?;
    let mut waits = Vec::new();
    // The first one finds connections open and statements prepared, as in a process that has worked before.
    for n in 0..=args.samples {
        tokio::time::sleep(Duration::from_micros(20_000 + dice.bits() % 100_000)).await;
        let item = command(n);
        let asked = Instant::now();
        take_in(&gateway, &[], |_| vec![item]).await.context("putting a command in")?;
        notifier.notify(QUEUE);
        let start = tokio::time::timeout(LIMIT, starts.recv()).await.context("waiting for a start")?;
        let (started, at) = start.context("the worker has ended")?;
        ensure!(started == n, "command {started} started instead of {n}");
        if n > 0 {
            waits.push(at - asked);
        }
    }
    worker.stop().await?;
    let mut others = BTreeMap::new();
    if let Some(folder) = &args.common.peers {
        let waits = peers::latency(folder, settings.get("SANMOPIA_DATABASE_URL")?, args.samples).await?;
        others.extend(Percentiles::of(&waits).map(|figures| (peers::GRAPHILE.to_owned(), figures)));
    }
    Ok(Report {
        name: "latency",
        ours: Percentiles::of(&waits),
        peers: others,
        samples: args.samples,
        started: u32::try_from(waits.len()).unwrap_or(u32::MAX),
    })
}

impl super::Report for Report {
    fn table(&self) -> String {
        let mut table = format!("latency, {} commands put in one by one\n", self.samples);
        let ours = self.ours.iter().map(|figures| ("ours", figures));
        for (name, figures) in ours.chain(self.peers.iter().map(|(name, figures)| (name.as_str(), figures))) {
            let _ = writeln!(table, "  {name:30} {figures}"); // A String takes any text.
        }
        table
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.started == self.samples, "{} of {} started", self.started, self.samples);
        Ok(())
    }
}
