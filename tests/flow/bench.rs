//! The benches in small: what they count is true, however fast it was.

use std::collections::BTreeMap;

use lab::bench::Common;
use lab::bench::intake::{Args, measure};
use lab::connection::Settings;

use crate::platform::{Platform, QUEUE};

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
