//! What a successful run changes besides ledger and queue, applied by the runtime in the same fenced commit.

use crate::pool::Connection;
use contract::snaptrade::WorkType;
use serde_json::{Value, json};

use crate::account_sync;
use crate::payment::{self, Facts};
use crate::snaptrade::{self, Holdings, Transactions};

/// A change that a handler asks for. It is applied exactly once, or not at all.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Nothing but the success itself.
    None,
    /// An account's holdings, replacing the stored ones.
    SnaptradeHoldings {
        /// What was fetched.
        holdings: Box<Holdings>,
        /// The mark of [`crate::account_sync::Start::Through`].
        through: i64,
    },
    /// An account's activities of a span of time, replacing the stored ones.
    SnaptradeTransactions {
        /// What was fetched.
        transactions: Box<Transactions>,
        /// As above.
        through: i64,
    },
    /// A payment's next facts, behind those that were taken in before.
    PaymentFacts(Box<Facts>),
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
            Self::SnaptradeHoldings { holdings, .. } => Some(json!({
                "account_id": holdings.account_id,
                "as_of": holdings.as_of,
                "positions": holdings.positions.len(),
                "balances": holdings.balances.len(),
                "orders": holdings.orders.len(),
            })),
            Self::SnaptradeTransactions { transactions, .. } => Some(json!({
                "account_id": transactions.account_id,
                "since": transactions.since,
                "activities": transactions.activities.len(),
            })),
            Self::PaymentFacts(facts) => Some(json!({
                "tenant": facts.tenant,
                "payment_id": facts.payment_id,
                "through": facts.facts.last().map(|(seq, _)| seq),
            })),
        }
    }

    pub(crate) async fn apply(&self, connection: &mut Connection) -> Result<(), sqlx::Error> {
        match self {
            Self::None => Ok(()),
            Self::SnaptradeHoldings { holdings, through } => {
                snaptrade::store_holdings(connection, holdings).await?;
                account_sync::finish(connection, WorkType::Holdings, holdings.account_id, *through).await
            }
            Self::SnaptradeTransactions { transactions, through } => {
                snaptrade::store_transactions(connection, transactions).await?;
                account_sync::finish(connection, WorkType::Transactions, transactions.account_id, *through)
                    .await
            }
            Self::PaymentFacts(facts) => payment::apply(connection, facts).await,
        }
    }
}
