//! Kill Bill's push notifications: admitted by the internal route, numbered in the payment's feed.

use std::fmt::Write;
use std::time::Duration;

use contract::killbill::EventType;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use strum::VariantArray;
use testkit::eventually;

use crate::platform::{ADMISSION_TOKEN, BUDGET, Platform, Running, object};

const ADMISSION: &str = "x-callback-admission";
const QUEUE: &str = "sanmopia_payment_webhook_processing";
const ACCOUNT: &str = "7b0f1d0e-3a55-4f6c-9a0b-6f6f6f0b1a11";
const PAYMENT: &str = "2f9f2a0c-5f63-4a1e-8a0d-0d7a3c6a9d42";

/// A request to the callback of a tenant, without admission and body.
fn callback(platform: &Platform, url: &str, tenant: &str) -> RequestBuilder {
    platform.http.post(format!("{url}/webhooks/killbill/{tenant}"))
}

async fn push(platform: &Platform, tenant: &str, body: impl Into<Vec<u8>>) -> Response {
    let request = callback(platform, &platform.gateways[0].internal_url, tenant);
    request.header(ADMISSION, ADMISSION_TOKEN).body(body.into()).send().await.expect("an answer")
}

/// The answer to an admitted push, which must be 202 whatever is inside.
async fn pushed(platform: &Platform, tenant: &str, body: impl Into<Vec<u8>>) -> Value {
    let response = push(platform, tenant, body).await;
    assert_eq!(response.status(), 202);
    object(response).await
}

fn notification(
    event_type: &str,
    account: Option<&str>,
    object: (&str, Option<&str>),
    metadata: Option<Value>,
) -> String {
    json!({
        "eventType": event_type,
        "accountId": account,
        "objectType": object.0,
        "objectId": object.1,
        // JSON in a string, as the sender has it.
        "metaData": metadata.map(|metadata| metadata.to_string()),
    })
    .to_string()
}

fn transaction(status: &str) -> Value {
    json!({
        "paymentTransactionId": "c6a1e1f0-7f0d-4f57-8a4e-3b5f0b0f9c01", "amount": 15000, "currency": "KRW",
        "status": status, "transactionType": "PURCHASE", "effectiveDate": "2026-05-01T03:04:05.000Z",
    })
}

fn payment(event_type: &str, status: &str) -> String {
    notification(event_type, Some(ACCOUNT), ("PAYMENT", Some(PAYMENT)), Some(transaction(status)))
}

/// An event that says the same each time.
fn account_change() -> String {
    notification("ACCOUNT_CHANGE", Some(ACCOUNT), ("ACCOUNT", Some(ACCOUNT)), None)
}

/// The feed's entries: tenant, number and inbox row.
async fn feed(platform: &Platform) -> Vec<String> {
    let sql = "select concat_ws(' ', tenant, seq, inbox_id) from spillway.payment_feed_entry order by tenant, payment_id, seq";
    platform.database.texts(sql).await
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[tokio::test]
async fn only_the_internal_routes_token_admits_and_all_else_leaves_no_row() {
    let platform = Platform::with_accounts(0).await;
    let url = &platform.gateways[0].internal_url;
    let body = payment("PAYMENT_SUCCESS", "SUCCESS");
    let (shorter, bearer) = (&ADMISSION_TOKEN[1..], format!("Bearer {ADMISSION_TOKEN}"));
    for tokens in [&[][..], &[""], &["wrong"], &[shorter], &[&bearer], &[ADMISSION_TOKEN, ADMISSION_TOKEN]] {
        let mut request = callback(&platform, url, "main");
        for token in tokens {
            request = request.header(ADMISSION, *token);
        }
        let response = request.body(body.clone()).send().await.unwrap();
        assert_eq!(response.status(), 401, "{tokens:?}");
        assert_eq!(object(response).await["code"], "unauthenticated", "{tokens:?}");
    }
    assert_eq!(platform.count("spillway.webhook_inbox").await, 0);
    assert_eq!(pushed(&platform, "main", body).await["outcome"], "queued");
}

#[tokio::test]
async fn the_callback_is_not_there_for_the_outside() {
    let platform = Platform::with_accounts(0).await;
    let request = callback(&platform, &platform.gateways[0].url, "main").header(ADMISSION, ADMISSION_TOKEN);
    let response = request.body(payment("PAYMENT_SUCCESS", "SUCCESS")).send().await.unwrap();

    assert_eq!(response.status(), 404);
    assert_eq!(object(response).await["code"], "not_found");
    assert_eq!(platform.count("spillway.webhook_inbox").await, 0);
}

#[tokio::test]
async fn a_payments_events_are_numbered_and_each_wakes_the_worker() {
    let platform = Platform::with_accounts(0).await;
    let first = pushed(&platform, "main", payment("PAYMENT_SUCCESS", "PENDING")).await;
    let second = pushed(&platform, "main", payment("PAYMENT_SUCCESS", "SUCCESS")).await;
    let elsewhere = pushed(&platform, "other", payment("PAYMENT_SUCCESS", "PENDING")).await;

    for answer in [&first, &second, &elsewhere] {
        assert_eq!(answer["outcome"], "queued");
        let command = platform.command(text(&answer["command_id"])).await;
        assert_eq!(
            (&command["workload"], &command["status"]),
            (&json!("payment-webhook-processing"), &json!("queued"))
        );
    }
    let [first, second, elsewhere] = [&first, &second, &elsewhere].map(|answer| text(&answer["inbox_id"]));
    assert_eq!(
        feed(&platform).await,
        [format!("main 1 {first}"), format!("main 2 {second}"), format!("other 1 {elsewhere}")]
    );
    assert_eq!(platform.count(&format!("spillway.payment_feed where payment_id = '{PAYMENT}'")).await, 2);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 3);
    let payloads =
        platform.database.texts("select payload::text from spillway.command order by id limit 1").await;
    assert_eq!(
        serde_json::from_str::<Value>(&payloads[0]).unwrap(),
        json!({ "tenant": "main", "payment_id": PAYMENT })
    );
}

#[tokio::test]
async fn the_same_event_again_is_a_duplicate_and_gets_no_number() {
    let platform = Platform::with_accounts(0).await;
    let first = pushed(&platform, "main", payment("PAYMENT_FAILED", "UNKNOWN")).await;
    let again = pushed(&platform, "main", payment("PAYMENT_FAILED", "UNKNOWN")).await;

    assert_eq!((&first["outcome"], &again["outcome"]), (&json!("queued"), &json!("duplicate")));
    assert_eq!((&first["inbox_id"], &first["command_id"]), (&again["inbox_id"], &again["command_id"]));
    assert_eq!(feed(&platform).await, [format!("main 1 {}", text(&first["inbox_id"]))]);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn equal_events_without_data_are_one_within_the_window_and_two_beyond() {
    let platform = Platform::with_accounts(0).await;
    let with_window = async |window| {
        Running::pooled(&platform.database, |options| {
            options.intake.killbill_window = window;
        })
        .await
    };
    let push = async |gateway: &Running| {
        let request = callback(&platform, &gateway.internal_url, "main").header(ADMISSION, ADMISSION_TOKEN);
        let answer = object(request.body(account_change()).send().await.unwrap()).await;
        (text(&answer["outcome"]).to_owned(), answer["inbox_id"].clone())
    };
    let (endless, short) = (with_window(Duration::MAX).await, with_window(Duration::from_secs(1)).await);

    let ((first, row), again) = (push(&endless).await, push(&endless).await);
    assert_eq!((first.as_str(), again), ("queued", ("duplicate".to_owned(), row)));
    let (outcome, first_row) = push(&short).await;
    assert_eq!(outcome, "queued");
    let (outcome, next_row) = eventually("the next window begins", BUDGET, async || {
        let (outcome, row) = push(&short).await;
        (row != first_row).then_some((outcome, row))
    })
    .await;
    assert_eq!(outcome, "queued");
    assert_eq!(platform.count(&format!("spillway.webhook_inbox where id = '{}'", text(&next_row))).await, 1);
    endless.stop().await;
    short.stop().await;
}

#[tokio::test]
async fn broken_content_is_kept_byte_for_byte_and_never_refused() {
    let platform = Platform::with_accounts(0).await;
    let with = |from: &str, to: &str| payment("PAYMENT_SUCCESS", "SUCCESS").replace(from, to);
    let missing =
        notification("PAYMENT_SUCCESS", Some(ACCOUNT), ("PAYMENT", None), Some(transaction("SUCCESS")));
    let cases: [(Vec<u8>, &str); 10] = [
        (b"{".to_vec(), "not_json"),
        (Vec::new(), "not_json"),
        (b"\xff\xfe\x00".to_vec(), "not_json"),
        (with("PAYMENT_SUCCESS", "PAYMENT_DANCED").into(), "unknown_event"),
        (with("PAYMENT_SUCCESS", "").into(), "unknown_event"),
        (missing.into(), "object_missing"),
        (with(PAYMENT, "4711").into(), "object_missing"),
        (with(r#"{\"amount"#, r#"[{\"amount"#).into(), "metadata_invalid"),
        (payment("PAYMENT_SUCCESS", "SETTLED").into(), "unknown_status"),
        (with("{\"accountId", "{\"eventType\":\"TAG_CREATION\",\"accountId").into(), "ambiguous_json"),
    ];
    for (body, reason) in cases {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let (first, again) =
            (pushed(&platform, "main", body.clone()).await, pushed(&platform, "main", body.clone()).await);
        assert_eq!(
            (&first["outcome"], &first["command_id"]),
            (&json!("quarantined"), &Value::Null),
            "{shown}"
        );
        assert_eq!(first, again, "{shown}");
        let kept = format!(
            "spillway.webhook_inbox where id = '{}' and state = 'quarantined' and reason = '{reason}' and encode(body, 'hex') = '{}'",
            text(&first["inbox_id"]),
            hex(&body)
        );
        assert_eq!(platform.count(&kept).await, 1, "{shown}");
    }
    assert_eq!(platform.count("spillway.command").await, 0);
    assert_eq!(feed(&platform).await, [""; 0]);
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in bytes {
        write!(hex, "{byte:02x}").expect("a String takes everything");
    }
    hex
}

/// An event of each type as the sender writes it.
fn sample(event: EventType) -> String {
    use EventType as E;

    let id = "6bb1a40b-0000-4000-8000-000000000001";
    let ours = Some(ACCOUNT);
    let (account, object, metadata) = match event {
        E::AccountCreation | E::AccountChange | E::OverdueChange => (ours, ("ACCOUNT", Some(ACCOUNT)), None),
        E::BlockingState => (
            ours,
            ("BLOCKING_STATES", Some(id)),
            Some(json!({ "service": "entitlement-service", "stateName": "ENT_BLOCKED" })),
        ),
        E::BroadcastService => (
            None,
            ("SERVICE_BROADCAST", None),
            Some(json!({ "service": "s", "commandType": "c", "event": "{}" })),
        ),
        E::SubscriptionCreation
        | E::SubscriptionPhase
        | E::SubscriptionChange
        | E::SubscriptionCancel
        | E::SubscriptionUncancel
        | E::SubscriptionBcdChange
        | E::SubscriptionQuantity
        | E::SubscriptionExpired => (
            ours,
            ("SUBSCRIPTION", Some(id)),
            Some(json!({ "actionType": "EFFECTIVE", "bundleExternalKey": "b-1" })),
        ),
        E::EntitlementCreation | E::EntitlementCancel => (ours, ("SUBSCRIPTION", Some(id)), None),
        E::BundlePause | E::BundleResume => (ours, ("BUNDLE", Some(id)), None),
        E::InvoiceCreation | E::InvoiceAdjustment => (ours, ("INVOICE", Some(id)), None),
        E::InvoiceNotification => (
            ours,
            ("INVOICE", None),
            Some(json!({ "targetDate": "2026-06-01", "amountOwed": 10.50, "currency": "KRW" })),
        ),
        E::InvoicePaymentSuccess | E::InvoicePaymentFailed => (
            ours,
            ("INVOICE", Some(id)),
            Some(json!({ "paymentId": PAYMENT, "invoicePaymentType": "ATTEMPT", "amount": 15000 })),
        ),
        E::PaymentSuccess => (ours, ("PAYMENT", Some(PAYMENT)), Some(transaction("PENDING"))),
        E::PaymentFailed => (ours, ("PAYMENT", Some(PAYMENT)), Some(transaction("UNKNOWN"))),
        E::TagCreation | E::TagDeletion => {
            (ours, ("TAG", Some(id)), Some(json!({ "tagName": "AUTO_PAY_OFF" })))
        }
        E::CustomFieldCreation | E::CustomFieldDeletion => (ours, ("CUSTOM_FIELD", Some(id)), None),
        E::TenantConfigChange => {
            (None, ("TENANT_KVS", Some(id)), Some(json!({ "key": "PUSH_NOTIFICATION_CB" })))
        }
        E::TenantConfigDeletion => {
            (None, ("TENANT_KVS", None), Some(json!({ "key": "PUSH_NOTIFICATION_CB" })))
        }
    };
    notification(event.into(), account, object, metadata)
}

#[tokio::test]
async fn each_of_the_thirty_event_types_is_taken_in_and_only_a_payments_own_start_work() {
    let platform = Platform::with_accounts(0).await;
    for event in EventType::VARIANTS {
        let answer = pushed(&platform, "main", sample(*event)).await;
        let starts = matches!(event, EventType::PaymentSuccess | EventType::PaymentFailed);
        assert_eq!(
            (&answer["outcome"], answer["command_id"].is_string()),
            (&json!("queued"), starts),
            "{event}"
        );
        let row = format!(
            "spillway.webhook_inbox where id = '{}' and event_type = '{event}' and doc is not null and (finished_at is null) = {starts}",
            text(&answer["inbox_id"])
        );
        assert_eq!(platform.count(&row).await, 1, "{event}");
    }
    assert_eq!(platform.count("spillway.webhook_inbox where state = 'accepted'").await, 30);
    assert_eq!(platform.count("spillway.command").await, 2);
    assert_eq!(feed(&platform).await.len(), 2);
}

#[tokio::test]
async fn a_tenant_that_is_no_plain_name_is_not_found() {
    let platform = Platform::with_accounts(0).await;
    for tenant in ["a%2Fb", "a%20b", "%00", "%ff", "a:b", "%C3%A9", &"x".repeat(65)] {
        let response = push(&platform, tenant, payment("PAYMENT_SUCCESS", "SUCCESS")).await;
        assert_eq!(response.status(), 404, "{tenant}");
        assert_eq!(object(response).await["code"], "not_found", "{tenant}");
    }
    assert_eq!(platform.count("spillway.webhook_inbox").await, 0);
}
