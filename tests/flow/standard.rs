//! Webhooks of senders that follow Standard Webhooks.

use std::time::{SystemTime, UNIX_EPOCH};

use gateway::Options;
use reqwest::{RequestBuilder, Response};
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::standard::signature;
use webhook::standard::Sources;

use crate::platform::{Platform, Running, SOURCE, SOURCE_SECRET, object};

/// 24 bytes of `n`, and 24 bytes of `x`.
const NEXT_SECRET: &str = "whsec_bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u";
const STRANGE_SECRET: &str = "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4";
const BODY: &str = r#"{"type":"order.paid","timestamp":"2026-05-01T00:00:00Z","data":{"order":"o-1"}}"#;

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_secs()).expect("for a long time")
}

/// A request to the address of a source, without body, with these of the three headers.
fn request(platform: &Platform, url: &str, source: &str, headers: &[(&str, &str)]) -> RequestBuilder {
    let request = platform.http.post(format!("{url}/webhooks/standard/{source}"));
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

/// Delivers a body that is signed with one secret at one time.
async fn send(
    platform: &Platform,
    url: &str,
    source: &str,
    id: &str,
    secret: &str,
    at: i64,
    body: &str,
) -> Response {
    let (time, signature) = (at.to_string(), signature(secret, id, &at.to_string(), body.as_bytes()));
    let headers = [("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)];
    request(platform, url, source, &headers).body(body.to_owned()).send().await.expect("an answer")
}

/// The answer to a right delivery, which must be 202.
async fn deliver(platform: &Platform, id: &str, body: &str) -> Value {
    let url = &platform.gateways[0].url;
    let response = send(platform, url, SOURCE, id, SOURCE_SECRET, now(), body).await;
    assert_eq!(response.status(), 202);
    object(response).await
}

async fn with_secrets(platform: &Platform, secrets: &[(&str, &str)]) -> Running {
    let pairs = secrets.iter().map(|(name, secret)| (*name, SecretString::from(*secret)));
    let sources = Sources::of(pairs).expect("right secrets");
    let change = |options: &mut Options| options.intake.standard = sources;
    Running::pooled(&platform.database, change).await
}

#[tokio::test]
async fn a_signed_delivery_is_kept_under_the_name_of_its_source() {
    let platform = Platform::with_accounts(0).await;
    let answer = deliver(&platform, "msg_1", BODY).await;

    assert_eq!((&answer["outcome"], &answer["command_id"]), (&json!("queued"), &Value::Null));
    let row = "select concat_ws(' ', source, tenant, identity, event_type, state, doc -> 'data' ->> 'order') from spillway.webhook_inbox";
    assert_eq!(
        platform.database.texts(row).await,
        [format!("standard {SOURCE} msg_1 order.paid accepted o-1")]
    );
}

#[tokio::test]
async fn the_same_id_again_is_a_duplicate_though_it_is_signed_anew() {
    let platform = Platform::with_accounts(0).await;
    let url = &platform.gateways[0].url;
    let first = deliver(&platform, "msg_1", BODY).await;
    let again = object(send(&platform, url, SOURCE, "msg_1", SOURCE_SECRET, now() - 60, BODY).await).await;
    let other = deliver(&platform, "msg_1", r#"{"type":"order.paid","data":{"order":"o-2"}}"#).await;

    assert_eq!((&again["outcome"], &again["inbox_id"]), (&json!("duplicate"), &first["inbox_id"]));
    assert_eq!(other["outcome"], "quarantined");
    assert_eq!(platform.count("spillway.webhook_inbox where state = 'accepted'").await, 1);
    assert_eq!(platform.count("spillway.webhook_inbox where reason = 'identity_conflict'").await, 1);
}

#[tokio::test]
async fn one_id_of_two_sources_is_two_deliveries_and_no_source_speaks_for_another() {
    let platform = Platform::with_accounts(0).await;
    let gateway = with_secrets(&platform, &[("shop", SOURCE_SECRET), ("till", NEXT_SECRET)]).await;
    let send =
        async |source, secret| send(&platform, &gateway.url, source, "msg_1", secret, now(), BODY).await;

    assert_eq!(object(send("shop", SOURCE_SECRET).await).await["outcome"], "queued");
    assert_eq!(object(send("till", NEXT_SECRET).await).await["outcome"], "queued");
    assert_eq!(send("till", SOURCE_SECRET).await.status(), 401);
    assert_eq!(
        platform.database.texts("select tenant from spillway.webhook_inbox order by tenant").await,
        ["shop", "till"]
    );
    gateway.stop().await;
}

#[tokio::test]
async fn while_a_secret_is_replaced_the_old_and_the_new_one_pass() {
    let platform = Platform::with_accounts(0).await;
    let gateway = with_secrets(&platform, &[(SOURCE, SOURCE_SECRET), (SOURCE, NEXT_SECRET)]).await;
    for (id, secret, status) in
        [("old", SOURCE_SECRET, 202), ("new", NEXT_SECRET, 202), ("none", STRANGE_SECRET, 401)]
    {
        let response = send(&platform, &gateway.url, SOURCE, id, secret, now(), BODY).await;
        assert_eq!(response.status(), status, "{id}");
    }
    // A sender in the middle of its own rotation signs with both, and only one need be ours.
    let time = now();
    let [strange, old] = [STRANGE_SECRET, SOURCE_SECRET]
        .map(|secret| signature(secret, "both", &time.to_string(), BODY.as_bytes()));
    let (time, both) = (time.to_string(), format!("{strange} v1a,bm90IG91cnM= {old}"));
    let headers = [("webhook-id", "both"), ("webhook-timestamp", &*time), ("webhook-signature", &*both)];
    let response = request(&platform, &gateway.url, SOURCE, &headers).body(BODY).send().await.unwrap();

    assert_eq!(response.status(), 202);
    assert_eq!(platform.count("spillway.webhook_inbox").await, 3);
    gateway.stop().await;
}

#[tokio::test]
async fn a_delivery_that_proves_nothing_is_answered_401_and_leaves_no_row() {
    let platform = Platform::with_accounts(0).await;
    let url = &platform.gateways[0].url;
    let right = signature(SOURCE_SECRET, "msg_1", &now().to_string(), BODY.as_bytes());
    let time = now().to_string();
    let (id, timestamp, signed) =
        (("webhook-id", "msg_1"), ("webhook-timestamp", &*time), ("webhook-signature", &*right));
    for headers in [
        &[][..],
        &[id, timestamp],
        &[id, signed],
        &[timestamp, signed],
        &[id, timestamp, ("webhook-signature", "")],
        &[id, timestamp, ("webhook-signature", right.trim_start_matches("v1,"))],
        &[id, timestamp, signed, signed],
        &[id, id, timestamp, signed],
        &[("webhook-id", "msg_2"), timestamp, signed],
        &[id, ("webhook-timestamp", "today"), signed],
    ] {
        let response = request(&platform, url, SOURCE, headers).body(BODY).send().await.unwrap();
        assert_eq!(response.status(), 401, "{headers:?}");
        assert_eq!(object(response).await["code"], "unauthenticated", "{headers:?}");
    }
    for (source, secret) in [(SOURCE, STRANGE_SECRET), ("nobody", SOURCE_SECRET), ("%ff", SOURCE_SECRET)] {
        let status = send(&platform, url, source, "msg_1", secret, now(), BODY).await.status();
        assert_eq!(status, if source == "%ff" { 404 } else { 401 }, "{source} {secret}");
    }
    assert_eq!(platform.count("spillway.webhook_inbox").await, 0);
}

#[tokio::test]
async fn a_delivery_signed_at_another_time_is_refused_and_counted() {
    let platform = Platform::with_accounts(0).await;
    let gateway = &platform.gateways[0];
    for (apart, status) in [(-400, 401), (400, 401), (-200, 202), (200, 202)] {
        let id = format!("msg{apart}");
        let response = send(&platform, &gateway.url, SOURCE, &id, SOURCE_SECRET, now() + apart, BODY).await;
        assert_eq!(response.status(), status, "{apart} s");
    }
    let metrics = platform.http.get(format!("{}/metrics", gateway.internal_url)).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();

    assert!(metrics.contains(r#"spillway_webhook_skew_seconds_count{source="standard"} 2"#), "{metrics}");
    assert_eq!(platform.count("spillway.webhook_inbox").await, 2);
}

#[tokio::test]
async fn what_a_right_sender_says_is_kept_whatever_it_is() {
    let platform = Platform::with_accounts(0).await;
    for (id, body, outcome, reason) in [
        ("no_type", r#"{"order":"o-1"}"#, "queued", None),
        ("nul", r#"{"type":"a","data":"\u0000"}"#, "queued", None),
        ("tiny", r#"{"type":"a","data":1e-20000}"#, "queued", None),
        ("no_json", "a=1&b=2", "quarantined", Some("not_json")),
        ("nothing", "", "quarantined", Some("not_json")),
    ] {
        let answer = deliver(&platform, id, body).await;
        assert_eq!(answer["outcome"], outcome, "{id}");
        let row =
            "select concat_ws(' ', identity, convert_from(body, 'UTF8'), reason) from spillway.webhook_inbox";
        let row = format!("{row} where id = '{}'", answer["inbox_id"].as_str().unwrap());
        let expected =
            format!("{id} {body}{}", reason.map(|reason| format!(" {reason}")).unwrap_or_default());
        assert_eq!(platform.database.texts(&row).await, [expected], "{id}");
    }
    assert_eq!(platform.count("spillway.command").await, 0);
}
