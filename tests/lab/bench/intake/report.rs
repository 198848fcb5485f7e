//! What the bench `intake` came to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;

use super::super::load::Load;
use super::super::statements::Counter;
use super::{Args, Peer, Round};
use crate::figures::{count, median, per_s, percentile_ms};

/// Medians of the rounds. A figure that was not measured is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `intake`.
    pub name: &'static str,
    /// Webhooks a second that were new, each committed with a command and a message before its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_per_s: Option<f64>,
    /// The same webhooks again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_per_s: Option<f64>,
    /// Requests that the listener answers without any work: 404 for a path that nobody serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noop_route_per_s: Option<f64>,
    /// 99 of 100 unique webhooks were answered faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_p99_ms: Option<f64>,
    /// pgbench with one `pgmq.send` a transaction, with the number of clients that suits it best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgbench_send_per_s: Option<f64>,
    /// The same by the number of clients.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pgbench_send_per_s_by_clients: BTreeMap<u32, f64>,
    /// CPU time of the server for each of pgbench's sends, with the number of clients that suits it best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgbench_postgres_cpu_us_per_send: Option<f64>,
    /// Keep-alive connections of the generator.
    pub connections: u32,
    /// Statements of the gateway for each unique webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statements_per_event: Option<f64>,
    /// How they were counted.
    statements_counted_by: Counter,
    /// CPU time for each unique webhook.
    pub cpu_us_per_event: Cpu,
    /// Unique webhooks of a round.
    pub events_per_round: u32,
    /// Rounds.
    pub rounds: u32,
    /// What became of all requests.
    pub outcomes: Outcomes,
}

/// In microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cpu {
    /// Of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<f64>,
    /// Of all processes of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<f64>,
    /// Of this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<f64>,
}

/// Answers of all rounds by their outcome, or by their status where there is none.
#[derive(Clone, Debug, Serialize)]
pub struct Outcomes {
    /// Of unique webhooks.
    pub unique: BTreeMap<String, usize>,
    /// Of the same again.
    pub duplicate: BTreeMap<String, usize>,
    /// Of requests for nothing.
    pub noop: BTreeMap<String, usize>,
}

impl Report {
    pub(super) fn of(args: &Args, counter: Counter, rounds: &[Round]) -> Self {
        let rate = |of: fn(&Round) -> &Load| {
            median(rounds.iter().map(|round| per_s(of(round).latencies.len(), of(round).took)))
        };
        let cpu = |of: fn(&Round) -> Option<Duration>| {
            median(rounds.iter().filter_map(|round| {
                Some(of(round)?.as_secs_f64() * 1e6 / count(round.unique.latencies.len()))
            }))
        };
        let sends = by_clients(rounds, |peer| Some(peer.per_s));
        let best = sends.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        let best = best.map(|(clients, per_s)| (*clients, *per_s));
        let best_cpu =
            best.and_then(|(clients, _)| by_clients(rounds, |peer| peer.postgres_us).remove(&clients));
        Self {
            name: "intake",
            unique_per_s: rate(|round| &round.unique),
            duplicate_per_s: rate(|round| &round.duplicate),
            noop_route_per_s: rate(|round| &round.noop),
            unique_p99_ms: median(
                rounds.iter().filter_map(|round| percentile_ms(&round.unique.latencies, 99)),
            ),
            pgbench_send_per_s: best.map(|(_, per_s)| per_s),
            pgbench_send_per_s_by_clients: sends,
            pgbench_postgres_cpu_us_per_send: best_cpu,
            connections: args.connections,
            statements_per_event: median(rounds.iter().map(|round| {
                count(usize::try_from(round.statements).unwrap_or(0)) / count(round.unique.latencies.len())
            })),
            statements_counted_by: counter,
            cpu_us_per_event: Cpu {
                gateway: cpu(|round| round.gateway),
                postgres: cpu(|round| round.postgres),
                generator: cpu(|round| round.generator),
            },
            events_per_round: args.events,
            rounds: args.rounds,
            outcomes: Outcomes {
                unique: sum(rounds.iter().map(|round| &round.unique)),
                duplicate: sum(rounds.iter().map(|round| &round.duplicate)),
                noop: sum(rounds.iter().map(|round| &round.noop)),
            },
        }
    }
}

impl super::super::Report for Report {
    fn table(&self) -> String {
        let mut table = format!(
            "intake, {} rounds of {} webhooks over {} connections\n",
            self.rounds, self.events_per_round, self.connections
        );
        row(
            &mut table,
            "unique",
            self.unique_per_s,
            "/s",
            self.unique_p99_ms.map(|ms| format!("p99 {ms:.1} ms")),
        );
        row(
            &mut table,
            "duplicate",
            self.duplicate_per_s,
            "/s",
            times(self.duplicate_per_s, self.unique_per_s, "unique"),
        );
        row(&mut table, "no-op route", self.noop_route_per_s, "/s", None);
        row(
            &mut table,
            "pgbench, pgmq.send",
            self.pgbench_send_per_s,
            "/s",
            times(self.unique_per_s, self.pgbench_send_per_s, "of this is `unique`").map(|times| {
                let clients = self.pgbench_send_per_s_by_clients.iter();
                let each = clients.map(|(clients, rate)| format!("c={clients} {rate:.0}"));
                format!("{times}; {}", each.collect::<Vec<_>>().join(", "))
            }),
        );
        let counter: &str = self.statements_counted_by.into();
        row(&mut table, "statements", self.statements_per_event, " a webhook", Some(format!("by {counter}")));
        let Cpu { gateway, postgres, generator } = self.cpu_us_per_event;
        let peer = self.pgbench_postgres_cpu_us_per_send;
        row(&mut table, "CPU of gateway", gateway, " µs a webhook", None);
        row(&mut table, "CPU of Postgres", postgres, " µs a webhook", None);
        row(&mut table, "  for pgbench", peer, " µs a send", None);
        row(&mut table, "CPU of generator", generator, " µs a webhook", None);
        let Outcomes { unique, duplicate, noop } = &self.outcomes;
        for (name, answers) in [("unique", unique), ("duplicate", duplicate), ("no-op", noop)] {
            let answers =
                answers.iter().map(|(word, n)| format!("{n} {word}")).collect::<Vec<_>>().join(", ");
            let _ = writeln!(table, "  answers, {name:10} {answers}"); // A String takes any text.
        }
        table
    }

    /// A rate of anything but what was meant says nothing.
    fn check(&self) -> anyhow::Result<()> {
        let Outcomes { unique, duplicate, noop } = &self.outcomes;
        for (answers, word) in [(unique, "queued"), (duplicate, "duplicate"), (noop, "404")] {
            ensure!(answers.keys().eq([word]), "every answer was to be {word}, and they were: {answers:?}");
        }
        Ok(())
    }
}

/// The medians of one figure of the peer.
fn by_clients(rounds: &[Round], figure: fn(&Peer) -> Option<f64>) -> BTreeMap<u32, f64> {
    let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for peer in rounds.iter().flat_map(|round| &round.peer) {
        values.entry(peer.clients).or_default().extend(figure(peer));
    }
    values.into_iter().filter_map(|(clients, values)| Some((clients, median(values)?))).collect()
}

fn sum<'a>(loads: impl Iterator<Item = &'a Load>) -> BTreeMap<String, usize> {
    let mut answers = BTreeMap::new();
    for (word, n) in loads.flat_map(|load| &load.answers) {
        *answers.entry(word.clone()).or_default() += n;
    }
    answers
}

fn times(of: Option<f64>, by: Option<f64>, what: &str) -> Option<String> {
    Some(format!("{:.2} × {what}", of? / by?))
}

fn row(table: &mut String, name: &str, figure: Option<f64>, unit: &str, rest: Option<String>) {
    let figure = figure.map_or_else(|| "not measured".to_owned(), |figure| format!("{figure:.2}{unit}"));
    // A String takes any text.
    let _ = writeln!(table, "  {name:20} {figure:>24}  {}", rest.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::super::super::Report as _;
    use super::*;

    fn args() -> Args {
        Args {
            events: 1000,
            rounds: 3,
            connections: 8,
            pgbench_seconds: 1,
            gateway: None,
            common: crate::bench::Common::default(),
        }
    }

    fn load(n: usize, ms: u64, word: &str) -> Load {
        Load {
            took: Duration::from_millis(ms),
            latencies: vec![Duration::from_millis(ms); n],
            answers: BTreeMap::from([(word.to_owned(), n)]),
        }
    }

    fn round(ms: u64, peer: &[(u32, f64)]) -> Round {
        Round {
            peer: peer
                .iter()
                .map(|(clients, per_s)| Peer { clients: *clients, per_s: *per_s, postgres_us: Some(100.0) })
                .collect(),
            unique: load(1000, ms, "queued"),
            duplicate: load(1000, 250, "duplicate"),
            noop: load(1000, 100, "404"),
            statements: 40,
            gateway: Some(Duration::from_millis(50)),
            postgres: None,
            generator: Some(Duration::from_millis(10)),
        }
    }

    fn report() -> Report {
        let rounds = [
            round(500, &[(1, 900.0), (16, 4000.0)]),
            round(9000, &[(1, 1000.0), (16, 5000.0)]),
            round(400, &[(1, 1100.0), (16, 1.0)]),
        ];
        Report::of(&args(), Counter::PgStatStatements, &rounds)
    }

    #[test]
    fn figures_are_medians_of_the_rounds() {
        let report = report();

        assert_eq!(report.unique_per_s, Some(2000.0));
        assert_eq!(report.unique_p99_ms, Some(500.0));
        assert_eq!(report.duplicate_per_s, Some(4000.0));
        assert_eq!(report.statements_per_event, Some(0.04));
        assert_eq!(report.cpu_us_per_event.gateway, Some(50.0));
        assert_eq!(report.outcomes.unique, BTreeMap::from([("queued".to_owned(), 3000)]));
    }

    #[test]
    fn of_the_peer_the_best_number_of_clients_counts() {
        assert_eq!(report().pgbench_send_per_s, Some(4000.0));
        assert_eq!(report().pgbench_postgres_cpu_us_per_send, Some(100.0));
        assert_eq!(report().pgbench_send_per_s_by_clients, BTreeMap::from([(1, 1000.0), (16, 4000.0)]));
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let mut json =
            serde_json::to_value(Report::of(&args(), Counter::XactCommit, &[round(500, &[])])).unwrap();

        assert!(json["cpu_us_per_event"].as_object_mut().unwrap().remove("postgres").is_none());
        assert!(json.as_object_mut().unwrap().remove("pgbench_send_per_s").is_none());
        assert_eq!(json["statements_counted_by"], "xact_commit");
    }

    #[test]
    fn a_round_that_measured_something_else_fails_the_bench() {
        let mut shed = round(500, &[]);
        shed.unique.answers.insert("503".to_owned(), 1);

        assert!(report().check().is_ok());
        let error = Report::of(&args(), Counter::XactCommit, &[shed]).check().unwrap_err();
        assert!(error.to_string().contains("503"), "{error}");
    }
}
