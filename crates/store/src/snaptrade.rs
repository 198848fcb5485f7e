//! SnapTrade's users, accounts and holdings as we keep them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use secrecy::SecretString;
use serde_json::Value;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;
use crate::seal::Sealer;

/// Whether an account may be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountState {
    /// Yes.
    Open,
    /// Not until its owner repairs the connection.
    Paused,
    /// Never again.
    Closed,
}

/// The states of those of `accounts` that are known.
pub async fn states(pool: &Pool, accounts: &[Uuid]) -> Result<HashMap<Uuid, AccountState>, Error> {
    pool.bounded("looking accounts up", async {
        let mut session = pool.session().await?;
        let rows = sqlx::query_file!("sql/snaptrade/states.sql", accounts).fetch_all(&mut *session).await?;
        session.release();
        Ok(rows.into_iter().map(|row| (row.account_id, state(&row.state))).collect())
    })
    .await
}

fn state(word: &str) -> AccountState {
    match word {
        "open" => AccountState::Open,
        "paused" => AccountState::Paused,
        _ => AccountState::Closed,
    }
}

/// Who may read an account at the provider.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Our id of the user.
    pub user_id: String,
    /// The user's secret at SnapTrade.
    pub user_secret: SecretString,
    /// Whether the account may be synced.
    pub state: AccountState,
}

/// The credentials for an account; nothing where it is unknown.
pub async fn credentials(pool: &Pool, sealer: &Sealer, account: Uuid) -> Result<Option<Credentials>, Error> {
    let row = pool
        .bounded("reading an account's credentials", async {
            let mut session = pool.session().await?;
            let row = sqlx::query_file!("sql/snaptrade/credentials.sql", account)
                .fetch_optional(&mut *session)
                .await?;
            session.release();
            Ok(row)
        })
        .await?;
    let Some(row) = row else { return Ok(None) };
    let Some(user_secret) = sealer.open(&row.user_id, &row.sealed_secret) else {
        return Err(Error::Unseal { user_id: row.user_id });
    };
    Ok(Some(Credentials { user_id: row.user_id, user_secret, state: state(&row.state) }))
}

/// A user with accounts, to be loaded.
pub struct NewUser {
    /// Our id of the user.
    pub user_id: String,
    /// The user's secret at SnapTrade.
    pub user_secret: SecretString,
    /// The user's accounts.
    pub accounts: Vec<Uuid>,
}

/// Loads users and their accounts, all or none; a second time changes nothing but rotated secrets. Accounts of
/// a user that the list leaves out stay as they are. Answers the number of accounts that were new.
pub async fn load(pool: &Pool, sealer: &Sealer, users: &[NewUser]) -> Result<u64, Error> {
    pool.bounded("loading SnapTrade users", async {
        let mut session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let mut added = 0;
        for user in users {
            let secret = sealer.seal(&user.user_id, &user.user_secret);
            let id = &user.user_id;
            let made = sqlx::query_file!("sql/snaptrade/load_user.sql", id, secret)
                .execute(&mut *transaction)
                .await?;
            if made.rows_affected() == 0 {
                sqlx::query_file!("sql/snaptrade/rotate_secret.sql", id, secret)
                    .execute(&mut *transaction)
                    .await?;
            }
            added += sqlx::query_file!("sql/snaptrade/load_accounts.sql", user.user_id, &user.accounts)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
        }
        transaction.commit().await?;
        session.release();
        Ok(added)
    })
    .await
}

/// Everything that a holdings sync found out about one account.
#[derive(Clone, Debug)]
pub struct Holdings {
    /// The account.
    pub account_id: Uuid,
    /// As of when the positions are, by the provider.
    pub as_of: Option<DateTime<Utc>>,
    /// All positions, in the provider's order.
    pub positions: Vec<Position>,
    /// All balances, one a currency.
    pub balances: Vec<Balance>,
    /// Recent orders; older ones stay as they are.
    pub orders: Vec<Order>,
}

/// One position.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the provider's words")]
pub struct Position {
    pub kind: String,
    pub symbol: String,
    pub units: Option<Decimal>,
    pub price: Option<Decimal>,
    pub cost_basis: Option<Decimal>,
    pub currency: Option<String>,
    pub instrument: Value,
}

/// The money in one currency.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the provider's words")]
pub struct Balance {
    pub currency: String,
    pub cash: Option<Decimal>,
    pub buying_power: Option<Decimal>,
}

/// One order.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the provider's words")]
pub struct Order {
    pub brokerage_order_id: String,
    pub status: Option<String>,
    pub placed_at: Option<DateTime<Utc>>,
    pub details: Value,
}

/// Replaces the stored positions and balances and upserts the orders.
pub(crate) async fn store_holdings(
    connection: &mut PgConnection,
    holdings: &Holdings,
) -> Result<(), sqlx::Error> {
    let account = holdings.account_id;
    // The row lock keeps two runs of one account from mixing their lists.
    sqlx::query_file!("sql/snaptrade/stamp_account.sql", account, holdings.as_of)
        .execute(&mut *connection)
        .await?;
    sqlx::query_file!("sql/snaptrade/clear_holdings.sql", account).execute(&mut *connection).await?;
    let positions = &holdings.positions;
    sqlx::query_file!(
        "sql/snaptrade/insert_positions.sql",
        account,
        &positions.iter().map(|position| position.kind.clone()).collect::<Vec<_>>(),
        &positions.iter().map(|position| position.symbol.clone()).collect::<Vec<_>>(),
        &positions.iter().map(|position| position.units).collect::<Vec<_>>() as &[Option<Decimal>],
        &positions.iter().map(|position| position.price).collect::<Vec<_>>() as &[Option<Decimal>],
        &positions.iter().map(|position| position.cost_basis).collect::<Vec<_>>() as &[Option<Decimal>],
        &positions.iter().map(|position| position.currency.clone()).collect::<Vec<_>>()
            as &[Option<String>],
        &positions.iter().map(|position| position.instrument.clone()).collect::<Vec<_>>(),
    )
    .execute(&mut *connection)
    .await?;
    let balances = &holdings.balances;
    sqlx::query_file!(
        "sql/snaptrade/insert_balances.sql",
        account,
        &balances.iter().map(|balance| balance.currency.clone()).collect::<Vec<_>>(),
        &balances.iter().map(|balance| balance.cash).collect::<Vec<_>>() as &[Option<Decimal>],
        &balances.iter().map(|balance| balance.buying_power).collect::<Vec<_>>() as &[Option<Decimal>],
    )
    .execute(&mut *connection)
    .await?;
    let orders = &holdings.orders;
    sqlx::query_file!(
        "sql/snaptrade/upsert_orders.sql",
        account,
        &orders.iter().map(|order| order.brokerage_order_id.clone()).collect::<Vec<_>>(),
        &orders.iter().map(|order| order.status.clone()).collect::<Vec<_>>() as &[Option<String>],
        &orders.iter().map(|order| order.placed_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &orders.iter().map(|order| order.details.clone()).collect::<Vec<_>>(),
    )
    .execute(&mut *connection)
    .await?;
    Ok(())
}
