//! The metrics of a process: one table of names, one registry a process, one text for the scraper.
//!
//! Labels are bounded: queues, routes, outcomes and providers come from fixed lists; ids and free text
//! never become labels.

mod table;

use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
};

pub use table::{Kind, Metric, TABLE};

/// Every metric that a process may touch. Cheap to clone through an `Arc`; made once in `main`.
#[expect(missing_docs, reason = "each field is the metric of its name in the table")]
pub struct Metrics {
    registry: Registry,
    pub build: IntGaugeVec,
    pub http_requests: IntCounterVec,
    pub http_in_flight: IntGaugeVec,
    pub accept_seconds: HistogramVec,
    pub webhooks: IntCounterVec,
    pub webhook_skew_seconds: HistogramVec,
    pub commands: IntCounterVec,
    pub batch_items: HistogramVec,
    pub repeats_dropped: IntCounterVec,
    pub claimed: IntCounterVec,
    pub runs: IntCounterVec,
    pub run_seconds: HistogramVec,
    pub start_seconds: HistogramVec,
    pub in_flight: IntGaugeVec,
    pub concurrency: IntGaugeVec,
    pub stale_writes: IntCounterVec,
    pub runs_alone: IntCounterVec,
    pub abandoned_threads: IntGaugeVec,
    pub newer_version: IntCounterVec,
    pub limits_mended: IntCounterVec,
    pub loop_errors: IntCounterVec,
    pub provider_calls: IntCounterVec,
    pub provider_seconds: HistogramVec,
    pub oldest_snapshot_seconds: IntGaugeVec,
    pub oldest_snapshot_transactions: IntGaugeVec,
    pub idle_in_transaction_seconds: IntGaugeVec,
    pub dead_rows: IntGaugeVec,
    pub live_workers: IntGaugeVec,
    pub payments_to_reconcile: IntGaugeVec,
    pub trimmed: IntCounterVec,
}

impl Metrics {
    /// A registry with every metric of the table; `service` and `version` say whose it is.
    pub fn new(service: &str, version: &str) -> Self {
        let registry = Registry::new();
        let metrics = Self {
            build: gauge(&registry, &table::BUILD),
            http_requests: counter(&registry, &table::HTTP_REQUESTS),
            http_in_flight: gauge(&registry, &table::HTTP_IN_FLIGHT),
            accept_seconds: histogram(&registry, &table::ACCEPT_SECONDS),
            webhooks: counter(&registry, &table::WEBHOOKS),
            webhook_skew_seconds: histogram(&registry, &table::WEBHOOK_SKEW_SECONDS),
            commands: counter(&registry, &table::COMMANDS),
            batch_items: histogram(&registry, &table::BATCH_ITEMS),
            repeats_dropped: counter(&registry, &table::REPEATS_DROPPED),
            claimed: counter(&registry, &table::CLAIMED),
            runs: counter(&registry, &table::RUNS),
            run_seconds: histogram(&registry, &table::RUN_SECONDS),
            start_seconds: histogram(&registry, &table::START_SECONDS),
            in_flight: gauge(&registry, &table::IN_FLIGHT),
            concurrency: gauge(&registry, &table::CONCURRENCY),
            stale_writes: counter(&registry, &table::STALE_WRITES),
            runs_alone: counter(&registry, &table::RUNS_ALONE),
            abandoned_threads: gauge(&registry, &table::ABANDONED_THREADS),
            newer_version: counter(&registry, &table::NEWER_VERSION),
            limits_mended: counter(&registry, &table::LIMITS_MENDED),
            loop_errors: counter(&registry, &table::LOOP_ERRORS),
            provider_calls: counter(&registry, &table::PROVIDER_CALLS),
            provider_seconds: histogram(&registry, &table::PROVIDER_SECONDS),
            oldest_snapshot_seconds: gauge(&registry, &table::OLDEST_SNAPSHOT_SECONDS),
            oldest_snapshot_transactions: gauge(&registry, &table::OLDEST_SNAPSHOT_TRANSACTIONS),
            idle_in_transaction_seconds: gauge(&registry, &table::IDLE_IN_TRANSACTION_SECONDS),
            dead_rows: gauge(&registry, &table::DEAD_ROWS),
            live_workers: gauge(&registry, &table::LIVE_WORKERS),
            payments_to_reconcile: gauge(&registry, &table::PAYMENTS_TO_RECONCILE),
            trimmed: counter(&registry, &table::TRIMMED),
            registry,
        };
        metrics.build.with_label_values(&[service, version]).set(1);
        metrics
    }

    /// The scraper's text.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        // Writing into memory cannot fail, and names were valid when they were registered.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}

const FAILS_FIRST_IN_TESTS: &str =
    "the table's names and labels are valid and distinct: every test that starts a process makes them all";

fn counter(registry: &Registry, metric: &Metric) -> IntCounterVec {
    let made =
        IntCounterVec::new(Opts::new(metric.name, metric.help), metric.labels).expect(FAILS_FIRST_IN_TESTS);
    registry.register(Box::new(made.clone())).expect(FAILS_FIRST_IN_TESTS);
    made
}

fn gauge(registry: &Registry, metric: &Metric) -> IntGaugeVec {
    let made =
        IntGaugeVec::new(Opts::new(metric.name, metric.help), metric.labels).expect(FAILS_FIRST_IN_TESTS);
    registry.register(Box::new(made.clone())).expect(FAILS_FIRST_IN_TESTS);
    made
}

fn histogram(registry: &Registry, metric: &Metric) -> HistogramVec {
    let options = HistogramOpts::new(metric.name, metric.help).buckets(metric.kind.buckets().to_vec());
    let made = HistogramVec::new(options, metric.labels).expect(FAILS_FIRST_IN_TESTS);
    registry.register(Box::new(made.clone())).expect(FAILS_FIRST_IN_TESTS);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_scrapers_conventions() {
        for metric in TABLE {
            assert!(metric.name.starts_with("spillway_"), "{}", metric.name);
            match metric.kind {
                Kind::Counter => assert!(metric.name.ends_with("_total"), "{}", metric.name),
                Kind::Gauge => assert!(!metric.name.ends_with("_total"), "{}", metric.name),
                Kind::Seconds(_) => assert!(metric.name.ends_with("_seconds"), "{}", metric.name),
                Kind::Items(_) => assert!(metric.name.ends_with("_items"), "{}", metric.name),
            }
            assert!(metric.help.ends_with('.'), "{} has a sentence", metric.name);
        }
    }

    #[test]
    fn the_table_is_complete() {
        let metrics = Metrics::new("test", "0");
        let registered = metrics.registry.gather().len();
        assert_eq!(registered, 1, "only the build is known before anything happens");
        metrics.webhooks.with_label_values(&["snaptrade", "queued"]).inc();

        assert!(
            metrics.text().contains("spillway_webhooks_total{outcome=\"queued\",source=\"snaptrade\"} 1")
        );
        assert!(metrics.text().contains("spillway_build_info{service=\"test\",version=\"0\"} 1"));
    }
}
