//! The transactions of an account, newest first, in pages. History never changes: a new revision adds one.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::books::Account;
use super::catalogue::{CONTRACTS, SECURITIES, currency, number, time};
use super::refusal::Refusal;
use crate::Dice;

/// SnapTrade never gives more than that many at once.
const PAGE: u32 = 1000;

/// The first transaction of every account, 2024-01-02T15:00:00Z.
const FIRST: DateTime<Utc> = DateTime::from_timestamp(1_704_207_600, 0).expect("a valid time");

/// From one transaction to the next.
const STEP: TimeDelta = TimeDelta::hours(5);

/// Parameters of a page.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Paging {
    start_date: Option<NaiveDate>,
    end_date: Option<NaiveDate>,
    #[serde(default)]
    offset: u32,
    limit: Option<u32>,
    /// Types, separated by commas.
    r#type: Option<String>,
}

/// What a transaction is; `STORY` says in which order they come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Contribution,
    Buy,
    OptionBuy,
    CoinBuy,
    Dividend,
    Sell,
    Fee,
}

const STORY: [Kind; 7] =
    [Kind::Contribution, Kind::Buy, Kind::OptionBuy, Kind::CoinBuy, Kind::Dividend, Kind::Sell, Kind::Fee];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Contribution => "CONTRIBUTION",
            Self::Buy | Self::OptionBuy | Self::CoinBuy => "BUY",
            Self::Dividend => "DIVIDEND",
            Self::Sell => "SELL",
            Self::Fee => "FEE",
        }
    }
}

/// A transaction that has no body yet.
struct Activity {
    index: u32,
    kind: Kind,
    at: DateTime<Utc>,
}

impl Activity {
    fn new(index: u32) -> Self {
        let at = FIRST + STEP * i32::try_from(index).unwrap_or(i32::MAX);
        Self { index, kind: STORY[index as usize % STORY.len()], at }
    }

    fn is_wanted(&self, paging: &Paging) -> bool {
        let date = self.at.date_naive();
        let types = paging.r#type.as_deref();
        paging.start_date.is_none_or(|start| date >= start)
            && paging.end_date.is_none_or(|end| date <= end)
            && types.is_none_or(|types| types.split(',').any(|name| name.trim() == self.kind.name()))
    }
}

/// `GET /accounts/{id}/activities`.
pub(super) fn page(account: &Account, paging: &Paging) -> Result<Value, Refusal> {
    let limit = match paging.limit {
        Some(0) => return Err(Refusal::Query),
        limit => limit.unwrap_or(PAGE).min(PAGE),
    };
    let wanted = || (0..account.activities()).rev().map(Activity::new).filter(|it| it.is_wanted(paging));
    let on_page = wanted().skip(paging.offset as usize).take(limit as usize);
    Ok(json!({
        "data": on_page.map(|activity| body(account, &activity)).collect::<Vec<_>>(),
        "pagination": { "offset": paging.offset, "limit": limit, "total": wanted().count() },
    }))
}

fn body(account: &Account, activity: &Activity) -> Value {
    let mut dice = account.lasting("activity", activity.index);
    let id = dice.uuid();
    let reference = dice.one_in(2).then(|| dice.uuid());
    let settled = (activity.at + TimeDelta::days(2)).date_naive().and_time(chrono::NaiveTime::MIN);
    let mut body = deal(&mut dice, activity.kind);
    let common = json!({
        "id": id,
        "type": activity.kind.name(),
        "trade_date": time(activity.at),
        "settlement_date": time(settled.and_utc()),
        "institution": "Questrade",
        "external_reference_id": reference.as_ref().map(Uuid::to_string),
    });
    let fields = common.as_object().into_iter().flatten();
    for (name, value) in fields {
        body[name] = value.clone();
    }
    body
}

/// What was traded, for how much.
fn deal(dice: &mut Dice, kind: Kind) -> Value {
    let security = &SECURITIES[usize::from(dice.one_in(2))];
    let (units, cents) = (1 + dice.below(40), 100 + dice.below(40_000));
    let trade = |units: i32, amount: i32| {
        json!({
            "symbol": security.symbol(),
            "currency_universal_symbol": null,
            "option_symbol": null,
            "price": number(cents),
            "units": units,
            "amount": number(amount),
            "currency": currency(security.currency),
            "option_type": "",
            "description": security.name,
            "fee": 0,
            "fx_rate": null,
        })
    };
    let cash = |description: &str, amount: i32| {
        let mut body = trade(0, amount);
        body["symbol"] = Value::Null;
        body["price"] = 0.into();
        body["description"] = description.into();
        body
    };
    match kind {
        Kind::Buy => with(trade(units, -units * cents), "fx_rate", fx_rate(dice)),
        Kind::Sell => with(trade(-units, units * cents), "fee", number(495)),
        Kind::Dividend => trade(0, cents),
        Kind::Contribution => cash("Electronic funds transfer", cents * 10),
        Kind::Fee => cash("", -cents),
        Kind::OptionBuy => option_buy(trade(1, -cents * 100), dice),
        Kind::CoinBuy => coin_buy(trade(units, -units * cents), dice),
    }
}

fn option_buy(mut body: Value, dice: &mut Dice) -> Value {
    let contract = &CONTRACTS[usize::from(dice.one_in(2))];
    body["symbol"] = Value::Null;
    body["option_symbol"] = contract.option_symbol();
    body["option_type"] = "BUY_TO_OPEN".into();
    body["description"] = contract.name.into();
    body["currency"] = currency("USD");
    body
}

/// A coin that was paid with another one: there is no currency, and the amount is not always known.
fn coin_buy(mut body: Value, dice: &mut Dice) -> Value {
    body["symbol"] = SECURITIES[2].symbol();
    body["description"] = SECURITIES[2].name.into();
    body["currency_universal_symbol"] = SECURITIES[7].symbol();
    body["currency"] = Value::Null;
    body["units"] = 0.003_100_42.into();
    if dice.one_in(3) {
        body["amount"] = Value::Null;
    }
    body
}

fn fx_rate(dice: &mut Dice) -> Value {
    if dice.one_in(2) { Value::Null } else { 1.032.into() }
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

#[cfg(test)]
mod tests;
