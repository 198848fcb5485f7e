//! The senders' events and proofs.

use std::time::Duration;

use contract::killbill::TransactionStatus;
use contract::snaptrade::{AccountState, EventType};
use secrecy::SecretString;
use serde_json::{Value, json};
use strum::VariantArray;
use testkit::sandbox::snaptrade::webhook::{event, signature};
use uuid::Uuid;
use webhook::canonical::{Charset, MAX_DEPTH, canonical, depth};
use webhook::killbill::{Admission, is_tenant, read_fact};
use webhook::snaptrade::{Meaning, Verifier};
use webhook::standard::{Rejection, Sources, TOLERANCE_SECONDS};
use webhook::{Identity, Reason, killbill, snaptrade, standard};

use crate::harness::{Cases, twice};

const KEY: &str = "consumer-key-of-the-fuzz";
const SECRET: &str = "webhook-secret-of-the-fuzz";
/// 24 bytes of `s`, and the same as a secret is written.
const RAW_SECRET: &str = "ssssssssssssssssssssssss";
const SOURCE_SECRET: &str = "whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz";
const NOW: i64 = 1_790_000_000;

/// An event of every type, with the secret that older applications put into it.
pub(crate) fn snaptrade_events() -> Vec<String> {
    let body = |event_type: &EventType| {
        let mut body =
            event(&format!("w-{event_type}"), &event_type.to_string(), "user-é", Uuid::from_u128(7));
        body["webhookSecret"] = json!(SECRET);
        body["amount"] = json!(1.5);
        body.to_string()
    };
    EventType::VARIANTS.iter().map(body).collect()
}

/// A push about a payment in each status, and one of every other kind.
pub(crate) fn killbill_events() -> Vec<String> {
    let push = |event_type: String, metadata: Option<String>| {
        json!({
            "eventType": event_type, "accountId": Uuid::from_u128(1), "objectType": "PAYMENT",
            "objectId": Uuid::from_u128(2), "metaData": metadata,
        })
        .to_string()
    };
    let fact = |status: &TransactionStatus| {
        let metadata = json!({
            "paymentTransactionId": Uuid::from_u128(3), "transactionType": "PURCHASE", "status": status,
            "amount": 10.50, "currency": "KRW", "effectiveDate": "2026-05-01T00:00:00.000Z",
        });
        push("PAYMENT_SUCCESS".to_owned(), Some(metadata.to_string()))
    };
    let others = contract::killbill::EventType::VARIANTS.iter().map(|kind| push(kind.to_string(), None));
    TransactionStatus::VARIANTS.iter().map(fact).chain(others).collect()
}

fn parsed(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

fn assert_storable(identity: Option<Identity>, event_type: Option<&str>) {
    let words = [identity.map(Identity::into_string), event_type.map(str::to_owned)];
    for word in words.into_iter().flatten() {
        assert!(!word.is_empty() && word.len() <= Identity::MAX_LEN, "{word:?}");
        assert!(!word.contains(char::is_control), "{word:?}");
    }
}

/// What is said to be clean holds no character that jsonb refuses.
fn assert_clean(is_clean: bool, body: &[u8]) {
    fn holds_nul(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(elements) => elements.iter().any(holds_nul),
            Value::Object(members) => {
                members.iter().any(|(name, value)| name.contains('\0') || holds_nul(value))
            }
            _ => false,
        }
    }
    let value = parsed(body);
    assert!(!is_clean || value.is_some_and(|value| value.is_object() && !holds_nul(&value)));
}

#[test]
fn a_snaptrade_event_is_read_whatever_it_holds() {
    Cases::new("snaptrade events", snaptrade_events()).check(|case| {
        let read = twice(|| snaptrade::Event::read(&case.input));
        assert_storable(read.identity.clone(), read.event_type.as_deref());
        assert_clean(read.is_clean_json, &case.input);
        for state in [None, Some(AccountState::Open), Some(AccountState::Paused), Some(AccountState::Closed)]
        {
            let meaning = twice(|| read.meaning(state));
            let starts_nothing = matches!(meaning, Meaning::Quarantine(_));
            assert!(read.identity.is_some() || starts_nothing, "{meaning:?} without an identity");
            let is_sync = matches!(meaning, Meaning::Sync(_));
            assert!(!is_sync || state == Some(AccountState::Open), "{meaning:?} for {state:?}");
        }
    });
}

#[test]
fn a_snaptrade_signature_holds_for_one_content_only() {
    let events = snaptrade_events();
    let verifier = Verifier::new(SecretString::from(KEY), SecretString::from(SECRET));
    Cases::new("snaptrade signatures", events.clone()).check(|case| {
        let original = events[case.example].as_bytes();
        let of_original = signature(KEY, original);
        if verifier.verify(Some(of_original.as_bytes()), &case.input).is_ok() {
            let meaning = snaptrade::Event::read(&case.input).meaning(Some(AccountState::Open));
            let starts_nothing = meaning == Meaning::Quarantine(Reason::NotJson);
            let says_the_same = parsed(&case.input) == parsed(original);
            assert!(says_the_same || starts_nothing, "another body with the same signature: {meaning:?}");
        }
        let own = signature(KEY, &case.input);
        assert_eq!(verifier.verify(Some(own.as_bytes()), &case.input).is_ok(), !case.input.is_empty());
        let mut other = own.clone().into_bytes();
        let place = case.dice.place(other.len());
        other[place] ^= 1 << case.dice.below(8);
        assert!(verifier.verify(Some(&other), &case.input).is_err(), "another signature of the same body");
        if verifier.verify(None, &case.input).is_ok() {
            assert_eq!(parsed(&case.input).unwrap()["webhookSecret"], SECRET);
        }
        let _ = verifier.verify(Some(&case.input), original);
    });
}

#[test]
fn a_canonical_form_says_the_same_and_is_its_own() {
    let all = snaptrade_events().into_iter().chain(killbill_events());
    Cases::new("canonical JSON", all).check(|case| {
        let Ok(text) = std::str::from_utf8(&case.input) else { return };
        for charset in [Charset::Ascii, Charset::Utf8] {
            let Some(form) = twice(|| canonical(text, charset)) else { continue };
            assert!(depth(text) <= MAX_DEPTH);
            assert!(charset == Charset::Utf8 || form.is_ascii(), "{form}");
            // Of a key that stands twice only the last value is looked at.
            let value = parsed(text.as_bytes());
            assert!(value.is_none() || parsed(form.as_bytes()) == value, "{form}");
            assert_eq!(canonical(&form, charset).as_ref(), Some(&form));
        }
    });
}

#[test]
fn a_killbill_push_is_read_whatever_it_holds() {
    let admission = Admission::new(SecretString::from(SECRET));
    Cases::new("killbill pushes", killbill_events()).check(|case| {
        let (at, window) =
            (case.dice.bits(), Duration::from_secs(u64::from(case.dice.below(3).unsigned_abs())));
        let read = twice(|| killbill::Event::read("main", &case.input, at, window));
        assert_storable(Some(read.identity.clone()), read.event_type.as_deref());
        assert_clean(read.is_clean_json, &case.input);
        let fact = read_fact(&case.input);
        match twice(|| read.meaning()) {
            killbill::Meaning::TakeFactIn { payment_id } => {
                assert_eq!(fact.as_ref().map(|fact| fact.payment_id), Ok(payment_id));
                assert_eq!(fact.ok(), read.fact);
            }
            killbill::Meaning::Record => assert_eq!(fact, Err(Reason::UnknownEvent)),
            killbill::Meaning::Quarantine(reason) => assert_eq!(fact, Err(reason)),
        }
        let other = killbill::Event::read("other", &case.input, at, window);
        let by_content = !read.identity.clone().into_string().starts_with("sha256:");
        assert!(!by_content || other.identity != read.identity, "one identity for two tenants");
        assert_eq!(admission.verify(Some(&case.input)).is_ok(), case.input == SECRET.as_bytes());
        let name = case.text();
        assert!(!is_tenant(&name) || (name.is_ascii() && !name.contains('/')), "{name}");
    });
}

#[test]
fn a_standard_signature_holds_for_one_content_only() {
    let sources = Sources::of([("shop", SecretString::from(SOURCE_SECRET))]).unwrap();
    let sent = |id: &str, at: i64, body: &str| format!("{id}\n{at}\n{body}");
    let bodies = [r#"{"type":"payment.settled","data":{"id":7}}"#, "{}", r#"{"type":"a.b","data":[1.5e3]}"#];
    let examples: Vec<String> = bodies.iter().map(|body| sent("msg_1", NOW, body)).collect();
    Cases::new("standard webhooks", examples.clone()).check(|case| {
        let damaged = case.text();
        let mut parts = damaged.splitn(3, '\n');
        let [id, at, body] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let content = |text: &str| text.replacen('\n', ".", 2);
        let verify = |signatures: &str| {
            twice(|| sources.verify("shop", Some(id), Some(at), Some(signatures), body.as_bytes(), NOW))
        };
        let of_original =
            format!("v1,{}", signature(RAW_SECRET, content(&examples[case.example]).as_bytes()));
        if verify(&of_original) != Err(Rejection::Unauthenticated) {
            assert_eq!(format!("{id}.{at}.{body}"), content(&examples[case.example]));
        }
        let own = signature(RAW_SECRET, format!("{id}.{at}.{body}").as_bytes());
        let expected = match at.parse::<i64>().map(|at| at.saturating_sub(NOW)) {
            Ok(skew) if skew.unsigned_abs() <= TOLERANCE_SECONDS => Ok(()),
            Ok(seconds) => Err(Rejection::Skewed { seconds }),
            Err(_) => Err(Rejection::Unauthenticated),
        };
        assert_eq!(verify(&format!("v1a,x {own} v1,{own} v1,")), expected);
        assert_eq!(verify(&damaged), Err(Rejection::Unauthenticated));

        let read = twice(|| standard::Event::read(Some(id), body.as_bytes()));
        assert_storable(read.identity.clone(), read.event_type.as_deref());
        assert_clean(read.is_clean_json, body.as_bytes());
        let is_set_aside = read.meaning() != standard::Meaning::Record;
        assert!(read.identity.is_some() || is_set_aside);
        if let Err(sentences) = Sources::of([("shop", SecretString::from(damaged.as_str()))]) {
            assert!(damaged.len() < 8 || !sentences.concat().contains(&damaged), "{sentences:?}");
        }
    });
}
