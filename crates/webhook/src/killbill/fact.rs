//! What a push says about one transaction of a payment.

use chrono::DateTime;
use contract::killbill::{Fact, TransactionType};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::push::Push;
use crate::Reason;
use crate::object::Object;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    payment_transaction_id: Uuid,
    transaction_type: TransactionType,
    status: String,
    #[serde(borrow)]
    amount: Option<&'a RawValue>,
    currency: Option<String>,
    effective_date: Option<String>,
}

/// Reads the body of an event about a payment. One about anything else is `unknown_event` here.
pub fn read_fact(body: &[u8]) -> Result<Fact, Reason> {
    let object = Object::read(body).ok_or(Reason::NotJson)?;
    Push::of(&object)?.fact()?.ok_or(Reason::UnknownEvent)
}

pub(super) fn of(object_id: Option<&str>, metadata: Option<&str>) -> Result<Fact, Reason> {
    let payment_id = object_id.and_then(|id| id.parse().ok()).ok_or(Reason::ObjectMissing)?;
    let metadata: Metadata<'_> =
        metadata.and_then(|text| serde_json::from_str(text).ok()).ok_or(Reason::MetadataInvalid)?;
    Ok(Fact {
        payment_id,
        transaction_id: metadata.payment_transaction_id,
        transaction_type: metadata.transaction_type,
        status: metadata.status.parse().map_err(|_| Reason::UnknownStatus)?,
        amount: valid(metadata.amount, |number| decimal(number.get()))?,
        currency: valid(metadata.currency, |code| is_currency(&code).then_some(code))?,
        effective_at: valid(metadata.effective_date, |text| {
            DateTime::parse_from_rfc3339(&text).ok().map(|time| time.to_utc())
        })?,
    })
}

/// No value is none; a wrong one is never read as none.
fn valid<T, U>(value: Option<T>, read: impl FnOnce(T) -> Option<U>) -> Result<Option<U>, Reason> {
    value.map(|value| read(value).ok_or(Reason::MetadataInvalid)).transpose()
}

/// The decimal that a JSON number writes, never rounded.
fn decimal(number: &str) -> Option<Decimal> {
    match number.split_once(['e', 'E']) {
        None => Decimal::from_str_exact(number).ok(),
        // `from_scientific` alone would round digits that don't fit.
        Some((digits, _)) => {
            Decimal::from_str_exact(digits).ok()?;
            Decimal::from_scientific(number).ok()
        }
    }
}

fn is_currency(code: &str) -> bool {
    code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests;
