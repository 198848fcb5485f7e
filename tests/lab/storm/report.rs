//! What a storm came to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use super::Statuses;
use super::sender::Answer;

/// The figures of a storm. Times are in the unit of their names.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Repeats it.
    pub seed: u64,
    /// Deliveries.
    pub offered: usize,
    /// Different events among them.
    pub unique: usize,
    /// Deliveries by outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Commands by the status they ended with.
    pub ended: BTreeMap<String, usize>,
    /// Events that were promised and are not terminal.
    pub lost: usize,
    /// Events that were answered `queued` more than once, or that have more than one command.
    pub doubled: usize,
    /// How long the sending took.
    pub sent_s: f64,
    /// From the first delivery to the last end.
    pub drain_s: f64,
    /// How long answers took.
    pub accept_ms: Percentiles,
}

/// Of durations in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// Half are faster.
    pub p50: f64,
    /// 95 of 100 are faster.
    pub p95: f64,
    /// 99 of 100 are faster.
    pub p99: f64,
}

impl Report {
    pub(super) fn new(
        seed: u64,
        unique: usize,
        answers: Vec<Answer>,
        statuses: &Statuses,
        sent: Duration,
        drained: Duration,
    ) -> Self {
        let (mut outcomes, mut ended) = (BTreeMap::new(), BTreeMap::new());
        let mut queued: HashMap<&str, usize> = HashMap::new();
        let mut commands: HashMap<&str, HashSet<_>> = HashMap::new();
        for answer in &answers {
            *outcomes.entry(answer.outcome.clone()).or_default() += 1;
            if answer.outcome == "queued" {
                *queued.entry(&answer.id).or_default() += 1;
            }
            commands.entry(&answer.id).or_default().extend(answer.command_id);
        }
        for status in statuses.values() {
            *ended.entry(status.clone()).or_default() += 1;
        }
        let terminal = |status: &&String| status.parse().is_ok_and(contract::Status::is_terminal);
        let twice = |id: &&&str| queued.get(**id).is_some_and(|n| *n > 1) || commands[**id].len() > 1;
        Self {
            seed,
            offered: answers.len(),
            unique,
            lost: statuses.len() - statuses.values().filter(terminal).count(),
            doubled: commands.keys().filter(twice).count(),
            outcomes,
            ended,
            sent_s: sent.as_secs_f64(),
            drain_s: drained.as_secs_f64(),
            accept_ms: percentiles(answers.into_iter().map(|answer| answer.took).collect()),
        }
    }

    /// True where every unique event was promised once, in a command of its own or in one that waited, and every
    /// command has ended.
    pub fn is_whole(&self) -> bool {
        let of = |outcome: &str| self.outcomes.get(outcome).copied().unwrap_or_default();
        let ended: usize = self.ended.values().sum();
        let promised_once = of("queued") + of("coalesced") == self.unique;
        self.lost == 0 && self.doubled == 0 && promised_once && ended == of("queued")
    }

    /// Prints a table, or JSON.
    #[expect(clippy::print_stdout, reason = "this is what the program is for")]
    pub fn print(&self, as_json: bool) -> anyhow::Result<()> {
        if as_json {
            println!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        println!("offered     {} deliveries of {} events in {:.1} s", self.offered, self.unique, self.sent_s);
        for (outcome, n) in &self.outcomes {
            println!("  {outcome:12} {n}");
        }
        println!("ended       {} commands in {:.1} s", self.ended.values().sum::<usize>(), self.drain_s);
        for (status, n) in &self.ended {
            println!("  {status:12} {n}");
        }
        let Percentiles { p50, p95, p99 } = self.accept_ms;
        println!("answers     p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms");
        println!("lost        {}", self.lost);
        println!("doubled     {}", self.doubled);
        println!("seed        {}", self.seed);
        Ok(())
    }
}

fn percentiles(mut durations: Vec<Duration>) -> Percentiles {
    durations.sort_unstable();
    let at = |per_cent: usize| {
        let i = (durations.len() * per_cent / 100).min(durations.len().saturating_sub(1));
        durations.get(i).map_or(0.0, |duration| duration.as_secs_f64() * 1000.0)
    };
    Percentiles { p50: at(50), p95: at(95), p99: at(99) }
}
