//! The orders of an account in the V2 format. They are the same in each revision, but for one that is open at
//! first and executed from the second revision on.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::books::Account;
use super::catalogue::{CONTRACTS, SECURITIES, decimal, time};
use crate::Dice;

/// Parameters of the list.
#[derive(Deserialize)]
pub(super) struct Listed {
    #[serde(default)]
    state: State,
    days: Option<u16>,
}

/// Parameters of the recent orders.
#[derive(Deserialize)]
pub(super) struct Recent {
    only_executed: Option<bool>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    All,
    Open,
    Executed,
}

/// An order before it has a body.
#[derive(Clone, Copy)]
struct Plan {
    what: What,
    order_type: &'static str,
    /// Status of the order, then of its legs: their names differ.
    status: (&'static str, &'static str),
    placed_hours: i32,
    executed_hours: Option<i32>,
}

#[derive(Clone, Copy)]
enum What {
    Shares,
    Spread,
    Coins,
}

/// The order for coins is older than the default of 30 days.
#[rustfmt::skip]
const PLANS: [Plan; 6] = [
    Plan { what: What::Shares, order_type: "MARKET", status: ("EXECUTED", "EXECUTED"),
        placed_hours: 20, executed_hours: Some(19) },
    Plan { what: What::Shares, order_type: "LIMIT", status: ("ACCEPTED", "PENDING"),
        placed_hours: 30, executed_hours: None },
    Plan { what: What::Spread, order_type: "LIMIT", status: ("EXECUTED", "EXECUTED"),
        placed_hours: 200, executed_hours: Some(199) },
    Plan { what: What::Coins, order_type: "MARKET", status: ("EXECUTED", "EXECUTED"),
        placed_hours: 960, executed_hours: Some(960) },
    Plan { what: What::Shares, order_type: "STOP_LIMIT", status: ("CANCELED", "CANCELED"),
        placed_hours: 100, executed_hours: None },
    Plan { what: What::Shares, order_type: "STOP", status: ("PARTIAL", "PARTIALLY_EXECUTED"),
        placed_hours: 6, executed_hours: Some(5) },
];

struct Order {
    plan: Plan,
    placed: DateTime<Utc>,
    executed: Option<DateTime<Utc>>,
    body: Value,
}

/// `GET /accounts/{id}/orders/v2`.
pub(super) fn listed(account: &Account, query: &Listed) -> Value {
    let days = i64::from(query.days.unwrap_or(30).min(90));
    let since = account.as_of() - TimeDelta::days(days);
    let wanted = |order: &Order| match query.state {
        State::All => true,
        State::Open => matches!(order.plan.status.0, "ACCEPTED" | "PARTIAL"),
        State::Executed => order.executed.is_some(),
    };
    bodies(account, |order| order.placed >= since && wanted(order))
}

/// `GET /accounts/{id}/recentOrders/v2`.
pub(super) fn recent(account: &Account, query: &Recent) -> Value {
    let since = account.as_of() - TimeDelta::hours(24);
    let all = query.only_executed == Some(false);
    bodies(account, |order| match order.executed {
        Some(executed) => executed >= since,
        None => all && order.placed >= since,
    })
}

fn bodies(account: &Account, wanted: impl Fn(&Order) -> bool) -> Value {
    let count = 3 + account.lasting("orders", 0).below(4);
    let orders = (0..count).zip(PLANS).map(|(index, plan)| order(account, index, plan));
    json!({ "orders": orders.filter(wanted).map(|order| order.body).collect::<Vec<_>>() })
}

fn order(account: &Account, index: i32, mut plan: Plan) -> Order {
    let mut executed = plan.executed_hours.map(Account::hours_back);
    if plan.status.0 == "ACCEPTED" && account.revision > 1 {
        plan.status = ("EXECUTED", "EXECUTED");
        executed = Some(Account::hours_back(0));
    }
    let placed = Account::hours_back(plan.placed_hours);
    let mut dice = account.lasting("order", index.unsigned_abs());
    let price = decimal(i64::from(1000 + dice.below(20_000)), 2);
    let limited = plan.order_type.contains("LIMIT").then_some(&price);
    let stopped = plan.order_type.contains("STOP").then_some(&price);
    let execution_price = executed.map(|_| &price);
    let body = json!({
        "brokerage_order_id": dice.uuid(),
        "brokerage_group_order_id": null,
        "order_role": null,
        "status": plan.status.0,
        "order_type": plan.order_type,
        "time_in_force": if limited.is_some() { "GTC" } else { "DAY" },
        "time_placed": time(placed),
        "time_executed": executed.map(time),
        "price_currency": "USD",
        "price_effect": if matches!(plan.what, What::Spread) { "CREDIT" } else { "DEBIT" },
        "execution_price": execution_price,
        "limit_price": limited,
        "stop_price": stopped,
        "trailing_stop": null,
        "legs": legs(&mut dice, plan, execution_price),
    });
    Order { plan, placed, executed, body }
}

fn legs(dice: &mut Dice, plan: Plan, price: Option<&String>) -> Vec<Value> {
    let status = plan.status.1;
    match plan.what {
        What::Shares => vec![leg("BUY", &shares(), &(1 + dice.below(40)).to_string(), status, price)],
        What::Coins => {
            let coins = decimal(i64::from(1 + dice.below(50_000)), 8);
            vec![leg("BUY", &coin(), &coins, status, price)]
        }
        What::Spread => {
            let actions = ["SELL_TO_OPEN", "BUY_TO_OPEN"].into_iter().enumerate();
            actions.map(|(index, action)| leg(action, &option(index), "2", status, None)).collect()
        }
    }
}

fn leg(action: &str, instrument: &Value, quantity: &str, status: &str, price: Option<&String>) -> Value {
    let filled = match status {
        "EXECUTED" => quantity,
        "PARTIALLY_EXECUTED" => "0.5",
        _ => "0",
    };
    json!({
        "leg_id": null,
        "instrument": instrument,
        "action": action,
        "execution_price": price,
        "total_quantity": quantity,
        "canceled_quantity": if status == "CANCELED" { quantity } else { "0" },
        "filled_quantity": filled,
        "status": status,
    })
}

fn shares() -> Value {
    let security = &SECURITIES[0];
    json!({
        "symbol": security.symbol,
        "description": security.name,
        "asset_type": "EQUITY",
        "exchange_mic_code": security.exchange,
        "figi_code": security.figi,
    })
}

/// Coins and index options have no `exchange_mic_code`, not even a null.
fn coin() -> Value {
    let security = &SECURITIES[2];
    json!({
        "symbol": security.symbol,
        "description": security.name,
        "asset_type": "CRYPTO",
        "figi_code": null,
    })
}

fn option(index: usize) -> Value {
    let contract = &CONTRACTS[index];
    json!({
        "symbol": contract.ticker,
        "description": contract.name,
        "asset_type": "OPTION",
        "exchange_mic_code": SECURITIES[0].exchange,
        "figi_code": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(body: &Value) -> usize {
        body["orders"].as_array().expect("a list").len()
    }

    fn list(account: &Account, state: State, days: Option<u16>) -> Value {
        listed(account, &Listed { state, days })
    }

    /// An account that has all six orders.
    fn busy(revision: u32) -> Account {
        let has_all = |account: &Account| count(&list(account, State::All, Some(90))) == PLANS.len();
        let mut accounts = (0..100).map(|id| Account::sample(id, revision));
        accounts.find(has_all).expect("one account in four has six orders")
    }

    #[test]
    fn days_and_state_narrow_the_list() {
        let account = busy(1);

        assert_eq!(count(&list(&account, State::All, None)), 5);
        assert_eq!(count(&list(&account, State::All, Some(365))), 6);
        assert_eq!(count(&list(&account, State::All, Some(1))), 2);
        assert_eq!(count(&list(&account, State::Open, None)), 2);
        assert_eq!(count(&list(&account, State::Executed, None)), 3);
    }

    #[test]
    fn an_open_order_is_executed_in_the_next_revision_and_then_recent() {
        let query = Recent { only_executed: None };

        assert_eq!(count(&list(&busy(2), State::Open, None)), 1);
        assert_eq!(count(&recent(&busy(1), &query)), 2);
        assert_eq!(count(&recent(&busy(2), &query)), 3);
    }

    #[test]
    fn an_order_for_a_spread_has_two_legs_and_every_account_has_three_orders() {
        for id in 0..50 {
            let orders = list(&Account::sample(id, 1), State::All, None);

            assert!(count(&orders) >= 3);
            assert_eq!(orders["orders"][2]["legs"].as_array().map(Vec::len), Some(2));
        }
    }
}
