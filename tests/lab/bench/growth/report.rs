//! What the bench `growth` came to.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::ensure;
use serde::Serialize;

use super::super::work::Counts;
use super::{Args, BACKLOGS, Round};
use crate::figures::Spread;

/// The least that the largest backlog may leave of the speed before the smallest.
const LEAST: f64 = 0.8;

/// Medians of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `growth`.
    pub name: &'static str,
    /// Commands a second, by the backlog.
    pub drain_per_s: BTreeMap<&'static str, f64>,
    /// Write-ahead log, of all rounds.
    pub wal_bytes_per_message: Option<f64>,
    /// Commands that a round was timed with.
    pub n: u32,
    /// Rounds for each backlog.
    pub rounds: u32,
    /// Backlogs were so much smaller.
    pub divisor: u32,
    /// Runs at a time.
    pub concurrency: u32,
    /// The rounds behind `drain_per_s`.
    pub(super) drain_spread: BTreeMap<&'static str, Spread>,
    /// The rounds behind `wal_bytes_per_message`, by the backlog.
    pub(super) wal_bytes_spread: BTreeMap<&'static str, Spread>,
    /// What became of all commands.
    pub counts: Counts,
    /// Whether the server's commits are durable.
    pub durable: bool,
}

impl Report {
    pub(super) fn of(
        args: &Args,
        rounds: &BTreeMap<&'static str, Vec<Round>>,
        counts: Counts,
        durable: bool,
    ) -> Self {
        let spread = |figure: fn(&Round) -> f64| {
            let of_each =
                rounds.iter().flat_map(|(name, rounds)| rounds.iter().map(move |round| (*name, round)));
            Spread::by_key(of_each.map(|(name, round)| (name, figure(round))))
        };
        let drain_spread = spread(|round| round.per_s);
        let all = Spread::of(rounds.values().flatten().map(|round| round.wal_bytes_per_message));
        Self {
            name: "growth",
            drain_per_s: drain_spread.iter().map(|(name, spread)| (*name, spread.median)).collect(),
            wal_bytes_per_message: all.map(|spread| spread.median),
            n: args.n,
            rounds: args.rounds,
            divisor: args.divisor,
            concurrency: args.concurrency,
            drain_spread,
            wal_bytes_spread: spread(|round| round.wal_bytes_per_message),
            counts,
            durable,
        }
    }
}

impl super::super::Report for Report {
    fn table(&self) -> String {
        let Self { n, rounds, divisor, concurrency, .. } = self;
        let mut table = format!("growth, {rounds} rounds of {n} commands, {concurrency} at a time\n");
        for (name, backlog) in BACKLOGS {
            let figures = self.drain_spread.get(name).zip(self.wal_bytes_spread.get(name));
            let Some((drain, wal)) = figures else { continue };
            // A String takes any text.
            let _ = writeln!(
                table,
                "  {:>9} waiting {:>24} /s, write-ahead log {:.0} bytes a command",
                backlog / divisor,
                drain.to_string(),
                wal.median
            );
        }
        table
    }

    fn check(&self) -> anyhow::Result<()> {
        let Counts { succeeded_once, otherwise, archived, left } = self.counts;
        ensure!(
            (succeeded_once, otherwise) == (archived, left),
            "each command was to succeed once or to wait: {:?}",
            self.counts
        );
        ensure!(self.durable, "the server's commits are not durable");
        let [small, .., large] = BACKLOGS.map(|(name, _)| self.drain_per_s.get(name).copied());
        if let Some((small, large)) = small.zip(large) {
            ensure!(
                large >= LEAST * small,
                "{large:.0} commands a second before the largest backlog, {small:.0} before the smallest"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Report as _;
    use super::*;

    const WHOLE: Counts = Counts { succeeded_once: 40, otherwise: 60, archived: 40, left: 60 };

    fn report(large_per_s: f64, counts: Counts) -> Report {
        let common = crate::bench::Common::default();
        let args = Args { n: 10, rounds: 2, divisor: 1, concurrency: 5, common };
        let round = |per_s| Round { per_s, wal_bytes_per_message: 100.0 };
        let rounds = [("1k", 900.0), ("1m", large_per_s)]
            .map(|(name, per_s)| (name, vec![round(per_s), round(per_s + 200.0)]));
        Report::of(&args, &rounds.into(), counts, true)
    }

    #[test]
    fn the_figures_are_the_medians_of_each_backlogs_rounds() {
        let report = report(850.0, WHOLE);

        assert_eq!(report.drain_per_s, BTreeMap::from([("1k", 1000.0), ("1m", 950.0)]));
        assert_eq!(report.wal_bytes_per_message, Some(100.0));
    }

    #[test]
    fn a_worker_that_the_backlog_slows_down_fails_the_bench() {
        assert!(report(710.0, WHOLE).check().is_ok());
        assert!(report(690.0, WHOLE).check().is_err());
    }

    #[test]
    fn a_command_that_neither_succeeded_once_nor_waits_fails_the_bench() {
        assert!(report(900.0, Counts { succeeded_once: 39, otherwise: 61, ..WHOLE }).check().is_err());
        assert!(report(900.0, Counts { left: 59, ..WHOLE }).check().is_err());
    }
}
