//! The parts of SnapTrade's answers that we keep. Fields we don't know are left alone, and every field that
//! their schema allows to be null may be null here.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decimal;

/// All positions of an account.
#[derive(Clone, Debug, Deserialize)]
pub struct Positions {
    /// In the provider's order.
    pub results: Vec<Position>,
    /// How old they are.
    pub data_freshness: Freshness,
}

/// How old an answer's data are.
#[derive(Clone, Debug, Deserialize)]
pub struct Freshness {
    /// When they were fetched from the broker.
    pub as_of: DateTime<Utc>,
}

/// One position.
#[derive(Clone, Debug, Deserialize)]
pub struct Position {
    /// What is held; its `kind` says which of their ten shapes it has.
    pub instrument: Value,
    /// How much; negative for a short position.
    #[serde(default, deserialize_with = "decimal::optional")]
    pub units: Option<Decimal>,
    /// Last known price of one.
    #[serde(default, deserialize_with = "decimal::optional")]
    pub price: Option<Decimal>,
    /// What one had cost.
    #[serde(default, deserialize_with = "decimal::optional")]
    pub cost_basis: Option<Decimal>,
    /// Currency of the two prices.
    #[serde(default)]
    pub currency: Option<String>,
}

/// The money in one currency.
#[derive(Clone, Debug, Deserialize)]
pub struct Balance {
    /// Which currency.
    pub currency: Currency,
    /// Available cash; negative where it is borrowed.
    #[serde(default, deserialize_with = "decimal::optional")]
    pub cash: Option<Decimal>,
    /// What may be spent, with credit.
    #[serde(default, deserialize_with = "decimal::optional")]
    pub buying_power: Option<Decimal>,
}

/// A currency.
#[derive(Clone, Debug, Deserialize)]
pub struct Currency {
    /// ISO 4217.
    pub code: String,
}

/// One page of an account's activities.
#[derive(Clone, Debug, Deserialize)]
pub struct Activities {
    /// Newest first.
    pub data: Vec<Activity>,
    /// Where the page lies.
    pub pagination: Pagination,
}

/// Where a page lies among all.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Pagination {
    /// How many come before it.
    pub offset: u64,
    /// How many there are.
    pub total: u64,
}

/// One activity; everything that we don't read is kept in `details`.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the provider's words")]
pub struct Activity {
    pub id: String,
    pub kind: Option<String>,
    pub trade_date: Option<DateTime<Utc>>,
    pub units: Option<Decimal>,
    pub price: Option<Decimal>,
    pub amount: Option<Decimal>,
    pub fee: Option<Decimal>,
    pub currency: Option<String>,
    pub details: Value,
}

/// What is read of an activity. Numbers stay text until they are decimals.
#[derive(Deserialize)]
struct Known {
    id: String,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    trade_date: Option<DateTime<Utc>>,
    #[serde(default, deserialize_with = "decimal::optional")]
    units: Option<Decimal>,
    #[serde(default, deserialize_with = "decimal::optional")]
    price: Option<Decimal>,
    #[serde(default, deserialize_with = "decimal::optional")]
    amount: Option<Decimal>,
    #[serde(default, deserialize_with = "decimal::optional")]
    fee: Option<Decimal>,
    #[serde(default)]
    currency: Option<Currency>,
}

impl<'de> Deserialize<'de> for Activity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: Box<RawValue> = Box::deserialize(deserializer)?;
        let known: Known = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self {
            id: known.id,
            kind: known.r#type,
            trade_date: known.trade_date,
            units: known.units,
            price: known.price,
            amount: known.amount,
            fee: known.fee,
            currency: known.currency.map(|currency| currency.code),
            details: serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
        })
    }
}

/// Recent orders.
#[derive(Clone, Debug, Deserialize)]
pub struct Orders {
    /// Newest first, as far as is known.
    pub orders: Vec<Order>,
}

/// One order; everything that we don't read is kept in `details`.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    /// The broker's id.
    pub brokerage_order_id: String,
    /// The provider's word for its state.
    #[serde(default)]
    pub status: Option<String>,
    /// When it was placed.
    #[serde(default)]
    pub time_placed: Option<DateTime<Utc>>,
    /// The rest.
    #[serde(flatten)]
    pub details: serde_json::Map<String, Value>,
}
