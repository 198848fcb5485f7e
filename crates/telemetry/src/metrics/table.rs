//! Every metric's name, kind, labels and sentence. Dashboards, alerts and docs are checked against it.

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name that the scraper sees.
    pub name: &'static str,
    /// What it counts or measures.
    pub kind: Kind,
    /// The labels, each with a bounded set of values.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
}

/// What a metric is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A histogram of durations, with its upper bounds in seconds.
    Seconds(&'static [f64]),
    /// A histogram of sizes, with its upper bounds in items.
    Items(&'static [f64]),
}

impl Kind {
    pub(super) fn buckets(self) -> &'static [f64] {
        match self {
            Self::Seconds(bounds) | Self::Items(bounds) => bounds,
            Self::Counter | Self::Gauge => &[],
        }
    }
}

/// What a caller waits for: the objectives are 50 ms (status), 150 ms (payments) and 250 ms (accept).
const REQUEST: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What a run takes: from a no-op to an hour's export.
const RUN: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn seconds(
    name: &'static str,
    bounds: &'static [f64],
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Seconds(bounds), labels, help }
}

/// All of them.
pub const TABLE: &[&Metric] = &[
    &BUILD,
    &HTTP_REQUESTS,
    &HTTP_IN_FLIGHT,
    &ACCEPT_SECONDS,
    &WEBHOOKS,
    &WEBHOOK_SKEW_SECONDS,
    &COMMANDS,
    &BATCH_ITEMS,
    &REPEATS_DROPPED,
    &CLAIMED,
    &RUNS,
    &RUN_SECONDS,
    &START_SECONDS,
    &IN_FLIGHT,
    &CONCURRENCY,
    &STALE_WRITES,
    &RUNS_ALONE,
    &ABANDONED_THREADS,
    &NEWER_VERSION,
    &LIMITS_MENDED,
    &LOOP_ERRORS,
    &PROVIDER_CALLS,
    &PROVIDER_SECONDS,
    &OLDEST_SNAPSHOT_SECONDS,
    &OLDEST_SNAPSHOT_TRANSACTIONS,
    &IDLE_IN_TRANSACTION_SECONDS,
    &DEAD_ROWS,
    &LIVE_WORKERS,
    &PAYMENTS_TO_RECONCILE,
    &TRIMMED,
];

pub(super) const BUILD: Metric =
    gauge("spillway_build_info", &["service", "version"], "1, with the binary and its version as labels.");
pub(super) const HTTP_REQUESTS: Metric = counter(
    "spillway_http_requests_total",
    &["route", "code"],
    "Requests answered, by route template and status code.",
);
pub(super) const HTTP_IN_FLIGHT: Metric =
    gauge("spillway_http_in_flight", &["listener"], "Requests in work.");
pub(super) const ACCEPT_SECONDS: Metric = seconds(
    "spillway_accept_duration_seconds",
    REQUEST,
    &["route"],
    "From the header of a webhook or command to its answer.",
);
pub(super) const WEBHOOKS: Metric = counter(
    "spillway_webhooks_total",
    &["source", "outcome"],
    "Deliveries of webhooks by what became of them.",
);
pub(super) const WEBHOOK_SKEW_SECONDS: Metric = seconds(
    "spillway_webhook_skew_seconds",
    RUN,
    &["source"],
    "How far the time of rightly signed but refused deliveries was from ours.",
);
pub(super) const COMMANDS: Metric = counter(
    "spillway_commands_total",
    &["workload", "outcome"],
    "Commands of callers by what became of them.",
);
pub(super) const BATCH_ITEMS: Metric = Metric {
    name: "spillway_intake_batch_items",
    kind: Kind::Items(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]),
    labels: &[],
    help: "Requests that shared a commit.",
};
pub(super) const REPEATS_DROPPED: Metric = counter(
    "spillway_repeat_statistics_dropped_total",
    &[],
    "Repeated deliveries that were answered but not counted in the inbox's statistics.",
);
pub(super) const CLAIMED: Metric = counter("spillway_claimed_total", &["queue"], "Messages claimed.");
pub(super) const RUNS: Metric =
    counter("spillway_runs_total", &["queue", "outcome"], "Runs that ended, by how they ended.");
pub(super) const RUN_SECONDS: Metric = seconds(
    "spillway_run_duration_seconds",
    RUN,
    &["queue", "outcome"],
    "From the start of a run to its settlement.",
);
pub(super) const START_SECONDS: Metric = seconds(
    "spillway_start_delay_seconds",
    RUN,
    &["queue"],
    "From the moment a message was due to the start of its run.",
);
pub(super) const IN_FLIGHT: Metric = gauge("spillway_in_flight", &["queue"], "Runs in work in this process.");
pub(super) const CONCURRENCY: Metric =
    gauge("spillway_concurrency", &["queue"], "Runs that this process may have in work.");
pub(super) const STALE_WRITES: Metric = counter(
    "spillway_stale_writes_total",
    &["queue", "operation"],
    "Writes of a run whose lease had gone to another worker; each changed nothing.",
);
pub(super) const RUNS_ALONE: Metric = counter(
    "spillway_runs_alone_total",
    &["queue"],
    "Runs that had their process for themselves, because earlier claims of their message ended without a word.",
);
pub(super) const ABANDONED_THREADS: Metric = gauge(
    "spillway_abandoned_threads",
    &["queue"],
    "Threads of this process that compute although their runs have ended; too many, and it starts anew.",
);
pub(super) const NEWER_VERSION: Metric = counter(
    "spillway_newer_version_total",
    &["queue"],
    "Messages handed back because a newer version of the worker wrote them.",
);
pub(super) const LIMITS_MENDED: Metric = counter(
    "spillway_limits_mended_total",
    &["queue"],
    "Keys, holds and waiting messages that did not fit together and were mended; expected to stay at nothing.",
);
pub(super) const LOOP_ERRORS: Metric = counter(
    "spillway_loop_errors_total",
    &["queue", "operation"],
    "Failed calls of the claim, heartbeat and settle loops; they try again.",
);
pub(super) const PROVIDER_CALLS: Metric = counter(
    "spillway_provider_calls_total",
    &["provider", "outcome"],
    "Calls to outside providers by outcome.",
);
pub(super) const PROVIDER_SECONDS: Metric = seconds(
    "spillway_provider_call_duration_seconds",
    REQUEST,
    &["provider"],
    "Duration of calls to outside providers.",
);
pub(super) const OLDEST_SNAPSHOT_SECONDS: Metric = gauge(
    "spillway_oldest_snapshot_seconds",
    &[],
    "How long the oldest open transaction of the database has been open; sampled by one process for all.",
);
pub(super) const OLDEST_SNAPSHOT_TRANSACTIONS: Metric = gauge(
    "spillway_oldest_snapshot_transactions",
    &[],
    "How many transactions the oldest snapshot of the database is old; sampled by one process for all.",
);
pub(super) const IDLE_IN_TRANSACTION_SECONDS: Metric = gauge(
    "spillway_idle_in_transaction_seconds",
    &[],
    "How long a session has been idle in its transaction, at the longest; sampled by one process for all.",
);
pub(super) const DEAD_ROWS: Metric = gauge(
    "spillway_dead_rows",
    &["table"],
    "Rows that vacuum has still to remove, as the server estimates; sampled by one process for all.",
);
pub(super) const LIVE_WORKERS: Metric = gauge(
    "spillway_live_workers",
    &["queue"],
    "Workers that showed themselves lately; sampled by one process for all.",
);
pub(super) const PAYMENTS_TO_RECONCILE: Metric = gauge(
    "spillway_payments_to_reconcile",
    &[],
    "Payments whose facts contradict one another; each waits for a person.",
);
pub(super) const TRIMMED: Metric =
    counter("spillway_trimmed_total", &["rule"], "Rows that were past their time and were removed.");
