//! What a successful run changes besides ledger and queue, applied by the runtime in the same fenced commit.

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;

use crate::snaptrade::{self, Holdings};

/// A change that a handler asks for. It is applied exactly once, or not at all.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Nothing but the success itself.
    None,
    /// An account's holdings, replacing the stored ones.
    SnaptradeHoldings(Box<Holdings>),
}

impl Effect {
    /// True where success is all there is, so that many can be settled in one statement.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// What the command shows as its result.
    pub fn result(&self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::SnaptradeHoldings(holdings) => Some(json!({
                "account_id": holdings.account_id,
                "as_of": holdings.as_of,
                "positions": holdings.positions.len(),
                "balances": holdings.balances.len(),
                "orders": holdings.orders.len(),
            })),
        }
    }

    pub(crate) async fn apply(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        match self {
            Self::None => Ok(()),
            Self::SnaptradeHoldings(holdings) => snaptrade::store_holdings(connection, holdings).await,
        }
    }
}
