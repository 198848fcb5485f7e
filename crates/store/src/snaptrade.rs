//! SnapTrade's users, accounts and holdings as we keep them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use contract::snaptrade::AccountState;
use rust_decimal::Decimal;
use secrecy::SecretString;
use serde_json::Value;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;
use crate::seal::Sealer;

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

/// The schema allows no other word; one that a newer version added is not for us to sync.
fn state(word: &str) -> AccountState {
    word.parse().unwrap_or(AccountState::Closed)
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
///
/// An account that belongs to another user already is an error: it would be read with the wrong secret.
pub async fn load(pool: &Pool, sealer: &Sealer, users: &[NewUser]) -> Result<u64, Error> {
    let ids: Vec<String> = users.iter().map(|user| user.user_id.clone()).collect();
    let secrets: Vec<Vec<u8>> =
        users.iter().map(|user| sealer.seal(&user.user_id, &user.user_secret)).collect();
    let owned = users.iter().flat_map(|user| user.accounts.iter().map(|account| (&user.user_id, *account)));
    let (owners, accounts): (Vec<String>, Vec<Uuid>) =
        owned.map(|(user, account)| (user.clone(), account)).unzip();
    let (added, moved) = pool
        .bounded("loading SnapTrade users", async {
            let mut session = pool.session().await?;
            let mut transaction = session.begin().await?;
            let connection = &mut *transaction;
            sqlx::query_file!("sql/snaptrade/load_users.sql", &ids, &secrets)
                .execute(&mut *connection)
                .await?;
            sqlx::query_file!("sql/snaptrade/rotate_secrets.sql", &ids, &secrets)
                .execute(&mut *connection)
                .await?;
            let added = sqlx::query_file!("sql/snaptrade/load_accounts.sql", &owners, &accounts)
                .execute(&mut *connection)
                .await?;
            let moved = sqlx::query_file_scalar!("sql/snaptrade/moved_accounts.sql", &owners, &accounts)
                .fetch_optional(&mut *connection)
                .await?;
            match moved {
                None => transaction.commit().await?,
                Some(_) => transaction.rollback().await?,
            }
            session.release();
            Ok((added.rows_affected(), moved))
        })
        .await?;
    match moved {
        None => Ok(added),
        Some(account_id) => Err(Error::AccountMoved { account_id }),
    }
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

async fn is_known(connection: &mut PgConnection, account: Uuid) -> Result<bool, sqlx::Error> {
    let states = sqlx::query_file!("sql/snaptrade/states.sql", &[account]).fetch_all(connection).await?;
    Ok(!states.is_empty())
}

/// Replaces the stored positions and balances and upserts the orders.
pub(crate) async fn store_holdings(
    connection: &mut PgConnection,
    holdings: &Holdings,
) -> Result<(), sqlx::Error> {
    let account = holdings.account_id;
    // The row lock keeps two runs of one account from mixing their lists; an account that is gone is told by the
    // foreign keys below.
    let stamped = sqlx::query_file!("sql/snaptrade/stamp_account.sql", account, holdings.as_of)
        .execute(&mut *connection)
        .await?;
    if stamped.rows_affected() == 0 && is_known(connection, account).await? {
        return Ok(());
    }
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
