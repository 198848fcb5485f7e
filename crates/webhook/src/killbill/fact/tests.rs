use contract::killbill::TransactionStatus;
use proptest::prelude::*;

use super::*;

const PAYMENT: &str = "2f9f2a0c-5f63-4a1e-8a0d-0d7a3c6a9d42";
const TRANSACTION: &str = "c6a1e1f0-7f0d-4f57-8a4e-3b5f0b0f9c01";

/// The contract's example, byte for byte.
const AS_SENT: &[u8] = br#"{"eventType":"PAYMENT_SUCCESS",
 "accountId":"7b0f1d0e-3a55-4f6c-9a0b-6f6f6f0b1a11",
 "objectType":"PAYMENT",
 "objectId":"2f9f2a0c-5f63-4a1e-8a0d-0d7a3c6a9d42",
 "metaData":"{\"paymentTransactionId\":\"c6a1e1f0-7f0d-4f57-8a4e-3b5f0b0f9c01\",\"amount\":15000,\"currency\":\"KRW\",\"status\":\"PENDING\",\"transactionType\":\"PURCHASE\",\"effectiveDate\":\"2026-05-01T03:04:05.000Z\"}"}"#;

/// A push about the payment with this metadata.
fn push(event_type: &str, metadata: &str) -> Vec<u8> {
    let push = serde_json::json!({
        "eventType": event_type,
        "accountId": "7b0f1d0e-3a55-4f6c-9a0b-6f6f6f0b1a11",
        "objectType": "PAYMENT",
        "objectId": PAYMENT,
        "metaData": metadata,
    });
    push.to_string().into_bytes()
}

/// The metadata of a purchase with one member written as given.
fn metadata(name: &str, value: &str) -> String {
    let members = [
        ("paymentTransactionId", format!("\"{TRANSACTION}\"")),
        ("amount", "15000".to_owned()),
        ("currency", "\"KRW\"".to_owned()),
        ("status", "\"SUCCESS\"".to_owned()),
        ("transactionType", "\"PURCHASE\"".to_owned()),
        ("effectiveDate", "\"2026-05-01T03:04:05.000Z\"".to_owned()),
    ];
    let members = members.map(|(own, as_sent)| {
        let value = if own == name { value } else { &as_sent };
        format!("\"{own}\":{value}")
    });
    format!("{{{}}}", members.join(","))
}

fn fact(name: &str, value: &str) -> Result<Fact, Reason> {
    read_fact(&push("PAYMENT_SUCCESS", &metadata(name, value)))
}

fn amount(number: &str) -> Result<Option<String>, Reason> {
    fact("amount", number).map(|fact| fact.amount.map(|amount| amount.to_string()))
}

#[test]
fn the_documented_push_is_a_pending_purchase() {
    let expected = Fact {
        payment_id: PAYMENT.parse().expect("a UUID"),
        transaction_id: TRANSACTION.parse().expect("a UUID"),
        transaction_type: TransactionType::Purchase,
        status: TransactionStatus::Pending,
        amount: Some(Decimal::from(15_000)),
        currency: Some("KRW".to_owned()),
        effective_at: DateTime::from_timestamp(1_777_604_645, 0),
    };

    assert_eq!(read_fact(AS_SENT), Ok(expected));
}

#[test]
fn the_status_decides_and_not_the_events_name() {
    for (event_type, status, meant) in [
        ("PAYMENT_SUCCESS", "SUCCESS", TransactionStatus::Success),
        ("PAYMENT_SUCCESS", "PENDING", TransactionStatus::Pending),
        ("PAYMENT_FAILED", "PAYMENT_FAILURE", TransactionStatus::PaymentFailure),
        ("PAYMENT_FAILED", "PLUGIN_FAILURE", TransactionStatus::PluginFailure),
        ("PAYMENT_FAILED", "UNKNOWN", TransactionStatus::Unknown),
        ("PAYMENT_FAILED", "PAYMENT_SYSTEM_OFF", TransactionStatus::PaymentSystemOff),
    ] {
        let body = push(event_type, &metadata("status", &format!("\"{status}\"")));
        assert_eq!(read_fact(&body).map(|fact| fact.status), Ok(meant), "{event_type} {status}");
    }
}

#[test]
fn an_amount_keeps_every_digit_however_it_is_written() {
    for (written, read) in [
        ("15000", "15000"),
        ("10.50", "10.50"),
        ("0.1", "0.1"),
        ("0", "0"),
        ("-3.00", "-3.00"),
        ("1.5E+4", "15000"),
        ("1.5e4", "15000"),
        ("1.50E1", "15.0"),
        ("15E-3", "0.015"),
        ("1E0", "1"),
        ("0.1000000000000000055", "0.1000000000000000055"),
        ("12345678901234567890123.45", "12345678901234567890123.45"),
        ("1.2345678901234567890123456789E+28", "12345678901234567890123456789"),
    ] {
        assert_eq!(amount(written), Ok(Some(read.to_owned())), "{written}");
    }
    assert_eq!(amount("null"), Ok(None));
}

#[test]
fn an_amount_that_would_be_rounded_or_is_no_number_is_refused() {
    for written in [
        "1e400",
        "1E+29",
        "1E-29",
        "1e99999999999999999999",
        "99999999999999999999999999999999",
        "0.00000000000000000000000000001",
        "1.00000000000000000000000000000000001",
        "1.00000000000000000000000000000000001E0",
        "\"15000\"",
        "\"\"",
        "true",
        "[]",
        "{}",
    ] {
        assert_eq!(amount(written), Err(Reason::MetadataInvalid), "{written}");
    }
}

#[test]
fn an_optional_member_may_be_null_or_absent_but_not_wrong() {
    let bare =
        format!(r#"{{"paymentTransactionId":"{TRANSACTION}","status":"UNKNOWN","transactionType":"VOID"}}"#);
    let fact_without = read_fact(&push("PAYMENT_FAILED", &bare)).expect("a fact");
    assert_eq!((fact_without.amount, fact_without.currency, fact_without.effective_at), (None, None, None));

    assert_eq!(fact("currency", "null").map(|fact| fact.currency), Ok(None));
    assert_eq!(fact("effectiveDate", "null").map(|fact| fact.effective_at), Ok(None));
    for (name, value) in [
        ("currency", r#""""#),
        ("currency", r#""KRWW""#),
        ("currency", r#""krw""#),
        ("currency", r#""K\u0000W""#),
        ("currency", r#""₩""#),
        ("currency", "410"),
        ("effectiveDate", r#""""#),
        ("effectiveDate", r#""2026-05-01""#),
        ("effectiveDate", r#""2026-13-01T00:00:00Z""#),
        ("effectiveDate", r#""+99999-01-01T00:00:00Z""#),
        ("effectiveDate", "1777604645000"),
    ] {
        assert_eq!(fact(name, value), Err(Reason::MetadataInvalid), "{name} {value}");
    }
}

#[test]
fn a_time_with_an_offset_is_the_same_moment() {
    let utc = fact("effectiveDate", r#""2026-05-01T03:04:05.000Z""#);

    assert!(utc.is_ok());
    assert_eq!(fact("effectiveDate", r#""2026-05-01T12:04:05.000+09:00""#), utc);
}

#[test]
fn a_required_member_that_is_missing_or_wrong_makes_the_metadata_invalid() {
    for (name, values) in [
        ("paymentTransactionId", &["null", "\"\"", "\"c6a1e1f0\"", "12345678901234567890123", "{}"][..]),
        ("transactionType", &["null", "\"\"", "\"purchase\"", "\"GIFT\"", "7"]),
        ("status", &["null", "7", "[\"SUCCESS\"]"]),
    ] {
        for value in values {
            assert_eq!(fact(name, value), Err(Reason::MetadataInvalid), "{name} {value}");
        }
    }
    for status in ["", "success", "SUCCEEDED", "INIT", "SUCCESS ", "SUC\\u0000CESS"] {
        assert_eq!(fact("status", &format!("\"{status}\"")), Err(Reason::UnknownStatus), "{status}");
    }
}

#[test]
fn an_event_about_something_else_holds_no_fact() {
    assert_eq!(read_fact(&push("INVOICE_PAYMENT_SUCCESS", "{}")), Err(Reason::UnknownEvent));
    assert_eq!(read_fact(b"{"), Err(Reason::NotJson));
}

proptest! {
    #[test]
    fn an_exponent_moves_the_point_and_nothing_else(digits in any::<i64>(), exponent in -9_i32..=9, upper in any::<bool>()) {
        let number = format!("{digits}{}{exponent:+}", if upper { 'E' } else { 'e' });
        let places = exponent.unsigned_abs();
        let expected = match exponent {
            ..0 => Decimal::from_i128_with_scale(digits.into(), places),
            0.. => Decimal::from_i128_with_scale(i128::from(digits) * 10_i128.pow(places), 0),
        };
        prop_assert_eq!(decimal(&number), Some(expected));
    }
}
