//! One holdings sync: positions, balances, recent orders. It fetches everything and stores nothing: the effect is
//! committed by the runtime, all or none.

use std::collections::BTreeMap;

use providers::snaptrade::{Balance, Order, Position};
use serde_json::{Value, json};
use store::snaptrade::{self, Holdings};

use crate::calls::{Calls, Cut};

pub(crate) async fn fetch(calls: &Calls<'_>) -> Result<Holdings, Cut> {
    let Calls { client, user, account, .. } = *calls;
    let positions = calls.make(client.positions(user, account)).await?;
    let balances = calls.make(client.balances(user, account)).await?;
    let orders = calls.make(client.orders(user, account)).await?;
    Ok(Holdings {
        account_id: account,
        as_of: Some(positions.data_freshness.as_of),
        positions: positions.results.into_iter().map(position).collect(),
        balances: last_of_each(balances.into_iter().map(balance), |balance| balance.currency.clone()),
        orders: last_of_each(orders.orders.into_iter().map(order), |order| order.brokerage_order_id.clone()),
    })
}

/// The provider may name one thing twice; a row is there once.
fn last_of_each<T>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> String) -> Vec<T> {
    let by_key: BTreeMap<String, T> = items.map(|item| (key(&item), item)).collect();
    by_key.into_values().collect()
}

fn position(position: Position) -> snaptrade::Position {
    let text =
        |name: &str| position.instrument.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    snaptrade::Position {
        kind: text("kind"),
        symbol: text("symbol"),
        units: position.units,
        price: position.price,
        cost_basis: position.cost_basis,
        currency: position.currency,
        instrument: position.instrument,
    }
}

fn balance(balance: Balance) -> snaptrade::Balance {
    snaptrade::Balance {
        currency: balance.currency.code,
        cash: balance.cash,
        buying_power: balance.buying_power,
    }
}

fn order(order: Order) -> snaptrade::Order {
    snaptrade::Order {
        brokerage_order_id: order.brokerage_order_id,
        status: order.status,
        placed_at: order.time_placed,
        details: json!(order.details),
    }
}
