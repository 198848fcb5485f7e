//! One holdings sync: positions, balances, recent orders.

use std::collections::BTreeMap;

use contract::{Blocked, Cause, RetryClass, Verdict};
use providers::Failure;
use providers::snaptrade::{Balance, Client, Fetched, Order, Position, User};
use queue::Lease;
use serde_json::{Value, json};
use store::Effect;
use store::snaptrade::{self, Holdings};
use uuid::Uuid;

/// Why a sync ended before it had everything.
enum Cut {
    /// A call failed.
    Failed(Failure),
    /// The next call might outlast the lease.
    NoTime,
}

/// Fetches everything, stores nothing: the effect is committed by the runtime, all or none.
pub(crate) async fn sync(client: &Client, user: &User, account: Uuid, lease: &Lease) -> Verdict<Effect> {
    match fetch(client, user, account, lease).await {
        Ok(holdings) => Verdict::Done(Effect::SnaptradeHoldings(Box::new(holdings))),
        Err(Cut::Failed(failure)) => failure.verdict(),
        Err(Cut::NoTime) => {
            let cause =
                Cause::new(RetryClass::NotReady, "lease_too_short", "the next call might outlast the lease");
            Verdict::NotYet { why: Blocked::NotReady, after: None, cause }
        }
    }
}

async fn fetch(client: &Client, user: &User, account: Uuid, lease: &Lease) -> Result<Holdings, Cut> {
    let positions = call(client, lease, client.positions(user, account)).await?;
    let balances = call(client, lease, client.balances(user, account)).await?;
    let orders = call(client, lease, client.orders(user, account)).await?;
    Ok(Holdings {
        account_id: account,
        as_of: Some(positions.data_freshness.as_of),
        positions: positions.results.into_iter().map(position).collect(),
        balances: last_of_each(balances.into_iter().map(balance), |balance| balance.currency.clone()),
        orders: last_of_each(orders.orders.into_iter().map(order), |order| order.brokerage_order_id.clone()),
    })
}

/// One call, if it would end while the lease is ours.
async fn call<T>(
    client: &Client,
    lease: &Lease,
    call: impl Future<Output = Result<Fetched<T>, Failure>>,
) -> Result<T, Cut> {
    let under_way = lease.begin_call(client.timeout()).ok_or(Cut::NoTime)?;
    let fetched = call.await;
    under_way.end();
    let fetched = fetched.map_err(Cut::Failed)?;
    lease.note_request(fetched.request_id);
    Ok(fetched.value)
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
