//! The record, and the routes through which another program holds the sandbox.

use std::time::Duration;

use testkit::sandbox::{Call, Config, Error, Fault, Rule, Sandbox};

use crate::client::{HERS, POSITIONS, config, open_positions, read, read_positions, send, start};

#[tokio::test]
async fn every_call_is_a_line_of_the_record_without_secrets() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("calls.jsonl");
    let sandbox = start(Config { record: Some(path.clone()), ..config() }).await;
    sandbox.script(Rule::on("GET", "/accounts/{id}/balances").answer(Fault::LostAnswer));

    read_positions(&sandbox).await;
    read(&sandbox, "/accounts/{id}/balances", "").await;

    let text = std::fs::read_to_string(&path).expect("the record");
    let calls: Vec<Call> = text.lines().map(|line| serde_json::from_str(line).expect("a call")).collect();
    assert_eq!(calls, sandbox.calls());
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].path, POSITIONS.replace("{id}", &HERS.to_string()));
    assert!(!text.contains("secret"));
}

#[tokio::test]
async fn a_record_goes_on_where_the_last_sandbox_ended() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("calls.jsonl");
    for _ in 0..2 {
        let sandbox = start(Config { record: Some(path.clone()), ..config() }).await;
        read_positions(&sandbox).await;
        sandbox.stop().await;
    }

    assert_eq!(std::fs::read_to_string(&path).expect("the record").lines().count(), 2);
}

#[tokio::test]
async fn a_call_in_flight_is_recorded_when_the_sandbox_stops() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("calls.jsonl");
    let sandbox = start(Config { record: Some(path.clone()), ..config() }).await;
    sandbox.script(Rule::on("GET", "*").answer(Fault::Latency(Duration::from_hours(1))));
    let _waiting = open_positions(&sandbox).await;
    sandbox.until(|sandbox| sandbox.account_overlap(HERS).now == 1).await;

    sandbox.stop().await;

    let text = std::fs::read_to_string(&path).expect("the record");
    let call: Call = serde_json::from_str(&text).expect("one call");
    assert_eq!((call.status, call.answer_lost), (None, true));
}

#[tokio::test]
async fn a_record_or_an_address_that_can_not_be_had_is_named() {
    let record = Config { record: Some("/nowhere/calls.jsonl".into()), ..config() };
    let error = Sandbox::start(record).await.err().expect("no such directory");
    assert_eq!(error.to_string(), "opening the record /nowhere/calls.jsonl");

    let sandbox = start(config()).await;
    let listen = sandbox.url().strip_prefix("http://").and_then(|it| it.parse().ok()).expect("an address");
    let error = Sandbox::start(Config { listen, ..config() }).await.err();
    assert!(matches!(error, Some(Error::Bind { .. })));
}

#[tokio::test]
async fn another_program_scripts_watches_and_clears_over_http() {
    let sandbox = start(config()).await;
    let rule = r#"{"on":{"method":"GET","path":"/accounts/{id}/positions/all"},"answer":"garbage"}"#;

    let added = send(&sandbox, "POST", "/sandbox/script", "", rule).await.expect("an answer");
    assert_eq!((added.status, added.body.as_str()), (201, r#"{"id":0}"#));
    assert!(read_positions(&sandbox).await.body.starts_with('<'));

    let rules = send(&sandbox, "GET", "/sandbox/script", "", "").await.expect("an answer").json();
    assert_eq!(rules[0]["fired"], 1);
    let cleared = send(&sandbox, "DELETE", "/sandbox/script", "", "").await.expect("an answer");
    assert_eq!(cleared.status, 204);
    assert!(read_positions(&sandbox).await.body.starts_with('{'));
    let overlap = send(&sandbox, "GET", "/sandbox/overlap", "", "").await.expect("an answer").json();
    assert_eq!(overlap["snaptrade"]["all"]["peak"], 1);
    assert_eq!(overlap["snaptrade"]["keys"][HERS.to_string()]["peak"], 1);
}

#[tokio::test]
async fn another_program_reads_on_from_the_calls_that_it_has_seen() {
    let sandbox = start(config()).await;
    for _ in 0..3 {
        read_positions(&sandbox).await;
    }

    for (since, rest) in [(0, 3), (2, 1), (3, 0), (9, 0)] {
        let target = format!("/sandbox/calls?since={since}");
        let calls = send(&sandbox, "GET", &target, "", "").await.expect("an answer").json();
        assert_eq!(calls.as_array().map(Vec::len), Some(rest), "{target}");
    }
}

#[tokio::test]
async fn another_program_bumps_an_account() {
    let sandbox = start(config()).await;
    let target = format!("/sandbox/accounts/{HERS}/bump");

    let bumped = send(&sandbox, "POST", &target, "", "").await.expect("an answer");
    let unknown = send(&sandbox, "POST", &target.replace(char::is_numeric, "0"), "", "").await;

    assert_eq!(bumped.body, r#"{"revision":2}"#);
    assert_eq!(unknown.map(|reply| reply.status), Some(404));
}

#[tokio::test]
async fn control_routes_are_not_recorded_and_unknown_ones_are() {
    let sandbox = start(config()).await;

    let live = send(&sandbox, "GET", "/livez", "", "").await.expect("an answer");
    send(&sandbox, "GET", "/sandbox/calls", "", "").await.expect("an answer");
    let unknown = send(&sandbox, "GET", "/accounts?x=secret", "", "").await.expect("an answer");

    assert_eq!((live.status, unknown.status), (200, 404));
    let calls = sandbox.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].provider.as_str(), calls[0].path.as_str()), ("unknown", "/accounts"));
}

#[tokio::test]
async fn another_program_sets_the_quota_over_http() {
    let sandbox = start(config()).await;
    let set = send(&sandbox, "PUT", "/sandbox/snaptrade/quota", "", r#"{"calls":1,"seconds":3600}"#).await;
    assert_eq!(set.expect("an answer").status, 204);

    assert_eq!(read_positions(&sandbox).await.status, 200);
    let refused = read_positions(&sandbox).await;

    assert_eq!((refused.status, refused.headers["x-ratelimit-limit"].as_str()), (429, "1"));
}
