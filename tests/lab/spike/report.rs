//! What a drill came to, in the form that programs read.

use std::collections::HashMap;
use std::time::Duration;

use contract::Status;
use serde::Serialize;
use testkit::sandbox::snaptrade::PROVIDER;

use super::checks::{self, Check, Ends};
use super::history::{Call, CommandRow, History};
use crate::figures::percentile_ms;

/// One drill. Times are in the unit of their names; what was not measured is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// The drill.
    pub name: &'static str,
    /// Every check held.
    pub passed: bool,
    /// Deliveries that were to be made.
    pub offered: usize,
    /// Those answered `queued`.
    pub accepted: usize,
    /// Those answered `duplicate`.
    pub duplicate: usize,
    /// Those answered `coalesced`.
    pub coalesced: usize,
    /// Those answered `quarantined`.
    pub quarantined: usize,
    /// Those that were never answered 2xx, and given up by their senders.
    pub shed: usize,
    /// Commands that ended in success.
    pub succeeded: usize,
    /// Commands that were given up.
    pub dead_lettered: usize,
    /// Events that were promised and came to no end.
    pub lost: usize,
    /// Events that were promised and came to more than one.
    pub doubled: usize,
    /// From the first delivery to the last end.
    pub drain_s: f64,
    /// From when a delivery was due to its 2xx, its sender's retries included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_ms: Option<Curve>,
    /// From the acceptance of a command to the start of its first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<Curve>,
    /// From the acceptance of an event to the end of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_ms: Option<Curve>,
    /// See there.
    pub status_read_ms: StatusReads,
    /// Whom the platform called.
    pub providers: Vec<Provider>,
    /// What had to hold.
    pub checks: Vec<Check>,
}

/// What most of many durations don't pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Half of them.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
}

/// Status reads at a steady pace, from when each was due.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StatusReads {
    /// Before the first delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_p99: Option<f64>,
    /// While deliveries were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storm_p99: Option<f64>,
}

/// What a provider saw of the platform.
#[derive(Clone, Debug, Serialize)]
pub struct Provider {
    /// Its name.
    pub name: &'static str,
    /// All calls.
    pub calls: usize,
    /// Those that it answered 429.
    pub throttled: usize,
    /// The most at once.
    pub max_in_flight: u32,
    /// What may be at once.
    pub cap: u32,
    /// Calls made while it had asked everybody to stay away.
    pub calls_in_cooldown: usize,
}

impl Curve {
    fn of(durations: &[Duration]) -> Option<Self> {
        let at = |per_cent| percentile_ms(durations, per_cent);
        Some(Self { p50: at(50)?, p95: at(95)?, p99: at(99)? })
    }
}

/// The three latencies of a drill, one duration for each delivery, command or event.
#[derive(Debug)]
pub(super) struct Latencies {
    pub(super) accept: Vec<Duration>,
    pub(super) start: Vec<Duration>,
    pub(super) complete: Vec<Duration>,
}

impl Latencies {
    pub(super) fn of(history: &History) -> Self {
        let accept = history
            .delivered
            .iter()
            .filter_map(|delivered| Some(span(delivered.due_ms, delivered.accepted.as_ref()?.at_ms)));
        let calls: HashMap<&str, &Call> =
            history.calls.iter().map(|call| (call.request_id.as_str(), call)).collect();
        let commands = &history.rows.commands;
        let start = commands
            .iter()
            .filter_map(|command| Some(span(command.accepted_ms, first_start_ms(command, &calls)?)));
        let ends: HashMap<_, _> =
            commands.iter().filter_map(|command| Some((command.id, command.finished_ms?))).collect();
        let complete = history
            .rows
            .inbox
            .iter()
            .filter_map(|row| Some(span(row.accepted_ms, *ends.get(&row.command?)?)));
        Self { accept: accept.collect(), start: start.collect(), complete: complete.collect() }
    }
}

/// The ledger's time is that of a run that beat or ended well; a run before it that failed at once is known by the
/// calls that the ledger names.
fn first_start_ms(command: &CommandRow, calls: &HashMap<&str, &Call>) -> Option<f64> {
    let called = command.request_ids.iter().filter_map(|id| Some(calls.get(id.as_str())?.at_ms));
    called.chain(command.started_ms).min_by(f64::total_cmp)
}

fn span(from_ms: f64, to_ms: f64) -> Duration {
    Duration::from_secs_f64((to_ms - from_ms).max(0.0) / 1000.0)
}

impl Scenario {
    pub(super) fn of(name: &'static str, history: &History, ends: &Ends, checks: Vec<Check>) -> Self {
        let outcomes = |word: &str| {
            let accepted = history.delivered.iter().filter_map(|delivered| delivered.accepted.as_ref());
            accepted.filter(|accepted| accepted.outcome == word).count()
        };
        let ended = |status| history.rows.commands.iter().filter(|command| command.status == status).count();
        let latencies = Latencies::of(history);
        let provider = Provider {
            name: PROVIDER,
            calls: history.calls.len(),
            throttled: history.calls.iter().filter(|call| call.throttled()).count(),
            max_in_flight: history.calls.iter().map(|call| call.in_flight).max().unwrap_or_default(),
            cap: history.cap,
            calls_in_cooldown: checks::in_cooldown(&history.calls),
        };
        Self {
            name,
            passed: checks.iter().all(|check| check.held),
            offered: history.delivered.len(),
            accepted: outcomes("queued"),
            duplicate: outcomes("duplicate"),
            coalesced: outcomes("coalesced"),
            quarantined: outcomes("quarantined"),
            shed: history.delivered.iter().filter(|delivered| delivered.accepted.is_none()).count(),
            succeeded: ended(Status::Succeeded),
            dead_lettered: ended(Status::DeadLettered),
            lost: ends.lost.len(),
            doubled: ends.doubled.len(),
            drain_s: checks::drain_ms(history) / 1000.0,
            accept_ms: Curve::of(&latencies.accept),
            start_ms: Curve::of(&latencies.start),
            complete_ms: Curve::of(&latencies.complete),
            status_read_ms: StatusReads {
                idle_p99: checks::p99_ms(&history.idle_reads),
                storm_p99: checks::p99_ms(&history.storm_reads),
            },
            providers: vec![provider],
            checks,
        }
    }

    /// The names of the checks that did not hold.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        self.checks.iter().filter(|check| !check.held).map(|check| check.name)
    }

    /// For a person.
    #[expect(clippy::print_stdout, reason = "this is what the program is for")]
    pub fn print(&self) {
        println!("{}: {}", self.name, if self.passed { "passed" } else { "failed" });
        println!(
            "  offered {}: accepted {}, duplicate {}, coalesced {}, quarantined {}, shed {}",
            self.offered, self.accepted, self.duplicate, self.coalesced, self.quarantined, self.shed
        );
        println!(
            "  commands: succeeded {}, dead-lettered {}; events: lost {}, doubled {}; drained in {:.1} s",
            self.succeeded, self.dead_lettered, self.lost, self.doubled, self.drain_s
        );
        for (what, curve) in
            [("accept", &self.accept_ms), ("start", &self.start_ms), ("complete", &self.complete_ms)]
        {
            if let Some(Curve { p50, p95, p99 }) = curve {
                println!("  {what:9} p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms");
            }
        }
        for provider in &self.providers {
            println!(
                "  {}: {} calls, {} throttled, at most {} of {} in flight, {} in cooldown",
                provider.name,
                provider.calls,
                provider.throttled,
                provider.max_in_flight,
                provider.cap,
                provider.calls_in_cooldown
            );
        }
        for check in &self.checks {
            println!("  {} {}: {}", if check.held { "held  " } else { "BROKEN" }, check.name, check.detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::history::sample;
    use super::super::runs::Runs;
    use super::*;

    fn scenario(history: &History) -> Scenario {
        let ends = Ends::of(history);
        let checks = checks::all(history, &Runs::of(&history.calls), &ends);
        Scenario::of("snaptrade-fanout", history, &ends, checks)
    }

    #[test]
    fn the_report_has_the_promised_fields_and_no_others() {
        let mut report = serde_json::to_value(scenario(&sample::history())).expect("JSON");

        for check in report["checks"].as_array_mut().expect("checks") {
            assert_eq!(check["held"], true);
            assert!(check["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        }
        let checks = std::mem::take(&mut report["checks"]);
        let names: Vec<&Value> =
            checks.as_array().expect("checks").iter().map(|check| &check["name"]).collect();
        assert_eq!(
            names,
            [
                "accepted_ends_once",
                "no_double_effect",
                "caps_kept",
                "drains",
                "status_p99",
                "last_event_followed_by_run",
                "one_run_per_account",
                "faults_fired",
            ]
        );
        let expected = json!({
            "name": "snaptrade-fanout", "passed": true, "offered": 4, "accepted": 2, "duplicate": 1, "coalesced": 1,
            "quarantined": 0, "shed": 0, "succeeded": 2, "dead_lettered": 0, "lost": 0, "doubled": 0, "drain_s": 0.078,
            "accept_ms": { "p50": 1.0, "p95": 1.0, "p99": 1.0 },
            "start_ms": { "p50": 4.5, "p95": 16.5, "p99": 16.5 },
            "complete_ms": { "p50": 35.5, "p95": 57.5, "p99": 57.5 },
            "status_read_ms": { "idle_p99": 2.0, "storm_p99": 2.0 },
            "providers": [{
                "name": "snaptrade", "calls": 9, "throttled": 1, "max_in_flight": 1, "cap": 2, "calls_in_cooldown": 8
            }],
            "checks": null,
        });
        assert_eq!(report, expected);
    }

    #[test]
    fn a_check_that_did_not_hold_fails_the_drill() {
        let mut history = sample::history();
        history.rows.left.messages = 1;
        let scenario = scenario(&history);

        assert!(!scenario.passed);
        assert_eq!(scenario.failed().collect::<Vec<_>>(), ["drains"]);
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let mut history = sample::history();
        history.idle_reads.clear();
        history.rows.inbox.clear();

        let report = serde_json::to_value(scenario(&history)).expect("JSON");

        assert_eq!(report.get("complete_ms"), None);
        assert_eq!(report["status_read_ms"].get("idle_p99"), None);
    }
}
