//! From a webhook to stored holdings, through every way in which the provider can say no.

use std::time::Duration;

use contract::Workload;
use queue::{Options, Runner};
use serde_json::{Value, json};
use store::{Pool, Pooler};
use testkit::eventually;
use testkit::sandbox::{Fault, Rule};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use webhook_worker::SnaptradeSync;

use crate::platform::{BUDGET, CONSUMER_KEY, Platform, QUEUE, sealer};

const POSITIONS: &str = "/accounts/{id}/positions/all";

struct Worker(JoinHandle<()>, CancellationToken);

impl Worker {
    /// Behind the pooler.
    async fn start(platform: &Platform) -> Self {
        let url = platform.database.pooled_url_as("spillway_worker").await;
        let store = store::Options::of_url(url, 8).behind(Pooler::Transaction);
        let pool = Pool::prepare(&store, "worker", 8).unwrap();
        let metrics = std::sync::Arc::new(telemetry::Metrics::new("worker", "0"));
        let options = providers::snaptrade::Options {
            base_url: platform.sandbox.url().parse().unwrap(),
            client_id: "TESTCLIENT".to_owned(),
            consumer_key: secrecy::SecretString::from(CONSUMER_KEY),
            timeout: Duration::from_secs(2),
        };
        let client = providers::snaptrade::Client::new(options, metrics.clone());
        let handler = SnaptradeSync::new(pool.clone(), sealer(), client);
        let mut options = Options::of(Workload::SnaptradeAccountSync);
        options.concurrency = 8;
        options.poll = Duration::from_millis(20);
        let runner = Runner::new(options, pool, store, handler, metrics, probes::Health::new());
        let stop = CancellationToken::new();
        let token = stop.clone();
        Self(tokio::spawn(async move { runner.run_until(token).await.unwrap() }), stop)
    }

    async fn stop(self) {
        self.1.cancel();
        tokio::time::timeout(BUDGET, self.0).await.expect("it stops").unwrap();
    }
}

async fn becomes(platform: &Platform, command: &str, status: &str) -> Value {
    eventually(&format!("the command is {status}"), BUDGET, async || {
        let command = platform.command(command).await;
        (command["status"] == status).then_some(command)
    })
    .await
}

/// Makes delayed and parked messages due.
async fn hurry(platform: &Platform) {
    platform.database.execute(&format!("update pgmq.q_{QUEUE} set vt = now()")).await;
}

async fn synced(platform: &Platform, id: &str) -> String {
    platform.deliver(&platform.holdings_event(id, 0)).await["command_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_holdings_event_ends_as_stored_positions_balances_and_orders() {
    let platform = Platform::with_accounts(1).await;
    let worker = Worker::start(&platform).await;
    let command = synced(&platform, "evt-1").await;
    let command = becomes(&platform, &command, "succeeded").await;
    worker.stop().await;

    let account = platform.accounts[0];
    assert_eq!(command["result"]["account_id"], json!(account));
    for table in ["position", "balance", "order"] {
        let stored =
            platform.count(&format!("spillway.snaptrade_{table} where account_id = '{account}'")).await;
        assert!(stored >= 2, "{table}: {stored}");
        assert_eq!(command["result"][format!("{table}s")], stored);
    }
    assert_eq!(platform.count("spillway.snaptrade_position where units is null and kind = ''").await, 0);
    assert_eq!(platform.count("spillway.snaptrade_account where holdings_synced_at is not null").await, 1);
    assert_eq!(
        platform
            .database
            .number("select cardinality(provider_request_ids)::bigint from spillway.command")
            .await,
        3
    );
    let calls = platform.sandbox.calls();
    assert!(
        calls.len() == 3 && calls.iter().all(|call| call.signature_ok && call.status == Some(200)),
        "{calls:?}"
    );
}

#[tokio::test]
async fn a_second_sync_replaces_what_the_first_one_stored() {
    let platform = Platform::with_accounts(1).await;
    let worker = Worker::start(&platform).await;
    becomes(&platform, &synced(&platform, "evt-1").await, "succeeded").await;
    let symbols =
        || platform.database.texts("select symbol from spillway.snaptrade_position order by position");
    let before = symbols().await;
    platform.sandbox.bump(platform.accounts[0]);
    becomes(&platform, &synced(&platform, "evt-2").await, "succeeded").await;
    worker.stop().await;

    assert_ne!(symbols().await, before);
    let result =
        "select (result ->> 'positions')::bigint from spillway.command order by finished_at desc limit 1";
    assert_eq!(platform.database.number(result).await, platform.count("spillway.snaptrade_position").await);
}

#[tokio::test]
async fn being_throttled_waits_as_long_as_the_provider_says_and_burns_no_attempt() {
    let platform = Platform::with_accounts(1).await;
    let rule = platform.sandbox.script(Rule::on("GET", POSITIONS).times(1).answer(Fault::throttled(40)));
    let worker = Worker::start(&platform).await;
    let id = synced(&platform, "evt-1").await;
    let blocked = becomes(&platform, &id, "blocked").await;
    assert_eq!(
        (&blocked["blocked"]["reason"], &blocked["attempts"]),
        (&json!("provider_cooldown"), &json!(0))
    );
    assert_eq!(platform.sandbox.fired(rule), 1);
    let pause = format!("select extract(epoch from vt - now())::bigint from pgmq.q_{QUEUE}");
    assert!((38..=45).contains(&platform.database.number(&pause).await));
    hurry(&platform).await;
    becomes(&platform, &id, "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn data_that_are_still_being_prepared_are_waited_for() {
    let platform = Platform::with_accounts(1).await;
    platform.sandbox.script(Rule::on("GET", POSITIONS).times(1).answer(Fault::populating()));
    let worker = Worker::start(&platform).await;
    let id = synced(&platform, "evt-1").await;
    let blocked = becomes(&platform, &id, "blocked").await;
    assert_eq!((&blocked["blocked"]["reason"], &blocked["attempts"]), (&json!("not_ready"), &json!(0)));
    assert_eq!(blocked["failure"]["code"], "3012");
    hurry(&platform).await;
    becomes(&platform, &id, "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn failures_of_the_provider_are_tried_again_and_recorded() {
    for (fault, code) in [
        (Fault::broker_down(), "3002"),
        (Fault::unexpected(), "1000"),
        (Fault::LostAnswer, "connection_lost"),
        (Fault::Garbage, "unreadable_answer"),
        (Fault::Empty, "unreadable_answer"),
        (Fault::Latency(Duration::from_secs(4)), "timeout"),
    ] {
        let platform = Platform::with_accounts(1).await;
        let rule = platform.sandbox.script(Rule::on("GET", POSITIONS).times(1).answer(fault));
        let worker = Worker::start(&platform).await;
        let id = synced(&platform, "evt-1").await;
        let retrying = becomes(&platform, &id, "retrying").await;
        assert_eq!((&retrying["failure"]["code"], &retrying["attempts"]), (&json!(code), &json!(1)));
        assert_eq!(platform.sandbox.fired(rule), 1, "{code}");
        hurry(&platform).await;
        becomes(&platform, &id, "succeeded").await;
        worker.stop().await;
        assert_eq!(platform.count(&format!("spillway.attempt_failure where code = '{code}'")).await, 1);
    }
}

#[tokio::test]
async fn an_account_that_the_provider_denies_is_dead_lettered_with_its_reason() {
    let platform = Platform::with_accounts(1).await;
    let gone = Fault::Status {
        status: 404,
        code: "1011".to_owned(),
        detail: "The requested resource does not exist.".to_owned(),
        retry_after: None,
        reset_s: None,
    };
    platform.sandbox.script(Rule::on("GET", POSITIONS).answer(gone));
    let worker = Worker::start(&platform).await;
    let dead = becomes(&platform, &synced(&platform, "evt-1").await, "dead_lettered").await;
    worker.stop().await;

    assert_eq!(dead["failure"]["code"], "provider_rejected");
    assert_eq!(platform.count("spillway.dead_letter where reason = 'provider_rejected' and detail_code = '1011' and state = 'open'").await, 1);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}_dead")).await, 1);
}

#[tokio::test]
async fn an_account_closed_meanwhile_is_not_asked_for() {
    let platform = Platform::with_accounts(1).await;
    let id = synced(&platform, "evt-1").await;
    platform.database.execute("update spillway.snaptrade_account set state = 'closed'").await;
    let worker = Worker::start(&platform).await;
    becomes(&platform, &id, "succeeded").await;
    worker.stop().await;

    assert!(platform.sandbox.calls().is_empty());
}
