//! Commands that callers put in: promised once, shown, listed, awaited and taken back.

use std::time::Duration;

use contract::Status;
use reqwest::{RequestBuilder, Response};
use serde_json::json;
use testkit::eventually;
use uuid::Uuid;

use crate::platform::{BUDGET, Platform, QUEUE, Running, SERVICE_TOKEN, client, object};
use crate::program::Program;

const HOLDINGS: &str = r#"{"work_type":"holdings"}"#;

/// A request for a sync, without key and body.
pub(crate) fn sync_request(platform: &Platform, url: &str, account: Uuid, token: &str) -> RequestBuilder {
    platform.http.post(format!("{url}/v1/snaptrade/accounts/{account}/syncs")).bearer_auth(token)
}

/// The answer to a request of the default service for a sync of the first account.
async fn ask(platform: &Platform, key: &str, body: impl Into<reqwest::Body>) -> Response {
    let request = sync_request(platform, &platform.gateways[0].url, platform.accounts[0], SERVICE_TOKEN);
    request.header("idempotency-key", key).body(body).send().await.expect("an answer")
}

/// The id of a command that was accepted.
async fn accepted(response: Response) -> String {
    assert_eq!(response.status(), 202);
    object(response).await["id"].as_str().expect("an id").to_owned()
}

async fn cancel(platform: &Platform, id: &str) -> Response {
    let url = format!("{}/v1/commands/{id}/cancel", platform.gateways[0].url);
    platform.http.post(url).bearer_auth(SERVICE_TOKEN).send().await.expect("an answer")
}

async fn get(platform: &Platform, url: &str, path: &str) -> Response {
    platform.http.get(format!("{url}{path}")).bearer_auth(SERVICE_TOKEN).send().await.expect("an answer")
}

/// A refusal's status and code.
pub(crate) async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let problem = object(response).await;
    (status, problem["code"].as_str().unwrap_or_else(|| panic!("no problem: {problem}")).to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_command_is_accepted_with_its_address_and_the_same_again_is_the_same_answer() {
    let platform = Platform::with_accounts(1).await;
    let first = ask(&platform, "key-1", HOLDINGS).await;
    // The same content, written otherwise.
    let again = ask(&platform, "key-1", r#"{ "not_before": null, "work_type": "holdings" }"#).await;

    assert_eq!((first.status().as_u16(), again.status().as_u16()), (202, 202));
    assert_eq!(first.headers()["idempotency-replayed"], "false");
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    let location = first.headers()["location"].clone();
    assert_eq!(again.headers()["location"], location);
    let (first, again) = (object(first).await, object(again).await);
    assert_eq!(first, again);
    assert_eq!(first["status"], "accepted");
    let shown = get(&platform, &platform.gateways[0].url, location.to_str().unwrap()).await;
    assert_eq!((shown.status().as_u16(), &object(shown).await["id"]), (200, &first["id"]));
    assert_eq!(platform.count("spillway.command").await, 1);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn a_key_that_was_used_for_another_request_is_refused_and_nothing_is_taken_in() {
    let platform = Platform::with_accounts(2).await;
    accepted(ask(&platform, "key-1", HOLDINGS).await).await;
    let other_body = ask(&platform, "key-1", r#"{"work_type":"transactions"}"#).await;
    let request = sync_request(&platform, &platform.gateways[0].url, platform.accounts[1], SERVICE_TOKEN);
    let other_account = request.header("idempotency-key", "key-1").body(HOLDINGS).send().await.unwrap();

    for response in [other_body, other_account] {
        assert_eq!(refusal(response).await, refused(422, "idempotency_key_reused"));
    }
    assert_eq!(platform.count("spillway.command").await, 1);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn a_request_without_one_usable_key_is_refused() {
    let platform = Platform::with_accounts(1).await;
    let request = || sync_request(&platform, &platform.gateways[0].url, platform.accounts[0], SERVICE_TOKEN);
    let long = "x".repeat(201);
    for keys in [&[][..], &[""], &[&long], &["a", "a"], &["é"]] {
        let request = keys.iter().fold(request(), |request, key| request.header("idempotency-key", *key));
        let response = request.body(HOLDINGS).send().await.unwrap();
        assert_eq!(refusal(response).await, refused(400, "idempotency_key_missing"), "{keys:?}");
    }
    assert_eq!(platform.count("spillway.command").await, 0);
}

#[tokio::test]
async fn a_body_that_is_not_what_the_route_takes_is_the_callers_fault_and_never_ours() {
    let platform = Platform::with_accounts(1).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, status, code) in [
        ("", 400, "body_not_json"),
        ("{", 400, "body_not_json"),
        (&*deep, 400, "body_not_json"),
        ("[]", 422, "invalid"),
        ("{}", 422, "invalid"),
        ("1e-20000", 422, "invalid"),
        (r#"{"work_type":"dances"}"#, 422, "invalid"),
        (r#"{"work_type":"hold\u0000ings"}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","priority":0}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","x\u0000":"\u0000"}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","x":1e-20000}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","not_before":1e-20000}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","not_before":"tomorrow"}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","not_before":"2026-05-01T00:00:00\u0000Z"}"#, 422, "invalid"),
        (r#"{"work_type":"holdings","not_before":"+262000-01-01T00:00:00Z"}"#, 422, "not_storable"),
    ] {
        let key = format!("key-{}", Uuid::new_v4());
        assert_eq!(
            refusal(ask(&platform, &key, body.to_owned()).await).await,
            refused(status, code),
            "{body:.80}"
        );
    }
    let not_utf8 = ask(&platform, "key-bytes", &b"{\"work_type\":\"\xff\"}"[..]).await;
    assert_eq!(refusal(not_utf8).await, refused(400, "body_not_json"));
    let large = ask(&platform, "key-large", vec![b' '; 1024 * 1024 + 1]).await;
    assert_eq!(refusal(large).await, refused(413, "body_too_large"));
    assert_eq!(platform.count("spillway.command").await, 0);
    // One that can't be stored costs the others nothing, also in one transaction.
    let impossible = r#"{"work_type":"holdings","not_before":"+262000-01-01T00:00:00Z"}"#;
    let keys: Vec<String> = (0..16).map(|i| format!("key-{i}")).collect();
    let together = keys
        .iter()
        .enumerate()
        .map(|(i, key)| ask(&platform, key, if i % 4 == 0 { impossible } else { HOLDINGS }));
    let answers = futures_util::future::join_all(together).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status().as_u16()).collect();
    assert_eq!(statuses, [422, 202, 202, 202].repeat(4));
}

#[tokio::test]
async fn an_account_that_nobody_told_us_of_is_not_found() {
    let platform = Platform::with_accounts(1).await;
    let url = &platform.gateways[0].url;
    let unknown =
        sync_request(&platform, url, Uuid::new_v4(), SERVICE_TOKEN).header("idempotency-key", "key-1");
    let no_id =
        platform.http.post(format!("{url}/v1/snaptrade/accounts/4711/syncs")).bearer_auth(SERVICE_TOKEN);

    for request in [unknown, no_id.header("idempotency-key", "key-1")] {
        assert_eq!(refusal(request.body(HOLDINGS).send().await.unwrap()).await, refused(404, "not_found"));
    }
}

#[tokio::test]
async fn a_command_for_later_is_shown_as_accepted_and_its_message_waits() {
    let platform = Platform::with_accounts(1).await;
    let later = r#"{"work_type":"holdings","not_before":"2126-05-01T00:00:00Z"}"#;
    let id = accepted(ask(&platform, "key-1", later).await).await;

    assert_eq!(platform.command(&id).await["status"], "accepted");
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE} where vt = '2126-05-01'")).await, 1);
    let past = r#"{"work_type":"transactions","not_before":"2020-05-01T00:00:00Z"}"#;
    let id = accepted(ask(&platform, "key-2", past).await).await;
    assert_eq!(platform.command(&id).await["status"], "queued");
}

#[tokio::test]
async fn a_command_that_waits_can_be_taken_back_and_one_that_has_ended_cannot() {
    let platform = Platform::with_accounts(1).await;
    let id = accepted(ask(&platform, "key-1", HOLDINGS).await).await;
    let first = cancel(&platform, &id).await;
    assert_eq!(first.status(), 200);
    let first = object(first).await;
    assert_eq!(first["status"], "cancelled");
    assert!(first["finished_at"].is_string(), "{first}");
    // Cancelling twice is cancelling once.
    let again = cancel(&platform, &id).await;
    assert_eq!((again.status().as_u16(), object(again).await), (200, first));

    // A worker finds the message of the cancelled one, and drops it without a call.
    let worker =
        Program::start("webhook-worker", &["--queue", "snaptrade-account-sync"], &platform.settings());
    eventually("the message is gone", BUDGET, async || {
        (platform.count(&format!("pgmq.q_{QUEUE}")).await == 0).then_some(())
    })
    .await;
    assert!(platform.sandbox.calls().is_empty());
    assert_eq!(platform.command(&id).await["status"], "cancelled");
    let done = accepted(ask(&platform, "key-2", HOLDINGS).await).await;
    let path = format!("/v1/commands/{done}?wait=20s");
    let ended = object(get(&platform, &platform.gateways[0].url, &path).await).await;
    assert_eq!(
        (&ended["status"], &ended["result"]["account_id"]),
        (&json!("succeeded"), &json!(platform.accounts[0]))
    );
    assert_eq!(refusal(cancel(&platform, &done).await).await, refused(409, "command_finished"));
    assert_eq!(worker.terminate().await, Some(0));

    platform
        .database
        .execute(&format!(
            "update spillway.command set status = 'running', finished_at = null where id = '{done}'"
        ))
        .await;
    assert_eq!(refusal(cancel(&platform, &done).await).await, refused(409, "command_running"));
    assert_eq!(
        refusal(cancel(&platform, &Uuid::new_v4().to_string()).await).await,
        refused(404, "not_found")
    );
}

#[tokio::test]
async fn no_event_hangs_on_a_command_that_its_caller_put_off_or_takes_back() {
    let platform = Platform::with_accounts(1).await;
    let later = r#"{"work_type":"holdings","not_before":"2126-05-01T00:00:00Z"}"#;
    let put_off = accepted(ask(&platform, "key-1", later).await).await;
    let event = platform.deliver(&platform.holdings_event("evt-1", 0)).await;
    let taken_back = accepted(ask(&platform, "key-2", HOLDINGS).await).await;
    assert_eq!(cancel(&platform, &taken_back).await.status(), 200);

    assert_eq!(event["outcome"], "queued");
    let own = event["command_id"].as_str().unwrap();
    assert_eq!(platform.command(own).await["status"], "queued");
    assert_eq!(platform.command(&put_off).await["status"], "accepted");
    let next = platform.deliver(&platform.holdings_event("evt-2", 0)).await;
    assert_eq!((&next["outcome"], &next["command_id"]), (&json!("coalesced"), &json!(own)));
}

#[tokio::test]
async fn a_waiting_read_answers_when_the_command_ends() {
    let platform = Platform::with_accounts(1).await;
    // The bound is far beyond the client's own, so only the end can bring an answer in time.
    let gateway = Running::pooled(&platform.database, |options| {
        options.intake.longest_wait = Duration::from_hours(1);
    })
    .await;
    let id = accepted(ask(&platform, "key-1", HOLDINGS).await).await;
    let (http, url) = (client(), format!("{}/v1/commands/{id}?wait=3600s", gateway.url));
    let reading =
        tokio::spawn(
            async move { object(http.get(url).bearer_auth(SERVICE_TOKEN).send().await.unwrap()).await },
        );
    eventually("the read waits", BUDGET, async || {
        let metrics = get(&platform, &gateway.internal_url, "/metrics").await.text().await.unwrap();
        metrics.contains("spillway_http_in_flight{listener=\"public\"} 1").then_some(())
    })
    .await;
    assert_eq!(cancel(&platform, &id).await.status(), 200);

    assert_eq!(reading.await.unwrap()["status"], "cancelled");
    gateway.stop().await;
}

#[tokio::test]
async fn a_waiting_read_answers_at_the_latest_when_the_bound_is_reached() {
    let platform = Platform::with_accounts(1).await;
    let gateway = Running::pooled(&platform.database, |options| {
        options.intake.longest_wait = Duration::from_millis(200);
    })
    .await;
    let id = accepted(ask(&platform, "key-1", HOLDINGS).await).await;
    let answer = get(&platform, &gateway.url, &format!("/v1/commands/{id}?wait=3600")).await;

    assert_eq!(object(answer).await["status"], "queued");
    for wrong in ["wait=", "wait=1m", "wait=-1", "patience=1s", "wait=1&wait=2"] {
        let answer = get(&platform, &gateway.url, &format!("/v1/commands/{id}?{wrong}")).await;
        assert_eq!(refusal(answer).await, refused(422, "invalid"), "{wrong}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_list_shows_the_newest_first_in_pages_and_filters() {
    let platform = Platform::with_accounts(1).await;
    let mut ids = Vec::new();
    for i in 0..5 {
        ids.push(accepted(ask(&platform, &format!("key-{i}"), HOLDINGS).await).await);
    }
    cancel(&platform, &ids[1]).await;
    let list = async |query: &str| {
        let answer = get(&platform, &platform.gateways[0].url, &format!("/v1/commands?{query}")).await;
        assert_eq!(answer.status(), 200, "{query}");
        let page = object(answer).await;
        let shown = page["commands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|command| command["id"].as_str().unwrap().to_owned());
        (shown.collect::<Vec<_>>(), page["next"].as_str().map(str::to_owned))
    };
    let newest_first = |of: &[usize]| of.iter().map(|i| ids[*i].clone()).collect::<Vec<_>>();

    assert_eq!(list("").await, (newest_first(&[4, 3, 2, 1, 0]), None));
    assert_eq!(list("limit=5").await, (newest_first(&[4, 3, 2, 1, 0]), None));
    let (mut seen, mut query) = (Vec::new(), "limit=2".to_owned());
    loop {
        let (page, next) = list(&query).await;
        seen.extend(page);
        let Some(next) = next else { break };
        query = format!("limit=2&cursor={next}");
    }
    assert_eq!(seen, newest_first(&[4, 3, 2, 1, 0]));
    assert_eq!(list("status=cancelled").await, (newest_first(&[1]), None));
    assert_eq!(list("status=queued&limit=3").await, (newest_first(&[4, 3, 2]), Some(ids[2].clone())));
    assert_eq!(list("status=succeeded").await, (Vec::new(), None));
    assert_eq!(list("workload=snaptrade-account-sync&status=cancelled").await, (newest_first(&[1]), None));
    assert_eq!(list("workload=document-rendering").await, (Vec::new(), None));
    for status in <Status as strum::VariantArray>::VARIANTS {
        list(&format!("status={status}")).await;
    }
}

#[tokio::test]
async fn a_list_of_something_that_is_not_there_is_refused() {
    let platform = Platform::with_accounts(1).await;
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "status=dancing",
        "workload=dancing",
        "cursor=1",
        "order=asc",
        "limit=1&limit=2",
        "status=%00",
    ] {
        let answer = get(&platform, &platform.gateways[0].url, &format!("/v1/commands?{query}")).await;
        assert_eq!(refusal(answer).await, refused(422, "invalid"), "{query}");
    }
}
