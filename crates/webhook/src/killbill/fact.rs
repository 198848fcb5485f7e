//! What a push says about one transaction of a payment.

use chrono::{DateTime, Utc};
use contract::killbill::{TransactionStatus, TransactionType};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::push::Push;
use crate::Reason;
use crate::object::Object;

/// One transaction of a payment and the status that it has reached. The event's name is left out on purpose:
/// success is also sent for a pending transaction, failure for one whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Kill Bill's id of the payment.
    pub payment_id: Uuid,
    /// Kill Bill's id of the transaction.
    pub transaction_id: Uuid,
    /// What the transaction does.
    pub transaction_type: TransactionType,
    /// What became of it.
    pub status: TransactionStatus,
    /// The amount, digit for digit.
    pub amount: Option<Decimal>,
    /// The currency's code: three capital letters.
    pub currency: Option<String>,
    /// Since when the status holds, as the sender says.
    pub effective_at: Option<DateTime<Utc>>,
}

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

impl Fact {
    /// Reads the body of an event about a payment. One about anything else is `unknown_event` here.
    pub fn read(body: &[u8]) -> Result<Self, Reason> {
        let object = Object::read(body).ok_or(Reason::NotJson)?;
        Push::of(&object)?.fact()?.ok_or(Reason::UnknownEvent)
    }

    pub(super) fn of(object_id: Option<&str>, metadata: Option<&str>) -> Result<Self, Reason> {
        let payment_id = object_id.and_then(|id| id.parse().ok()).ok_or(Reason::ObjectMissing)?;
        let metadata: Metadata<'_> =
            metadata.and_then(|text| serde_json::from_str(text).ok()).ok_or(Reason::MetadataInvalid)?;
        Ok(Self {
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
