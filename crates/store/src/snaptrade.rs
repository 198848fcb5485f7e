//! SnapTrade's users, accounts and holdings as we keep them.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use contract::snaptrade::{AccountState, AccountSync, Whose, WorkType};
use contract::{NewCommand, Origin};
use rust_decimal::Decimal;
use secrecy::SecretString;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::{Connection, Pool};
use crate::seal::Sealer;

/// What we know of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Our id of the user whose it is.
    pub user_id: String,
    /// Whether it may be synced.
    pub state: AccountState,
    /// SnapTrade's id of the connection that it belongs to, once an event has named it.
    pub connection_id: Option<Uuid>,
}

/// Those of `accounts` that we know.
pub(crate) async fn known(
    connection: &mut Connection,
    accounts: &[Uuid],
) -> Result<HashMap<Uuid, Account>, sqlx::Error> {
    if accounts.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query_file!("sql/snaptrade/known.sql", accounts).fetch_all(connection).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            (
                row.account_id,
                Account { user_id: row.user_id, state: state(&row.state), connection_id: row.connection_id },
            )
        })
        .collect())
}

/// An account, where we know it.
pub async fn find(pool: &Pool, account: Uuid) -> Result<Option<Account>, Error> {
    pool.bounded("looking an account up", async {
        let mut session = pool.session().await?;
        let found = known(&mut session, &[account]).await?.remove(&account);
        session.release().await?;
        Ok(found)
    })
    .await
}

/// What a webhook says about accounts.
#[derive(Clone, Debug)]
pub struct AccountsChange {
    /// Which accounts.
    pub whose: Whose,
    /// What becomes of them.
    pub to: Change,
    /// When it happened, by the sender; an older event that arrives later changes nothing.
    pub at: DateTime<Utc>,
    /// The event, as the reason that is shown.
    pub reason: String,
}

/// What becomes of accounts.
#[derive(Clone, Debug)]
pub enum Change {
    /// They are gone, and a waiting sync of theirs with them.
    Close,
    /// They can't be read for now.
    Pause,
    /// They can be read (again), and are synced: this is where the commands come from. Each account's key is
    /// this one's with the work type and the account behind it.
    Open(Origin),
    /// There is an account that we don't know yet.
    Announce {
        /// Its user; nothing happens where we don't know the user.
        user_id: String,
        /// Its connection.
        connection_id: Option<Uuid>,
    },
}
/// The kinds of data that are synced when an account is opened.
const ON_OPENING: [WorkType; 2] = [WorkType::Holdings, WorkType::Transactions];

impl AccountsChange {
    /// The syncs of an account that this change has opened.
    pub(crate) fn syncs(&self, account_id: Uuid) -> Vec<(AccountSync, NewCommand)> {
        let Change::Open(origin) = &self.to else { return Vec::new() };
        let sync = |work_type| {
            let job = AccountSync { work_type, account_id };
            let idempotency_key = format!("{}:{work_type}:{account_id}", origin.idempotency_key);
            let command = NewCommand::new(Uuid::now_v7(), &job, Origin { idempotency_key, ..origin.clone() });
            (job, command)
        };
        ON_OPENING.into_iter().map(sync).collect()
    }
}

/// Remembers to which connections accounts belong: (account, connection) each.
pub(crate) async fn connect(connection: &mut Connection, links: &[(Uuid, Uuid)]) -> Result<(), sqlx::Error> {
    if links.is_empty() {
        return Ok(());
    }
    let (accounts, connections): (Vec<Uuid>, Vec<Uuid>) = links.iter().copied().unzip();
    sqlx::query_file!("sql/snaptrade/connect.sql", &accounts, &connections).execute(connection).await?;
    Ok(())
}

/// Applies a change. Answers the accounts that it opened.
pub(crate) async fn change(
    connection: &mut Connection,
    change: &AccountsChange,
) -> Result<Vec<Uuid>, sqlx::Error> {
    let (state, opens) = match &change.to {
        Change::Close => (AccountState::Closed, false),
        Change::Pause => (AccountState::Paused, false),
        Change::Open(_) => (AccountState::Open, true),
        Change::Announce { user_id, connection_id } => {
            let Whose::Account(account) = change.whose else { return Ok(Vec::new()) };
            sqlx::query_file!("sql/snaptrade/announce.sql", account, user_id, *connection_id)
                .execute(connection)
                .await?;
            return Ok(Vec::new());
        }
    };
    let (account, of_connection, user) = match &change.whose {
        Whose::Account(account) => (Some(*account), None, None),
        Whose::Connection(connection) => (None, Some(*connection), None),
        Whose::User(user) => (None, None, Some(user.as_str())),
    };
    let changed = sqlx::query_file_scalar!(
        "sql/snaptrade/change_state.sql",
        account,
        of_connection,
        user,
        state.to_string(),
        change.reason,
        change.at,
    )
    .fetch_all(&mut *connection)
    .await?;
    if state == AccountState::Closed {
        sqlx::query_file!("sql/snaptrade/supersede.sql", &changed).execute(connection).await?;
    }
    Ok(if opens { changed } else { Vec::new() })
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
            session.release().await?;
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
            session.release().await?;
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

/// Replaces the stored positions and balances and upserts the orders.
pub(crate) async fn store_holdings(
    connection: &mut Connection,
    holdings: &Holdings,
) -> Result<(), sqlx::Error> {
    let account = holdings.account_id;
    // The row lock keeps two runs of one account from mixing their lists; an account that is gone is told by the
    // foreign keys below.
    let stamped = sqlx::query_file!("sql/snaptrade/stamp_account.sql", account, holdings.as_of)
        .execute(&mut *connection)
        .await?;
    if stamped.rows_affected() == 0 && !known(&mut *connection, &[account]).await?.is_empty() {
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

/// Everything that a transactions sync found out about one account.
#[derive(Clone, Debug)]
pub struct Transactions {
    /// The account.
    pub account_id: Uuid,
    /// All activities from this day on; from the beginning where there is none.
    pub since: Option<NaiveDate>,
    /// Each once.
    pub activities: Vec<Activity>,
}

/// One activity.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the provider's words")]
pub struct Activity {
    pub activity_id: String,
    pub kind: Option<String>,
    pub trade_date: Option<DateTime<Utc>>,
    pub units: Option<Decimal>,
    pub price: Option<Decimal>,
    pub amount: Option<Decimal>,
    pub fee: Option<Decimal>,
    pub currency: Option<String>,
    pub details: Value,
}

/// The day of the newest stored activity of an account.
pub async fn newest_activity(pool: &Pool, account: Uuid) -> Result<Option<NaiveDate>, Error> {
    pool.bounded("looking for an account's newest activity", async {
        let mut session = pool.session().await?;
        let newest = sqlx::query_file_scalar!("sql/snaptrade/newest_activity.sql", account)
            .fetch_one(&mut *session)
            .await?;
        session.release().await?;
        Ok(newest.map(|time| time.date_naive()))
    })
    .await
}

/// Makes the stored activities of the fetched span what was fetched: new ones are added, corrected ones replaced,
/// and those that the provider has reprocessed under another id don't stay beside themselves.
pub(crate) async fn store_transactions(
    connection: &mut Connection,
    transactions: &Transactions,
) -> Result<(), sqlx::Error> {
    let (account, activities) = (transactions.account_id, &transactions.activities);
    // The row lock keeps two runs of one account from mixing their lists.
    sqlx::query_file!("sql/snaptrade/stamp_transactions.sql", account).execute(&mut *connection).await?;
    let ids: Vec<String> = activities.iter().map(|activity| activity.activity_id.clone()).collect();
    sqlx::query_file!("sql/snaptrade/clear_activities.sql", account, transactions.since, &ids)
        .execute(&mut *connection)
        .await?;
    sqlx::query_file!(
        "sql/snaptrade/upsert_activities.sql",
        account,
        &ids,
        &activities.iter().map(|activity| activity.kind.clone()).collect::<Vec<_>>() as &[Option<String>],
        &activities.iter().map(|activity| activity.trade_date).collect::<Vec<_>>()
            as &[Option<DateTime<Utc>>],
        &activities.iter().map(|activity| activity.units).collect::<Vec<_>>() as &[Option<Decimal>],
        &activities.iter().map(|activity| activity.price).collect::<Vec<_>>() as &[Option<Decimal>],
        &activities.iter().map(|activity| activity.amount).collect::<Vec<_>>() as &[Option<Decimal>],
        &activities.iter().map(|activity| activity.fee).collect::<Vec<_>>() as &[Option<Decimal>],
        &activities.iter().map(|activity| activity.currency.clone()).collect::<Vec<_>>()
            as &[Option<String>],
        &activities.iter().map(|activity| activity.details.clone()).collect::<Vec<_>>(),
    )
    .execute(&mut *connection)
    .await?;
    Ok(())
}
