//! Faults on command, as callers see them.

use std::time::Duration;

use testkit::sandbox::snaptrade::PROVIDER;
use testkit::sandbox::{Config, Fault, Overlap, Rule};
use tokio::io::AsyncReadExt;

use crate::client::{
    HERS, HIS, POSITIONS, config, credentials, open_positions, read, read_as, read_positions, start,
};

/// Far longer than any test runs.
const FOREVER: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_first_sync_is_too_early_twice_and_then_there() {
    let sandbox = start(config()).await;
    let rule = sandbox.script(Rule::on("GET", POSITIONS).times(2).answer(Fault::populating()));

    for _ in 0..2 {
        let reply = read_positions(&sandbox).await;
        assert_eq!(reply.status, 425);
        assert_eq!(
            reply.json(),
            serde_json::json!({
                "detail": "The resource is currently being populated. Please try again later.", "code": "3012"
            })
        );
    }
    assert_eq!(read_positions(&sandbox).await.status, 200);
    assert_eq!(sandbox.fired(rule), 2);
    let rules: Vec<_> = sandbox.calls().iter().map(|call| call.rule).collect();
    assert_eq!(rules, [Some(rule), Some(rule), None]);
}

#[tokio::test]
async fn each_preset_has_its_status_and_code() {
    for (fault, status, code) in [
        (Fault::broker_down(), 503, "3002"),
        (Fault::unexpected(), 500, "1000"),
        (Fault::throttled(7), 429, "0000"),
    ] {
        let sandbox = start(config()).await;
        sandbox.script(Rule::on("*", "*").answer(fault));

        let reply = read_positions(&sandbox).await;

        assert_eq!((reply.status, reply.json()["code"].as_str()), (status, Some(code)));
        assert_eq!(reply.json()["status_code"], status);
    }
}

#[tokio::test]
async fn a_scripted_throttle_says_how_long_in_body_and_headers() {
    let sandbox = start(config()).await;
    sandbox.script(Rule::on("GET", POSITIONS).answer(Fault::throttled(7)));

    let reply = read_positions(&sandbox).await;

    assert_eq!(reply.json()["detail"], "Request was throttled. Expected available in 7 seconds.");
    assert_eq!(reply.headers["x-ratelimit-remaining"], "0");
    assert_eq!(reply.headers["x-ratelimit-reset"], "7");
    assert!(!reply.headers.contains_key("retry-after"));
    assert_eq!(sandbox.calls()[0].asked_wait_s, Some(7));
}

#[tokio::test]
async fn a_retry_after_is_sent_as_it_was_scripted() {
    let sandbox = start(config()).await;
    let fault = Fault::Status {
        status: 503,
        code: "3002".to_owned(),
        detail: "Later.".to_owned(),
        retry_after: Some("Wed, 21 Oct 2026 07:28:00 GMT".to_owned()),
        reset_s: None,
    };
    sandbox.script(Rule::on("GET", "*").answer(fault));

    let reply = read_positions(&sandbox).await;

    assert_eq!(reply.headers["retry-after"], "Wed, 21 Oct 2026 07:28:00 GMT");
    assert_eq!(reply.headers["x-ratelimit-remaining"], "3999");
}

#[tokio::test]
async fn a_lost_answer_was_worked_on_and_recorded_but_never_sent() {
    let sandbox = start(config()).await;
    let rule = sandbox.script(Rule::on("GET", POSITIONS).times(1).answer(Fault::LostAnswer));

    assert!(read(&sandbox, POSITIONS, "").await.is_none());

    let call = sandbox.calls().remove(0);
    assert_eq!((call.status, call.answer_lost, call.rule), (Some(200), true, Some(rule)));
    assert_eq!(read_positions(&sandbox).await.status, 200);
    assert!(!sandbox.calls()[1].answer_lost);
}

#[tokio::test]
async fn garbage_and_nothing_are_200_without_json() {
    let sandbox = start(config()).await;
    sandbox.script(Rule::on("GET", "*").times(1).answer(Fault::Garbage));
    sandbox.script(Rule::on("GET", "*").times(1).answer(Fault::Empty));

    let (garbage, nothing) = (read_positions(&sandbox).await, read_positions(&sandbox).await);

    assert_eq!((garbage.status, nothing.status), (200, 200));
    assert!(serde_json::from_str::<serde_json::Value>(&garbage.body).is_err());
    assert_eq!(nothing.body, "");
}

#[tokio::test]
async fn a_rule_for_one_account_spares_the_others() {
    let sandbox = start(config()).await;
    sandbox.script(Rule::on("GET", "/accounts/*").account(HIS).answer(Fault::unexpected()));

    assert_eq!(read_positions(&sandbox).await.status, 200);
    let bert = credentials("bert", "secret-of-bert", 0);
    assert_eq!(read_as(&sandbox, HIS, &bert).await.status, 500);
}

#[tokio::test]
async fn a_fault_never_hides_a_bad_signature() {
    let sandbox = start(config()).await;
    let rule = sandbox.script(Rule::on("*", "*").answer(Fault::Empty));

    let stale = credentials("anna", "secret-of-anna", 900);

    assert_eq!(read_as(&sandbox, HERS, &stale).await.status, 401);
    assert_eq!(sandbox.fired(rule), 0);
}

#[tokio::test]
async fn a_caller_that_hangs_up_is_counted_out_and_recorded_without_an_answer() {
    let sandbox = start(config()).await;
    sandbox.script(Rule::on("GET", POSITIONS).times(2).answer(Fault::Latency(FOREVER)));
    let (first, second) = (open_positions(&sandbox).await, open_positions(&sandbox).await);
    sandbox.until(|sandbox| sandbox.account_overlap(HERS).now == 2).await;

    drop(first);
    sandbox.until(|sandbox| sandbox.calls().len() == 1).await;

    assert_eq!(sandbox.overlap(PROVIDER), Overlap { now: 1, peak: 2 });
    let call = sandbox.calls().remove(0);
    assert_eq!((call.status, call.answer_lost), (None, true));
    drop(second);
    sandbox.until(|sandbox| sandbox.overlap(PROVIDER).now == 0).await;
    assert_eq!(sandbox.account_overlap(HERS), Overlap { now: 0, peak: 2 });
    assert_eq!(sandbox.account_overlap(HIS), Overlap::default());
}

#[tokio::test]
async fn calls_one_after_the_other_never_overlap() {
    let sandbox = start(config()).await;

    for _ in 0..50 {
        read_positions(&sandbox).await;
    }

    assert_eq!(sandbox.overlap(PROVIDER), Overlap { now: 0, peak: 1 });
    assert!(sandbox.calls().iter().all(|call| call.in_flight_provider == 1 && call.in_flight_key == Some(1)));
}

#[tokio::test]
async fn a_late_answer_is_the_right_one() {
    let sandbox = start(config()).await;
    let prompt = read_positions(&sandbox).await;
    sandbox.script(Rule::on("GET", POSITIONS).answer(Fault::Latency(Duration::from_millis(30))));

    let late = read_positions(&sandbox).await;

    assert_eq!(late.body, prompt.body);
    assert!(sandbox.calls()[1].duration_ms >= 30);
}

#[tokio::test]
async fn a_sandbox_with_latency_takes_its_time_for_every_call() {
    let sandbox = start(Config { latency: Duration::from_millis(30), ..config() }).await;

    read_positions(&sandbox).await;

    assert!(sandbox.calls()[0].duration_ms >= 30);
}

#[tokio::test]
async fn a_stopped_sandbox_drops_its_calls_and_frees_its_port() {
    let sandbox = start(config()).await;
    sandbox.script(Rule::on("GET", POSITIONS).answer(Fault::Latency(FOREVER)));
    let _waiting = open_positions(&sandbox).await;
    sandbox.until(|sandbox| sandbox.overlap(PROVIDER).now == 1).await;
    let listen = sandbox.url().strip_prefix("http://").and_then(|it| it.parse().ok()).expect("an address");

    sandbox.stop().await;

    start(Config { listen, ..config() }).await;
}

#[tokio::test]
async fn a_dropped_sandbox_hangs_up_on_its_callers() {
    let sandbox = start(config()).await;
    sandbox.script(Rule::on("GET", POSITIONS).answer(Fault::Latency(FOREVER)));
    let mut waiting = open_positions(&sandbox).await;
    sandbox.until(|sandbox| sandbox.overlap(PROVIDER).now == 1).await;

    drop(sandbox);

    let mut rest = Vec::new();
    assert_eq!(waiting.read_to_end(&mut rest).await.expect("a closed connection"), 0);
}
