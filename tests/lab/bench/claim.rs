//! The bench `claim`: what one claim takes before queues that are hard to search.
//!
//! Every sample is a claim of ten messages, as the claim loop would ask for them, and is handed back, so that the
//! case stays as it is.

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queue::Search;
use serde::Serialize;
use store::Pool;
use store::queue::{Claimed, Claims, claim, hand_back};
use testkit::Session;

use super::Common;
use super::work::{self, WORKLOAD};
use crate::connection::Settings;
use crate::figures::{self, Percentiles};

use cases::Case;

/// Messages of one claim at most.
const LIMIT: u32 = 10;

/// Measures single claims.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many claims of each case.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    /// Queues so much smaller.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub divisor: u32,
    /// Only the cases whose names begin so.
    #[arg(long, value_name = "CASE")]
    pub only: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its documentation would be taken for the program's")]
    pub common: Common,
}

/// What the bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `claim`.
    pub name: &'static str,
    /// By the case's name.
    pub cases: BTreeMap<&'static str, Measured>,
    /// Claims of each case.
    pub samples: u32,
}

/// One case.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// How long claims took.
    #[serde(flatten)]
    pub claims: Option<Percentiles>,
    /// Messages that a claim found, at least and at most.
    pub found: (usize, usize),
    /// Messages before the ones that a claim finds.
    pub messages: u32,
    /// How long it took to get past them for the first time, and with how many claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_pass_ms: Option<f64>,
    /// See `first_pass_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_pass_claims: Option<u32>,
    /// What a claim is to find.
    #[serde(skip)]
    meant: usize,
}

/// Measures the cases one after the other.
pub async fn measure(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    let mut bench = Bench {
        server: work::server(settings).await?,
        other: work::server(settings).await?,
        pool: work::worker(settings)?,
        search: Search::default(),
    };
    let mut cases = BTreeMap::new();
    for case in
        cases::ALL.iter().filter(|case| args.only.as_ref().is_none_or(|only| case.name.starts_with(only)))
    {
        let measured = bench.case(case, args).await.with_context(|| format!("measuring `{}`", case.name))?;
        cases.insert(case.name, measured);
    }
    Ok(Report { name: "claim", cases, samples: args.samples })
}

struct Bench {
    server: Session,
    /// Holds a snapshot where a case wants that.
    other: Session,
    pool: Pool,
    search: Search,
}

impl Bench {
    async fn case(&mut self, case: &Case, args: &Args) -> anyhow::Result<Measured> {
        let messages = case.messages / args.divisor;
        self.search = Search::default();
        self.server.execute(&cases::clear()).await.context("emptying the queue")?;
        self.server.execute(&case.fill(messages)).await.context("filling the queue")?;
        work::calm(&mut self.server).await?;
        let mut pass = None;
        if case.is_held {
            self.other.execute(cases::HOLD_SNAPSHOT).await.context("holding a snapshot")?;
        }
        if case.has_pass {
            pass = Some(self.pass(case.is_held).await?);
        }
        self.server.execute(&case.behind()).await.context("filling the queue's end")?;
        let (mut took, mut found) = (Vec::new(), Vec::new());
        for _ in 0..args.samples {
            let began = Instant::now();
            let claims = self.claim(LIMIT).await?;
            took.push(began.elapsed());
            found.push(claims.messages.len());
            for message in &claims.messages {
                self.give_back(message).await?;
            }
        }
        if case.is_held {
            self.other.execute("rollback").await.context("letting the snapshot go")?;
        }
        let (least, most) = (found.iter().min(), found.iter().max());
        Ok(Measured {
            claims: Percentiles::of(&took),
            found: (least.copied().unwrap_or(0), most.copied().unwrap_or(0)),
            messages,
            first_pass_ms: pass.map(|(took, _)| figures::milliseconds(took)),
            first_pass_claims: pass.map(|(_, claims)| claims),
            meant: if case.has_due { LIMIT as usize } else { 0 },
        })
    }

    /// Claims until there is nothing more. What it gets is ended, except in a case with a key: there it is kept, and
    /// with it the key.
    async fn pass(&mut self, is_ended: bool) -> anyhow::Result<(Duration, u32)> {
        const MANY: u32 = 500;
        let (began, mut claims) = (Instant::now(), 0);
        loop {
            let found = self.claim(if is_ended { MANY } else { LIMIT }).await?;
            claims += 1;
            if found.messages.is_empty() && found.parked == 0 {
                return Ok((began.elapsed(), claims));
            }
            if is_ended {
                let done: Vec<_> = found.messages.iter().filter_map(cases::done).collect();
                let ended = store::ledger::succeed(&self.pool, work::QUEUE, &done).await?;
                ensure!(ended.len() == found.messages.len(), "{} of {} ended", ended.len(), done.len());
            }
        }
    }

    async fn claim(&mut self, limit: u32) -> anyhow::Result<Claims> {
        let ask = self.search.next(limit, Instant::now());
        let claims = claim(&self.pool, WORKLOAD.queue(), &ask).await.context("claiming")?;
        self.search.note(&claims, Instant::now());
        Ok(claims)
    }

    async fn give_back(&self, message: &Claimed) -> anyhow::Result<()> {
        let command = message.command.as_ref().map(|command| command.id);
        let back = hand_back(&self.pool, message.fence, command, Duration::ZERO).await?;
        ensure!(back, "a message was lost while it was held");
        Ok(())
    }
}

impl super::Report for Report {
    fn table(&self) -> String {
        let mut table = format!("claim, {} claims of {LIMIT} messages for each case\n", self.samples);
        for (name, case) in &self.cases {
            let claims = case.claims.map_or_else(|| "not measured".to_owned(), |claims| claims.to_string());
            let pass = case.first_pass_ms.map(|ms| format!("; got past {} in {ms:.0} ms", case.messages));
            let _ = writeln!(table, "  {name:20} {claims}{}", pass.unwrap_or_default()); // A String takes any text.
        }
        table
    }

    fn check(&self) -> anyhow::Result<()> {
        for (name, Measured { found, meant, .. }) in &self.cases {
            ensure!(
                *found == (*meant, *meant),
                "claims of `{name}` found {found:?} messages and not {meant}"
            );
        }
        Ok(())
    }
}
