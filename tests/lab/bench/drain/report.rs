//! What the bench `drain` came to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;

use super::{Args, Counts, Round};
use crate::figures::{Spread, count, per_s};

/// Medians of the rounds. A figure that was not measured is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `drain`.
    pub name: &'static str,
    /// Commands a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours_per_s: Option<f64>,
    /// Messages a second of the bare pgmq loop, with the number of clients that suits it best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_per_s: Option<f64>,
    /// Jobs a second of others.
    pub peers: BTreeMap<String, f64>,
    /// Commands of a round.
    pub n: u32,
    /// Rounds.
    pub rounds: u32,
    /// Runs at a time.
    pub concurrency: u32,
    /// Ours, by round.
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_spread: Option<Spread>,
    /// The loop's, by the number of clients.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    loop_by_clients: BTreeMap<u32, Spread>,
    /// The peers'.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    peers_spread: BTreeMap<String, Spread>,
    /// Of the write-ahead log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wal_bytes_per_message: Option<f64>,
    /// CPU time for each command, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_cpu_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    postgres_cpu_us: Option<f64>,
    /// What became of all commands.
    pub counts: Counts,
    /// Whether a commit survives whatever happens to the server.
    pub durable: bool,
}

impl Report {
    pub(super) fn of(args: &Args, rounds: &[Round], counts: Counts, durable: bool) -> Self {
        let rate = |took: Duration| per_s(args.n as usize, took);
        let each = |used: Duration| used.as_secs_f64() * 1e6 / f64::from(args.n);
        let median = |values: Vec<f64>| Spread::of(values).map(|spread| spread.median);
        let ours_spread = Spread::of(rounds.iter().map(|round| rate(round.ours)));
        let loop_by_clients = Spread::by_key(rounds.iter().flat_map(|round| round.bare.clone()));
        let drains = rounds.iter().flat_map(|round| round.peers.clone());
        let peers_spread = Spread::by_key(drains.map(|(name, took)| (name, rate(took))));
        Self {
            name: "drain",
            ours_per_s: ours_spread.map(|spread| spread.median),
            loop_per_s: loop_by_clients.values().map(|spread| spread.median).max_by(f64::total_cmp),
            peers: peers_spread.iter().map(|(name, spread)| (name.clone(), spread.median)).collect(),
            n: args.n,
            rounds: args.rounds,
            concurrency: args.concurrency,
            ours_spread,
            loop_by_clients,
            peers_spread,
            wal_bytes_per_message: median(
                rounds
                    .iter()
                    .map(|round| count(usize::try_from(round.wal_bytes / i64::from(args.n)).unwrap_or(0)))
                    .collect(),
            ),
            worker_cpu_us: median(rounds.iter().filter_map(|round| round.worker.map(each)).collect()),
            postgres_cpu_us: median(rounds.iter().filter_map(|round| round.postgres.map(each)).collect()),
            counts,
            durable,
        }
    }
}

impl super::super::Report for Report {
    fn table(&self) -> String {
        let mut table =
            format!("drain, {} rounds of {} commands, {} at a time\n", self.rounds, self.n, self.concurrency);
        // A String takes any text.
        let mut row = |name: &str, spread: Option<Spread>| {
            let of_it = spread.and_then(|spread| Some(self.ours_per_s? / spread.median));
            let of_it = of_it.map_or_else(String::new, |times| format!("  ours is {times:.2} ×"));
            let spread = spread.map_or_else(|| "not measured".to_owned(), |spread| spread.to_string());
            let _ = writeln!(table, "  {name:30} {spread:>30} /s{of_it}");
        };
        row("ours", self.ours_spread);
        if self.loop_by_clients.is_empty() {
            row("pgmq loop", None);
        }
        for (clients, spread) in &self.loop_by_clients {
            row(&format!("pgmq loop, clients={clients}"), Some(*spread));
        }
        for (name, spread) in &self.peers_spread {
            row(name, Some(*spread));
        }
        let figure = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:.1}"));
        let _ = writeln!(
            table,
            "  a command: worker CPU {} µs, Postgres CPU {} µs, write-ahead log {} bytes\n  {:?}",
            figure(self.worker_cpu_us),
            figure(self.postgres_cpu_us),
            figure(self.wal_bytes_per_message),
            self.counts,
        );
        table
    }

    fn check(&self) -> anyhow::Result<()> {
        let all = i64::from(self.n) * i64::from(self.rounds);
        let meant = Counts { succeeded_once: all, archived: all, ..Counts::default() };
        ensure!(self.counts == meant, "each command was to succeed once: {:?}", self.counts);
        ensure!(self.durable, "the server's commits are not durable");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Report as _;
    use super::*;

    fn report(counts: Counts) -> Report {
        let args = Args {
            n: 1000,
            rounds: 2,
            concurrency: 5,
            program: None,
            common: crate::bench::Common::default(),
        };
        let round = |ms: u64, slow: f64| Round {
            ours: Duration::from_millis(ms),
            wal_bytes: 500_000,
            bare: BTreeMap::from([(1, slow), (2, 3000.0)]),
            peers: BTreeMap::from([("peer".to_owned(), Duration::from_millis(2 * ms))]),
            ..Round::default()
        };
        Report::of(&args, &[round(500, 9000.0), round(250, 1.0)], counts, true)
    }

    #[test]
    fn of_the_loop_the_number_of_clients_with_the_best_median_counts() {
        let report = report(Counts::default());

        assert_eq!(report.ours_per_s, Some(3000.0));
        assert_eq!(report.loop_per_s, Some(4500.5));
        assert_eq!(report.peers.get("peer").copied(), Some(1500.0));
        assert_eq!(report.wal_bytes_per_message, Some(500.0));
    }

    #[test]
    fn a_command_that_ran_twice_or_not_fails_the_bench() {
        let meant = Counts { succeeded_once: 2000, archived: 2000, ..Counts::default() };

        assert!(report(meant).check().is_ok());
        assert!(report(Counts { succeeded_once: 1999, otherwise: 1, ..meant }).check().is_err());
        assert!(report(Counts { left: 1, ..meant }).check().is_err());
    }
}
