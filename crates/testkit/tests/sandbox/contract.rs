//! What SnapTrade's callers may rely on: authentication, quota, errors and the shapes of answers.

use serde_json::Value;
use testkit::sandbox::Config;
use uuid::Uuid;

use crate::client::{
    HERS, HIS, POSITIONS, config, credentials, get, read, read_as, read_positions, send, start,
};

#[tokio::test]
async fn a_signed_request_reads_every_resource() {
    let sandbox = start(config()).await;
    for (path, inside) in [
        ("/accounts/{id}", "/sync_status/holdings/initial_sync_completed"),
        (POSITIONS, "/results/1/instrument/kind"),
        (POSITIONS, "/data_freshness/as_of"),
        ("/accounts/{id}/balances", "/1/currency/code"),
        ("/accounts/{id}/orders/v2", "/orders/0/legs/0/instrument/symbol"),
        ("/accounts/{id}/recentOrders/v2", "/orders/0/brokerage_order_id"),
        ("/accounts/{id}/activities", "/pagination/total"),
    ] {
        let reply = read(&sandbox, path, "").await.expect("an answer");

        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        assert!(reply.json().pointer(inside).is_some_and(|value| !value.is_null()), "{path}: {}", reply.body);
    }
    assert!(sandbox.calls().iter().all(|call| call.signature_ok && call.key == Some(HERS)));
}

#[tokio::test]
async fn holdings_in_one_call_are_gone() {
    let sandbox = start(config()).await;

    let reply = read(&sandbox, "/accounts/{id}/holdings", "").await.expect("an answer");

    assert_eq!((reply.status, &reply.json()["status_code"]), (410, &Value::from(410)));
}

#[tokio::test]
async fn the_old_prefix_answers_the_same_and_says_that_it_is_deprecated() {
    let sandbox = start(config()).await;

    let new = read_positions(&sandbox).await;
    let old = read(&sandbox, &format!("/api/v1{POSITIONS}"), "").await.expect("an answer");

    assert_eq!(old.body, new.body);
    assert_eq!(old.headers["deprecation"], "@1781222400");
    assert!(!new.headers.contains_key("deprecation"));
}

#[tokio::test]
async fn activities_come_in_pages_and_wrong_parameters_are_refused() {
    let sandbox = start(config()).await;
    sandbox.set_activities(HERS, 1200);
    let path = "/accounts/{id}/activities";

    let second = read(&sandbox, path, "&offset=1000&limit=1000").await.expect("an answer");
    let wrong = read(&sandbox, path, "&limit=many").await.expect("an answer");

    assert_eq!(second.json()["data"].as_array().map(Vec::len), Some(200));
    assert_eq!(second.json()["pagination"]["total"], 1200);
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn a_request_that_is_not_signed_right_is_refused_with_1076() {
    let sandbox = start(config()).await;
    let path = format!("/accounts/{HERS}/balances");
    let query = credentials("anna", "secret-of-anna", 0);
    let wrong = get(&sandbox, &path, &query, "kEzBKwx0/YyB13kCxQNlQlKdMzpDBt1nROt6+WC3UmY=").await;
    let missing = send(&sandbox, "GET", &format!("{path}?{query}"), "", "").await;
    let nobody = send(&sandbox, "GET", &path, "", "").await;

    let told = serde_json::json!({
        "detail": "Unable to verify signature sent", "status_code": 401, "code": "1076"
    });
    for reply in [wrong, missing, nobody] {
        let reply = reply.expect("an answer");
        assert_eq!(reply.status, 401);
        assert_eq!(reply.json(), told);
    }
    assert!(sandbox.calls().iter().all(|call| !call.signature_ok));
}

#[tokio::test]
async fn a_timestamp_may_be_five_minutes_off_and_the_client_must_be_known() {
    let sandbox = start(config()).await;
    let with_age = |age_s| credentials("anna", "secret-of-anna", age_s);
    let stranger = with_age(0).replace("SPILLWAYDEV", "SOMEBODY");

    for (query, status) in [
        (with_age(290), 200),
        (with_age(-290), 200),
        (with_age(310), 401),
        (with_age(-310), 401),
        (stranger, 401),
    ] {
        assert_eq!(read_as(&sandbox, HERS, &query).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn a_user_needs_their_secret_and_reads_only_their_own_accounts() {
    let sandbox = start(config()).await;
    let anna = credentials("anna", "secret-of-anna", 0);
    for (account, query, status, code) in [
        (HERS, credentials("anna", "secret-of-bert", 0), 403, "1066"),
        (HERS, credentials("nobody", "secret-of-anna", 0), 403, "1066"),
        (HIS, anna.clone(), 404, "1011"),
        (Uuid::from_u128(9), anna, 404, "1011"),
    ] {
        let reply = read_as(&sandbox, account, &query).await;

        assert_eq!((reply.status, &reply.json()["code"]), (status, &Value::from(code)), "{query}");
    }
}

#[tokio::test]
async fn every_answer_tells_the_quota_and_a_request_id_of_its_own() {
    let sandbox = start(Config { quota_per_minute: 100, ..config() }).await;

    let first = read_positions(&sandbox).await;
    let second = read_positions(&sandbox).await;
    let refused = send(&sandbox, "GET", "/accounts/x/balances", "", "").await.expect("an answer");

    assert_eq!(first.headers["x-ratelimit-limit"], "100");
    let remaining = [&first, &second, &refused].map(|reply| reply.headers["x-ratelimit-remaining"].as_str());
    assert_eq!(remaining, ["99", "98", "98"]);
    let reset: u64 = first.headers["x-ratelimit-reset"].parse().expect("seconds");
    assert!((1..=60).contains(&reset));
    let ids: Vec<Uuid> = sandbox.calls().iter().map(|call| call.request_id).collect();
    for (reply, id) in [first, second, refused].iter().zip(ids) {
        assert_eq!(reply.headers["x-request-id"], id.to_string());
    }
}

#[tokio::test]
async fn a_call_over_the_quota_is_throttled_in_the_providers_words() {
    let sandbox = start(Config { quota_per_minute: 1, ..config() }).await;
    read_positions(&sandbox).await;

    let reply = read_positions(&sandbox).await;

    let reset = &reply.headers["x-ratelimit-reset"];
    let detail = format!("Request was throttled. Expected available in {reset} seconds.");
    assert_eq!(reply.status, 429);
    assert_eq!(reply.headers["x-ratelimit-remaining"], "0");
    assert_eq!(reply.json(), serde_json::json!({"detail": detail, "status_code": 429, "code": "0000"}));
    assert_eq!(sandbox.calls()[1].asked_wait_s, reset.parse().ok());
}

#[tokio::test]
async fn a_bump_changes_one_account_and_leaves_the_other() {
    let sandbox = start(config()).await;
    let bert = credentials("bert", "secret-of-bert", 0);
    let (hers, his) = (read_positions(&sandbox).await.body, read_as(&sandbox, HIS, &bert).await.body);

    assert_eq!(sandbox.bump(HERS), Some(2));
    assert_eq!(sandbox.bump(Uuid::from_u128(9)), None);

    assert_ne!(read_positions(&sandbox).await.body, hers);
    assert_eq!(read_as(&sandbox, HIS, &bert).await.body, his);
}

#[tokio::test]
async fn equal_seeds_answer_with_equal_bytes_and_other_seeds_do_not() {
    let (one, again, other) =
        (start(config()).await, start(config()).await, start(Config { seed: 2, ..config() }).await);

    let body = read_positions(&one).await.body;

    assert_eq!(read_positions(&again).await.body, body);
    assert_ne!(read_positions(&other).await.body, body);
}
