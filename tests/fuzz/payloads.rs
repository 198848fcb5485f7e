//! What queues and providers hand us: payloads, answers, and the decimals in them.

use std::fmt::Debug;

use contract::Job;
use contract::killbill::PaymentFacts;
use contract::snaptrade::{AccountSync, WorkType};
use providers::snaptrade::{Activities, Balance, Orders, Positions};
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;
use webhook::killbill::read_fact;

use crate::harness::{Cases, twice};

fn read<T: DeserializeOwned + Debug>(bytes: &[u8]) -> Option<T> {
    twice(|| serde_json::from_slice::<T>(bytes).ok())
}

/// A payload that can be read says the same when it is written and read again.
fn read_job<J: Job + Debug + PartialEq>(bytes: &[u8]) {
    if let Some(job) = read::<J>(bytes) {
        let again: J = serde_json::from_value(serde_json::to_value(&job).unwrap()).unwrap();
        assert_eq!(again, job);
    }
}

#[test]
fn payloads_and_answers_are_read_or_refused() {
    let id = Uuid::from_u128(5);
    let instrument = json!({ "kind": "stock", "symbol": "AAPL" });
    let examples = [
        serde_json::to_value(AccountSync { work_type: WorkType::Holdings, account_id: id }).unwrap(),
        serde_json::to_value(PaymentFacts { tenant: "main".to_owned(), payment_id: id }).unwrap(),
        json!({
            "results": [{ "instrument": instrument, "units": "1.5", "price": 10.25, "cost_basis": null }],
            "data_freshness": { "as_of": "2026-05-01T00:00:00Z" },
        }),
        json!({ "currency": { "code": "USD" }, "cash": -3.5, "buying_power": "1e3" }),
        json!({
            "data": [{ "id": "a-1", "type": "BUY", "trade_date": "2026-05-01T00:00:00Z", "units": 2, "fee": 0.1 }],
            "pagination": { "offset": 0, "total": 1 },
        }),
        json!({ "orders": [{ "brokerage_order_id": "o-1", "status": "EXECUTED", "time_placed": null, "x": [] }] }),
    ];
    Cases::new("payloads", examples.iter().map(ToString::to_string)).check(|case| {
        read_job::<AccountSync>(&case.input);
        read_job::<PaymentFacts>(&case.input);
        read::<Positions>(&case.input);
        read::<Vec<Balance>>(&case.input);
        read::<Activities>(&case.input);
        read::<Orders>(&case.input);
    });
}

/// Sign, digits and exponent of a number, without zeros that say nothing; nothing where it is no number.
fn exact(number: &str) -> Option<(bool, String, i64)> {
    let (rest, is_negative) = match number.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (number.strip_prefix('+').unwrap_or(number), false),
    };
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let trimmed = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - trimmed.len()).ok()?;
    let significant = trimmed.trim_start_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let exponent = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)? + zeros;
    Some((is_negative, significant.to_owned(), exponent))
}

#[test]
fn a_decimal_is_what_is_written_or_nothing() {
    let examples = [
        "0.1",
        "-12345678901234567890.12345678",
        "1.5e4",
        "79228162514264337593543950335",
        "1E-28",
        "0.0000000000000000000000000001",
        "100",
        "0",
    ];
    Cases::new("decimals", examples).check(|case| {
        let number = case.text();
        for json in [format!(r#"{{"currency":{{"code":"USD"}},"cash":{number}}}"#), json!({ "currency": { "code": "USD" }, "cash": number }).to_string()] {
            if let Some(cash) = read::<Balance>(json.as_bytes()).and_then(|balance| balance.cash) {
                assert_eq!(exact(&cash.to_string()), exact(number.trim().trim_matches('"')), "{cash} of {number}");
            }
        }
        let metadata = format!(
            r#"{{"paymentTransactionId":"{id}","transactionType":"REFUND","status":"SUCCESS","amount":{number}}}"#,
            id = Uuid::nil()
        );
        let push = json!({ "eventType": "PAYMENT_SUCCESS", "objectId": Uuid::nil(), "metaData": metadata });
        if let Some(amount) = read_fact(push.to_string().as_bytes()).ok().and_then(|fact| fact.amount) {
            assert_eq!(exact(&amount.to_string()), exact(number.trim().trim_matches('"')), "{amount} of {number}");
        }
    });
}
