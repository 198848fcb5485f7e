//! SnapTrade's users, accounts and what their syncs store.

use chrono::{DateTime, NaiveDate, Utc};
use contract::snaptrade::AccountState;
use secrecy::{ExposeSecret, SecretBox, SecretString};
use serde_json::json;
use store::inbox::{Delivery, Fate};
use store::ledger::{Done, succeed_with};
use store::seal::Sealer;
use store::snaptrade::{
    Activity, Holdings, NewUser, Order, Position, Transactions, credentials, find, load, newest_activity,
};
use store::{Effect, Error, Pool};
use testkit::Database;
use uuid::Uuid;

use crate::queue::SPEC;
use crate::samples::{accept, account, claim, command, enqueue, sync};

fn sealer(byte: u8) -> Sealer {
    Sealer::new(&SecretBox::new(Box::new([byte; 32])))
}

fn user(id: &str, secret: &str, accounts: &[Uuid]) -> NewUser {
    NewUser { user_id: id.to_owned(), user_secret: SecretString::from(secret), accounts: accounts.to_vec() }
}

fn day(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
}

fn time(on: u32, hour: u32) -> DateTime<Utc> {
    day(on).and_hms_opt(hour, 0, 0).unwrap().and_utc()
}

async fn secret_of(worker: &Pool, sealer: &Sealer, account: Uuid) -> String {
    let found = credentials(worker, sealer, account).await.unwrap().unwrap();
    format!("{} {} {}", found.user_id, found.user_secret.expose_secret(), found.state)
}

#[tokio::test]
async fn a_loaded_users_secret_opens_for_its_accounts_and_can_be_rotated() {
    let database = Database::fresh().await;
    let (operator, worker) =
        (database.pool_as("spillway_operator", 1), database.pool_as("spillway_worker", 1));
    let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert_eq!(load(&operator, &sealer(1), &[user("u", "old", &[first])]).await.unwrap(), 1);
    assert_eq!(secret_of(&worker, &sealer(1), first).await, "u old open");
    let again = [user("u", "new", &[first, second]), user("v", "other", &[])];
    assert_eq!(load(&operator, &sealer(1), &again).await.unwrap(), 1, "one of them was there");

    assert_eq!(secret_of(&worker, &sealer(1), first).await, "u new open");
    assert_eq!(secret_of(&worker, &sealer(1), second).await, "u new open");
    assert!(credentials(&worker, &sealer(1), Uuid::from_u128(3)).await.unwrap().is_none());
    let other_key = credentials(&worker, &sealer(2), first).await.expect_err("sealed with another key");
    assert!(matches!(&other_key, Error::Unseal { user_id } if user_id == "u"), "{other_key:?}");
    let plain =
        "select count(*) from spillway.snaptrade_user where position('new'::bytea in sealed_secret) > 0";
    assert_eq!(database.number(plain).await, 0);
}

#[tokio::test]
async fn an_account_does_not_move_to_another_user_and_nothing_of_that_load_stays() {
    let database = Database::fresh().await;
    let (operator, worker) =
        (database.pool_as("spillway_operator", 1), database.pool_as("spillway_worker", 1));
    let account = Uuid::from_u128(1);
    load(&operator, &sealer(1), &[user("u", "mine", &[account])]).await.unwrap();
    let moving = [user("u", "rotated", &[]), user("v", "yours", &[account, Uuid::from_u128(2)])];
    let error = load(&operator, &sealer(1), &moving).await.expect_err("it is another's");

    assert!(matches!(error, Error::AccountMoved { account_id } if account_id == account), "{error:?}");
    assert_eq!(secret_of(&worker, &sealer(1), account).await, "u mine open");
    assert_eq!(database.number("select count(*) from spillway.snaptrade_user").await, 1);
    assert!(find(&operator, Uuid::from_u128(2)).await.unwrap().is_none());
}

#[tokio::test]
async fn an_event_that_names_its_connection_tells_where_the_account_belongs() {
    let database = Database::fresh().await;
    let account = account(&database).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    assert_eq!(find(&gateway, account).await.unwrap().unwrap().connection_id, None);
    let mut event = sync("evt-1", account);
    let known = Uuid::now_v7();
    if let Fate::Sync { connection_id, .. } = &mut event.fate {
        *connection_id = Some(known);
    }
    accept(
        &gateway,
        &[event.clone(), Delivery { id: Uuid::now_v7(), identity: "evt-2".to_owned(), ..event }],
    )
    .await
    .unwrap();

    let found = find(&gateway, account).await.unwrap().unwrap();
    assert_eq!(
        (found.user_id.as_str(), found.state, found.connection_id),
        ("u", AccountState::Open, Some(known))
    );
    assert!(find(&gateway, Uuid::now_v7()).await.unwrap().is_none());
}

/// An account whose syncs store what they are given.
struct Bench {
    database: Database,
    gateway: Pool,
    worker: Pool,
    account: Uuid,
}

impl Bench {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let account = account(&database).await;
        let (gateway, worker) =
            (database.pool_as("spillway_gateway", 1), database.pool_as("spillway_worker", 1));
        Self { database, gateway, worker, account }
    }

    async fn store(&self, effect: Effect) {
        let command = command(&Uuid::now_v7().to_string(), self.account);
        enqueue(&self.gateway, std::slice::from_ref(&command)).await.unwrap();
        let claimed = claim(&self.worker, SPEC, 1).await.unwrap().remove(0);
        let run = Done {
            fence: claimed.fence,
            command: command.id,
            started_at: claimed.claimed_at,
            result: effect.result(),
            request_ids: Vec::new(),
        };
        assert!(succeed_with(&self.worker, &run, &effect).await.unwrap());
    }

    async fn transactions(&self, since: Option<NaiveDate>, activities: Vec<Activity>) {
        let transactions = Transactions { account_id: self.account, since, activities };
        self.store(Effect::SnaptradeTransactions { transactions: Box::new(transactions), through: 1 }).await;
    }

    async fn activities(&self) -> Vec<String> {
        let sql =
            "select concat_ws(' ', activity_id, type, amount) from spillway.snaptrade_activity order by 1";
        self.database.texts(sql).await
    }

    async fn holdings(&self, as_of: Option<DateTime<Utc>>, symbol: &str, order: (&str, &str)) {
        let position = Position {
            kind: "stock".to_owned(),
            symbol: symbol.to_owned(),
            units: "10.5".parse().ok(),
            price: None,
            cost_basis: None,
            currency: None,
            instrument: json!({}),
        };
        let order = Order {
            brokerage_order_id: order.0.to_owned(),
            status: Some(order.1.to_owned()),
            placed_at: None,
            details: json!({ "status": order.1 }),
        };
        let holdings = Holdings {
            account_id: self.account,
            as_of,
            positions: vec![position],
            balances: Vec::new(),
            orders: vec![order],
        };
        self.store(Effect::SnaptradeHoldings { holdings: Box::new(holdings), through: 1 }).await;
    }

    async fn held(&self) -> Vec<String> {
        let sql = "select symbol from spillway.snaptrade_position
            union all (select brokerage_order_id || ' ' || status from spillway.snaptrade_order order by 1)";
        self.database.texts(sql).await
    }
}

fn activity(id: &str, at: Option<DateTime<Utc>>, amount: &str) -> Activity {
    Activity {
        activity_id: id.to_owned(),
        kind: Some("BUY".to_owned()),
        trade_date: at,
        units: None,
        price: None,
        amount: amount.parse().ok(),
        fee: None,
        currency: Some("USD".to_owned()),
        details: json!({ "amount": amount }),
    }
}

#[tokio::test]
async fn activities_of_the_fetched_days_become_what_was_fetched_and_older_ones_stay() {
    let bench = Bench::new().await;
    assert_eq!(newest_activity(&bench.worker, bench.account).await.unwrap(), None);
    let all = vec![
        activity("a", Some(time(9, 12)), "1"),
        activity("b", Some(time(10, 0)), "2"),
        activity("c", Some(time(11, 23)), "3"),
        activity("d", None, "4"),
    ];
    bench.transactions(None, all).await;
    assert_eq!(bench.activities().await, ["a BUY 1", "b BUY 2", "c BUY 3", "d BUY 4"]);
    assert_eq!(newest_activity(&bench.worker, bench.account).await.unwrap(), Some(day(11)));
    // `b` has come under another id, `c` was corrected.
    let newer = vec![activity("b2", Some(time(10, 0)), "2"), activity("c", Some(time(11, 23)), "3.5")];
    bench.transactions(Some(day(10)), newer).await;

    assert_eq!(bench.activities().await, ["a BUY 1", "b2 BUY 2", "c BUY 3.5", "d BUY 4"]);
    let stamped = "select count(*) from spillway.snaptrade_account where transactions_synced_at is not null";
    assert_eq!(bench.database.number(stamped).await, 1);
    let result = "select result ->> 'since' from spillway.command order by id desc limit 1";
    assert_eq!(bench.database.texts(result).await, ["2026-11-10"]);
    bench.transactions(None, Vec::new()).await;
    assert!(bench.activities().await.is_empty(), "from the beginning, there is nothing");
}

#[tokio::test]
async fn days_are_the_providers_wherever_the_server_stands() {
    for zone in ["America/New_York", "Asia/Tokyo"] {
        let bench = Bench::new().await;
        let name = bench.database.texts("select current_database()::text").await.remove(0);
        bench.database.execute(&format!("alter database {name} set timezone = '{zone}'")).await;
        bench.worker.close().await;
        let bench = Bench { worker: bench.database.pool_as("spillway_worker", 1), ..bench };
        let all = vec![activity("late", Some(time(9, 23)), "1"), activity("early", Some(time(10, 0)), "2")];
        bench.transactions(None, all).await;
        assert_eq!(newest_activity(&bench.worker, bench.account).await.unwrap(), Some(day(10)), "{zone}");
        bench.transactions(Some(day(10)), vec![activity("early again", Some(time(10, 0)), "2")]).await;

        assert_eq!(bench.activities().await, ["early again BUY 2", "late BUY 1"], "{zone}");
    }
}

#[tokio::test]
async fn holdings_that_are_older_than_the_stored_ones_change_nothing() {
    let bench = Bench::new().await;
    bench.holdings(Some(time(10, 0)), "AAPL", ("order-1", "open")).await;
    bench.holdings(Some(time(11, 0)), "MSFT", ("order-1", "filled")).await;
    assert_eq!(bench.held().await, ["MSFT", "order-1 filled"]);
    bench.holdings(Some(time(10, 12)), "AAPL", ("order-2", "open")).await;
    assert_eq!(bench.held().await, ["MSFT", "order-1 filled"]);
    bench.holdings(Some(time(11, 0)), "NVDA", ("order-2", "open")).await;

    assert_eq!(bench.held().await, ["NVDA", "order-1 filled", "order-2 open"], "older orders stay");
}
