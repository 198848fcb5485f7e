use contract::killbill::EventType;
use proptest::prelude::*;
use serde_json::{Value, json};
use strum::VariantArray;

use super::*;
use crate::killbill::read_fact;

const ACCOUNT: &str = "7b0f1d0e-3a55-4f6c-9a0b-6f6f6f0b1a11";
const PAYMENT: &str = "2f9f2a0c-5f63-4a1e-8a0d-0d7a3c6a9d42";
const METADATA: &str = r#"{"paymentTransactionId":"c6a1e1f0-7f0d-4f57-8a4e-3b5f0b0f9c01","amount":15000,"currency":"KRW","status":"PENDING","transactionType":"PURCHASE","effectiveDate":"2026-05-01T03:04:05.000Z"}"#;

const WINDOW: Duration = Duration::from_mins(1);
/// The first second of a window.
const NOW: u64 = 1_777_604_640;

fn push(event_type: &str, object_id: impl Into<Value>, metadata: impl Into<Value>) -> String {
    json!({
        "eventType": event_type,
        "accountId": ACCOUNT,
        "objectType": "PAYMENT",
        "objectId": object_id.into(),
        "metaData": metadata.into(),
    })
    .to_string()
}

/// A push about the payment, its metadata with one text replaced.
fn payment(event_type: &str, from: &str, to: &str) -> String {
    push(event_type, PAYMENT, METADATA.replace(from, to))
}

fn read(body: &str) -> Event {
    Event::read("main", body.as_bytes(), NOW, WINDOW)
}

fn meaning(body: &str) -> Meaning {
    read(body).meaning()
}

fn identity(body: &str) -> String {
    read(body).identity.into_string()
}

fn identity_at(body: &str, received_at_unix_s: u64) -> String {
    Event::read("main", body.as_bytes(), received_at_unix_s, WINDOW).identity.into_string()
}

#[test]
fn every_event_type_has_a_meaning() {
    for event_type in EventType::VARIANTS {
        let meaning = meaning(&payment(event_type.into(), "", ""));
        let is_about_a_payment = matches!(event_type, EventType::PaymentSuccess | EventType::PaymentFailed);
        let expected = if is_about_a_payment {
            Meaning::TakeFactIn { payment_id: PAYMENT.parse().expect("a UUID") }
        } else {
            Meaning::Record
        };
        assert_eq!(meaning, expected, "{event_type}");
    }
}

#[test]
fn an_event_without_data_or_without_an_object_is_recorded_unless_it_is_about_a_payment() {
    for event_type in EventType::VARIANTS {
        let body = push(event_type.into(), Value::Null, Value::Null);
        let expected = match event_type {
            EventType::PaymentSuccess | EventType::PaymentFailed => {
                Meaning::Quarantine(Reason::ObjectMissing)
            }
            _ => Meaning::Record,
        };
        assert_eq!(meaning(&body), expected, "{event_type}");
    }
}

#[test]
fn a_success_that_is_pending_and_a_failure_that_is_unknown_are_facts_like_any_other() {
    for (event_type, status) in [("PAYMENT_SUCCESS", "PENDING"), ("PAYMENT_FAILED", "UNKNOWN")] {
        let event = read(&payment(event_type, "PENDING", status));

        assert_eq!(event.event_type.as_deref(), Some(event_type));
        assert_eq!(event.fact.as_ref().map(|fact| fact.status.to_string()).as_deref(), Some(status));
        assert!(matches!(event.meaning(), Meaning::TakeFactIn { .. }), "{event_type} {status}");
    }
}

#[test]
fn broken_content_is_set_aside_with_a_reason() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    let with_metadata = |metadata: &str| push("PAYMENT_SUCCESS", PAYMENT, metadata);
    let twice = METADATA.replace("\"amount\":15000", "\"amount\":15000,\"amount\":999");
    let escaped = METADATA.replace("\"amount\":15000", "\"amount\":15000,\"am\\u006funt\":999");
    for (body, reason) in [
        (String::new(), Reason::NotJson),
        ("{".to_owned(), Reason::NotJson),
        ("null".to_owned(), Reason::NotJson),
        ("[]".to_owned(), Reason::NotJson),
        ("\u{feff}{}".to_owned(), Reason::NotJson),
        (deep.clone(), Reason::NotJson),
        ("{}".to_owned(), Reason::UnknownEvent),
        (r#"{"eventType":null}"#.to_owned(), Reason::UnknownEvent),
        (r#"{"eventType":7}"#.to_owned(), Reason::UnknownEvent),
        (push("payment_success", PAYMENT, METADATA), Reason::UnknownEvent),
        (push("PAYMENT_REVERSED", PAYMENT, METADATA), Reason::UnknownEvent),
        (push("PAYMENT_SUCCESS\0", PAYMENT, METADATA), Reason::UnknownEvent),
        (push("PAYMENT_SUCCESS", "2f9f2a0c", METADATA), Reason::ObjectMissing),
        (push("PAYMENT_SUCCESS", "../1", METADATA), Reason::ObjectMissing),
        (
            payment("PAYMENT_SUCCESS", "", "").replace(&format!("\"{PAYMENT}\""), "12345678901234567890123"),
            Reason::ObjectMissing,
        ),
        (push("PAYMENT_SUCCESS", PAYMENT, Value::Null), Reason::MetadataInvalid),
        (push("PAYMENT_SUCCESS", PAYMENT, json!({ "status": "SUCCESS" })), Reason::MetadataInvalid),
        (push("TAG_CREATION", PAYMENT, 7), Reason::MetadataInvalid),
        (push("TAG_CREATION", PAYMENT, "{"), Reason::MetadataInvalid),
        (push("TAG_CREATION", PAYMENT, deep), Reason::MetadataInvalid),
        (with_metadata(""), Reason::MetadataInvalid),
        (with_metadata("null"), Reason::MetadataInvalid),
        (with_metadata("[]"), Reason::MetadataInvalid),
        (with_metadata("{}"), Reason::MetadataInvalid),
        (with_metadata(&METADATA.replace("15000", "1e400")), Reason::MetadataInvalid),
        (with_metadata(&METADATA.replace("PENDING", "SETTLED")), Reason::UnknownStatus),
        (with_metadata(&twice), Reason::AmbiguousJson),
        (with_metadata(&escaped), Reason::AmbiguousJson),
        (push("TAG_CREATION", PAYMENT, twice), Reason::AmbiguousJson),
        (r#"{"eventType":"TAG_CREATION","eventType":"PAYMENT_SUCCESS"}"#.to_owned(), Reason::AmbiguousJson),
        (r#"{"eventType":"TAG_CREATION","x":[{"y":1,"y":1}]}"#.to_owned(), Reason::AmbiguousJson),
    ] {
        assert_eq!(meaning(&body), Meaning::Quarantine(reason), "{body:.300}");
    }
    let not_utf8 = Event::read("main", b"\xff\xfe", NOW, WINDOW);
    assert_eq!(not_utf8.meaning(), Meaning::Quarantine(Reason::NotJson));
}

#[test]
fn a_delivery_that_cannot_be_read_is_identified_by_its_bytes() {
    let sent_twice = [0, 1_000_000].map(|later| identity_at("{", NOW + later));

    assert_eq!(sent_twice[0], sent_twice[1]);
    assert!(sent_twice[0].starts_with("sha256:"));
    let one = payment("PAYMENT_SUCCESS", "PENDING", "SETTLED");
    let other = payment("PAYMENT_SUCCESS", "PENDING", "SETTLING");
    assert_ne!(identity(&one), identity(&other));
}

#[test]
fn a_body_with_nul_characters_is_not_for_jsonb() {
    let event = read(&push("TAG_CREATION", "a\0b", Value::Null));

    assert!(!event.is_clean_json);
    assert_eq!(event.meaning(), Meaning::Record);
    assert!(read(&payment("PAYMENT_SUCCESS", "", "")).is_clean_json);
    assert!(!read("{").is_clean_json);
}

#[test]
fn the_identity_of_a_fact_is_the_same_for_ever() {
    assert_eq!(
        identity(&payment("PAYMENT_SUCCESS", "", "")),
        "killbill:c2c2f0d73196f181c657a1f2ce0678fdadeba86e92af9dc6eb9e4b4768fbc413"
    );
}

#[test]
fn two_facts_are_one_where_transaction_status_and_type_agree() {
    let fact = payment("PAYMENT_SUCCESS", "", "");
    let later = identity_at(&fact, NOW + 172_800);
    assert_eq!(identity(&fact), later);

    let same = [
        payment("PAYMENT_SUCCESS", "15000", "15001"),
        payment("PAYMENT_SUCCESS", "03:04:05", "03:04:06"),
        payment("PAYMENT_SUCCESS", "\"amount\":15000,", ""),
        fact.replace(PAYMENT, &PAYMENT.to_uppercase()),
        fact.replace(ACCOUNT, PAYMENT),
        fact.replace(",\"", ", \""),
    ];
    for body in same {
        assert_eq!(identity(&body), later, "{body}");
    }
    let others = [
        payment("PAYMENT_FAILED", "", ""),
        payment("PAYMENT_SUCCESS", "PENDING", "SUCCESS"),
        payment("PAYMENT_SUCCESS", "PURCHASE", "CAPTURE"),
        payment("PAYMENT_SUCCESS", "c6a1e1f0", "c6a1e1f1"),
        fact.replace("2f9f2a0c", "2f9f2a0d"),
    ];
    for body in others {
        assert_ne!(identity(&body), later, "{body}");
    }
    let elsewhere = Event::read("other", fact.as_bytes(), NOW, WINDOW).identity.into_string();
    assert_ne!(elsewhere, later);
}

#[test]
fn metadata_in_another_order_says_the_same_and_one_other_digit_does_not() {
    let tag = |metadata: &str| identity(&push("TAG_CREATION", Value::Null, metadata));

    assert_eq!(tag(r#"{"a":1.50,"b":"é"}"#), tag(r#"{ "b":"\u00e9", "a":1.50 }"#));
    assert_ne!(tag(r#"{"a":1.50,"b":"é"}"#), tag(r#"{"a":1.5,"b":"é"}"#));
    assert_ne!(tag(r#"{"a":12345678901234567890123}"#), tag(r#"{"a":12345678901234567890124}"#));
    assert_ne!(tag("\"\""), tag("[]"));
}

#[test]
fn the_same_notice_to_two_accounts_is_two_events() {
    let metadata = r#"{"targetDate":"2026-06-01","amountOwed":10.00,"currency":"USD"}"#;
    let notice = push("INVOICE_NOTIFICATION", Value::Null, metadata);
    let to_another = notice.replace(ACCOUNT, PAYMENT);

    assert_ne!(identity(&notice), identity(&to_another));
}

#[test]
fn an_event_without_data_is_one_within_a_window_and_two_beyond_it() {
    for metadata in [Value::Null, json!("null"), json!(" null ")] {
        let change = push("ACCOUNT_CHANGE", ACCOUNT, metadata);
        let first = identity_at(&change, NOW);

        assert_eq!(identity_at(&change, NOW + 59), first);
        assert_ne!(identity_at(&change, NOW + 60), first);
        assert_ne!(identity_at(&change, NOW - 1), first);
    }
    let tagged = push("TAG_CREATION", ACCOUNT, r#"{"name":"AUTO_PAY_OFF"}"#);
    assert_eq!(identity_at(&tagged, NOW), identity_at(&tagged, NOW + 6_000));
}

#[test]
fn a_window_below_a_second_is_a_second() {
    let change = push("ACCOUNT_CHANGE", ACCOUNT, Value::Null);
    let at = |second: u64| Event::read("main", change.as_bytes(), second, Duration::ZERO).identity;

    assert_eq!(at(NOW), at(NOW));
    assert_ne!(at(NOW), at(NOW + 1));
}

#[test]
fn every_member_tells_two_other_events_apart() {
    let metadata = r#"{"name":"AUTO_PAY_OFF"}"#;
    let tagged = push("TAG_CREATION", ACCOUNT, metadata);
    for other in [
        push("TAG_DELETION", ACCOUNT, metadata),
        push("TAG_CREATION", PAYMENT, metadata),
        push("TAG_CREATION", Value::Null, metadata),
        push("TAG_CREATION", ACCOUNT, "{}"),
        push("TAG_CREATION", ACCOUNT, Value::Null),
        tagged.replace(r#""objectType":"PAYMENT""#, r#""objectType":"TAG""#),
        tagged.replace(r#""objectType":"PAYMENT""#, r#""objectType":null"#),
    ] {
        assert_ne!(identity(&other), identity(&tagged), "{other}");
    }
    let elsewhere = Event::read("other", tagged.as_bytes(), NOW, WINDOW).identity.into_string();
    assert_ne!(elsewhere, identity(&tagged));
}

#[test]
fn an_unknown_event_has_the_identity_that_it_would_have_if_it_were_known() {
    let unknown = push("ACCOUNT_MERGED", ACCOUNT, Value::Null);

    assert_eq!(identity_at(&unknown, NOW), identity_at(&unknown, NOW + 59));
    assert_ne!(identity_at(&unknown, NOW), identity_at(&unknown, NOW + 60));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        received_at in any::<u64>(),
        window_ms in any::<u64>(),
    ) {
        let event = Event::read("main", &body, received_at, Duration::from_millis(window_ms));
        let _ = event.meaning();
        prop_assert!(Identity::new(&event.identity.into_string()).is_some());
        let _ = read_fact(&body);
    }

    #[test]
    fn any_metadata_is_read_without_a_panic(text in ".{0,200}", at in 0_usize..300, with in any::<char>()) {
        let _ = meaning(&push("PAYMENT_SUCCESS", PAYMENT, text));
        let mut characters: Vec<char> = METADATA.chars().collect();
        let at = at % characters.len();
        characters[at] = with;
        let _ = meaning(&push("PAYMENT_SUCCESS", PAYMENT, String::from_iter(characters)));
    }

    #[test]
    fn two_times_share_an_identity_where_they_share_a_window(
        early in NOW..NOW + 200, late in NOW..NOW + 200, seconds in 1_u64..100,
    ) {
        let change = push("ACCOUNT_CHANGE", ACCOUNT, Value::Null);
        let [one, other] = [early, late].map(|at| {
            Event::read("main", change.as_bytes(), at, Duration::from_secs(seconds)).identity
        });
        prop_assert_eq!(one == other, early / seconds == late / seconds);
    }

    #[test]
    fn characters_that_move_between_members_make_another_event(
        text in "[a-z:.]{1,12}", one in 0_usize..13, other in 0_usize..13,
    ) {
        let cut = |at: usize| text.split_at(at.min(text.len()));
        let between_ids = |at: usize| {
            let (object_type, object_id) = cut(at);
            identity(&json!({ "objectType": object_type, "objectId": object_id }).to_string())
        };
        let from_the_tenant = |at: usize| {
            let (tenant, event_type) = cut(at);
            let body = json!({ "eventType": event_type }).to_string();
            Event::read(tenant, body.as_bytes(), NOW, WINDOW).identity
        };
        prop_assert_eq!(between_ids(one) == between_ids(other), cut(one) == cut(other));
        prop_assert_eq!(from_the_tenant(one) == from_the_tenant(other), cut(one) == cut(other));
    }
}
