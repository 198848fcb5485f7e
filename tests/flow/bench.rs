//! The benches in small: what they count is true, however fast it was.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lab::bench::intake::{Args, measure};
use lab::bench::{Common, Process, claim, drain, growth, idle, latency};
use lab::connection::Settings;
use testkit::Database;

use crate::platform::{Platform, QUEUE};

/// Where a bench finds a database of its own.
fn settings(database: &Database) -> Settings {
    Settings::of([("SANMOPIA_DATABASE_URL".to_owned(), database.url())])
}

#[tokio::test]
async fn the_intake_bench_measures_what_it_says_and_nothing_it_was_not_told_about() {
    let platform = Platform::with_accounts(0).await;
    let args = Args {
        events: 100,
        rounds: 2,
        connections: 8,
        pgbench_seconds: 1,
        gateway: Some(platform.gateways[0].url.clone()),
        common: Common::default(),
    };
    let report = measure(&args, &Settings::of(platform.settings())).await.unwrap();

    let all = |word: &str| BTreeMap::from([(word.to_owned(), 200)]);
    assert_eq!(report.outcomes.unique, all("queued"));
    assert_eq!(report.outcomes.duplicate, all("duplicate"));
    assert_eq!(report.outcomes.noop, all("404"));
    // With one more for each connection, to warm up with.
    for table in
        ["spillway.webhook_inbox", "spillway.command", "spillway.account_sync", &format!("pgmq.q_{QUEUE}")]
    {
        assert_eq!(platform.count(table).await, 208, "{table}");
    }
    assert_eq!((report.pgbench_send_per_s, report.cpu_us_per_event.gateway), (None, None));
}

#[tokio::test]
async fn the_drain_bench_ends_each_command_once_in_a_process_of_its_own() {
    let database = Database::fresh().await;
    let args = drain::Args {
        n: 400,
        rounds: 2,
        concurrency: 20,
        program: Some(PathBuf::from(env!("CARGO_BIN_EXE_lab"))),
        common: Common::default(),
    };
    let report = drain::measure(&args, &settings(&database)).await.unwrap();

    let meant = drain::Counts { succeeded_once: 800, archived: 800, ..drain::Counts::default() };
    assert_eq!(report.counts, meant);
    assert!(report.ours_per_s.is_some());
    assert!(report.loop_per_s.is_none() && report.peers.is_empty());
}

#[tokio::test]
async fn the_growth_bench_times_a_worker_before_each_backlog() {
    let database = Database::fresh().await;
    let args = growth::Args { n: 100, rounds: 1, divisor: 1000, concurrency: 20, common: Common::default() };
    let report = growth::measure(&args, &settings(&database)).await.unwrap();

    assert!(report.drain_per_s.keys().copied().eq(["100k", "10k", "1k", "1m"]));
    let growth::Counts { succeeded_once, otherwise, archived, left } = report.counts;
    assert_eq!((succeeded_once, otherwise), (archived, left));
    // Two hundred of each round, and those under way when the last one of them ended.
    assert!(succeeded_once >= 4 * 200 && left <= 1060, "{:?}", report.counts);
}

#[tokio::test]
async fn the_latency_bench_waits_for_each_start() {
    let database = Database::fresh().await;
    let args = latency::Args { samples: 5, common: Common::default() };
    let report = latency::measure(&args, &settings(&database)).await.unwrap();

    assert_eq!(report.started, 5);
    assert!(report.ours.is_some() && report.peers.is_empty());
}

#[tokio::test]
async fn the_claim_bench_finds_in_each_case_what_is_to_be_found() {
    let database = Database::fresh().await;
    let args = claim::Args { samples: 3, divisor: 500, only: None, common: Common::default() };
    let report = claim::measure(&args, &settings(&database)).await.unwrap();

    let found: BTreeMap<_, _> = report.cases.iter().map(|(name, case)| (*name, case.found)).collect();
    let ten = (10, 10);
    let meant = [
        ("empty", (0, 0)),
        ("held_snapshot", ten),
        ("million_waiting", ten),
        ("parked_200k", ten),
        ("saturated_key_100k", ten),
        ("saturated_key_10k", ten),
    ];
    assert_eq!(found, BTreeMap::from(meant));
    // Of the 200 messages with the key one holds it, and all others are parked.
    assert!(report.cases["saturated_key_100k"].first_pass_claims.is_some_and(|claims| claims > 1));
}

#[tokio::test]
async fn the_idle_bench_tells_of_our_processes_and_of_servers_apart() {
    let process = |name: &str| Process { name: name.to_owned(), pid: std::process::id() };
    let common = Common { processes: vec![process("gateway"), process("postgres")], ..Common::default() };
    let report = idle::measure(&idle::Args { seconds: 1, common }).await.unwrap();

    assert!(report.rss_mib.keys().eq(["gateway"]) && report.rss_mib["gateway"] > 0.0);
    assert!(report.servers_cpu_percent.keys().eq(["postgres"]));
}
