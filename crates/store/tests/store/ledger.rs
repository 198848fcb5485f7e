//! How runs end, and that a stale lease changes nothing.

use std::time::Duration;

use chrono::Utc;
use contract::{Blocked, Cause, DeadReason, RetryClass};
use serde_json::json;
use store::ledger::{Dead, Done, Unfinished, bury, delay, drop_closed, park, succeed, succeed_with};
use store::queue::{Claimed, Fence};
use store::snaptrade::{Balance, Holdings, Position};
use store::{Effect, Fault, Pool};
use testkit::Database;
use uuid::Uuid;

use crate::queue::{SPEC, WORKLOAD, expire_leases, with_commands};
use crate::samples::{QUEUE, account, claim};

fn cause() -> Cause {
    Cause::new(RetryClass::Transient, "timeout", "no answer in time")
        .with_request_id(Some("req-1".to_owned()))
}

fn done(message: &Claimed) -> Done {
    Done {
        fence: message.fence,
        command: message.command.as_ref().expect("it has one").id,
        started_at: message.claimed_at,
        result: Some(json!({ "rows": 3 })),
        request_ids: vec!["req-1".to_owned(), "req-2".to_owned()],
    }
}

fn unfinished<'a>(message: &Claimed, cause: &'a Cause) -> Unfinished<'a> {
    Unfinished {
        fence: message.fence,
        command: message.command.as_ref().expect("it has one").id,
        after: Duration::from_secs(30),
        cause,
        worker: "worker-1",
    }
}

fn dead<'a>(message: &Claimed, cause: &'a Cause) -> Dead<'a> {
    Dead {
        id: Uuid::now_v7(),
        fence: message.fence,
        command: message.command.as_ref().map(|command| command.id),
        workload: WORKLOAD,
        reason: DeadReason::AttemptsExhausted,
        cause,
        worker: "worker-1",
    }
}

async fn one_claimed() -> (Database, Pool, Claimed) {
    let (database, pool) = with_commands(1).await;
    let message = claim(&pool, SPEC, 1).await.unwrap().remove(0);
    (database, pool, message)
}

/// The same message as it looks to a worker that lost its lease to another one.
async fn overtaken(database: &Database, pool: &Pool) -> Claimed {
    expire_leases(database).await;
    claim(pool, SPEC, 1).await.unwrap().remove(0)
}

async fn one_text(database: &Database, sql: &str) -> String {
    database.texts(sql).await.remove(0)
}

#[tokio::test]
async fn a_success_moves_the_message_to_the_archive_and_closes_the_command() {
    let (database, pool, message) = one_claimed().await;
    let settled = succeed(&pool, QUEUE, &[done(&message)]).await.unwrap();

    assert_eq!(settled, [message.fence.msg_id]);
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 0);
    assert_eq!(database.number(&format!("select count(*) from pgmq.a_{QUEUE}")).await, 1);
    let row = one_text(&database, "select concat_ws(' ', status, attempts, outcomes, result, array_length(provider_request_ids, 1)) from spillway.command").await;
    assert_eq!(row, "succeeded 1 1 {\"rows\": 3} 2");
}

#[tokio::test]
async fn a_success_changes_the_ledger_row_in_place_and_writes_no_index() {
    let (database, _pool, message) = one_claimed().await;
    let Fence { msg_id, read_ct, .. } = message.fence;
    let command = message.command.expect("a command").id;
    let in_place = format!(
        "with settled as materialized (select spillway.queue_succeed('{QUEUE}', '{{{msg_id}}}', '{{{read_ct}}}',
           '{{{command}}}', array[now()], '{{null}}', '{{\"\"}}') as ids)
         select pg_stat_get_xact_tuples_hot_updated('spillway.command'::regclass) from settled where ids = '{{{msg_id}}}'"
    );

    assert_eq!(database.number(&in_place).await, 1);
}

#[tokio::test]
async fn a_stale_lease_changes_nothing_however_the_run_ends() {
    let (database, pool, stale) = one_claimed().await;
    let owner = overtaken(&database, &pool).await;
    let cause = cause();
    let effect = effect_of(holdings(Uuid::nil()));

    assert!(succeed(&pool, QUEUE, &[done(&stale)]).await.unwrap().is_empty());
    assert!(!succeed_with(&pool, &done(&stale), &effect).await.unwrap());
    assert!(!delay(&pool, &unfinished(&stale, &cause)).await.unwrap());
    assert!(!park(&pool, &unfinished(&stale, &cause), Blocked::NotReady).await.unwrap());
    assert!(!bury(&pool, &dead(&stale, &cause)).await.unwrap());
    assert!(!drop_closed(&pool, stale.fence).await.unwrap());
    for table in ["spillway.dead_letter", "spillway.attempt_failure", "spillway.snaptrade_position"] {
        assert_eq!(database.number(&format!("select count(*) from {table}")).await, 0, "{table}");
    }
    assert_eq!(succeed(&pool, QUEUE, &[done(&owner)]).await.unwrap().len(), 1, "the owner is not disturbed");
}

#[tokio::test]
async fn a_failure_is_recorded_and_due_again_after_its_pause() {
    let (database, pool, message) = one_claimed().await;
    assert!(delay(&pool, &unfinished(&message, &cause())).await.unwrap());

    let row = one_text(
        &database,
        "select concat_ws(' ', status, attempts, outcomes, retry_class, failure_code) from spillway.command",
    )
    .await;
    assert_eq!(row, "retrying 1 1 transient timeout");
    let pause = format!("select extract(epoch from vt - now())::bigint from pgmq.q_{QUEUE}");
    assert!((28..=30).contains(&database.number(&pause).await));
    assert_eq!(
        database.number("select count(*) from spillway.attempt_failure where request_id = 'req-1'").await,
        1
    );
    assert_eq!(
        database.number("select count(*) from spillway.command where next_attempt_at > now()").await,
        1
    );
}

#[tokio::test]
async fn a_parked_message_shows_why_and_until_when_and_burns_nothing() {
    let (database, pool, message) = one_claimed().await;
    assert!(park(&pool, &unfinished(&message, &cause()), Blocked::ProviderCooldown).await.unwrap());
    let row = one_text(&database, "select concat_ws(' ', status, blocked_reason, attempts, blocked_times) from spillway.command where blocked_until > now()").await;
    assert_eq!(row, "blocked provider_cooldown 0 1");

    // A second "not yet" in a row keeps the time of the first; a failure ends the row.
    let since = one_text(&database, "select blocked_since::text from spillway.command").await;
    let again = overtaken(&database, &pool).await;
    assert!(again.command.as_ref().is_some_and(|command| command.waits == 1));
    park(&pool, &unfinished(&again, &cause()), Blocked::ProviderCooldown).await.unwrap();
    assert_eq!(
        one_text(&database, "select blocked_since::text from spillway.command where blocked_times = 2").await,
        since
    );
    let third = overtaken(&database, &pool).await;
    delay(&pool, &unfinished(&third, &cause())).await.unwrap();
    assert_eq!(
        database
            .number("select count(*) from spillway.command where blocked_since is null and blocked_times = 0")
            .await,
        1
    );
}

#[tokio::test]
async fn a_dead_letter_is_one_row_one_message_and_no_source() {
    let (database, pool, message) = one_claimed().await;
    assert!(bury(&pool, &dead(&message, &cause())).await.unwrap());
    assert!(!bury(&pool, &dead(&message, &cause())).await.unwrap(), "reported twice, buried once");

    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 0);
    assert_eq!(database.number(&format!("select count(*) from pgmq.a_{QUEUE}")).await, 1);
    let dead = format!(
        "select count(*) from pgmq.q_{QUEUE}_dead d join spillway.dead_letter l on l.dead_msg_id = d.msg_id and d.message ->> 'dead_letter' = l.id::text"
    );
    assert_eq!(database.number(&dead).await, 1);
    let row = one_text(&database, "select concat_ws(' ', l.reason, l.detail_code, l.attempts, l.policies, c.status) from spillway.dead_letter l join spillway.command c on c.id = l.command_id").await;
    assert_eq!(row, "attempts_exhausted timeout 1 {replay_same_input,suppress} dead_lettered");
}

#[tokio::test]
async fn a_message_without_a_command_can_be_buried_too() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_worker", 2);
    database.execute(&format!("select pgmq.send('{QUEUE}', '{{\"hello\": 1}}')")).await;
    let message = claim(&pool, SPEC, 1).await.unwrap().remove(0);
    assert!(
        bury(&pool, &Dead { reason: DeadReason::CommandMissing, ..dead(&message, &cause()) }).await.unwrap()
    );

    let operator = database.pool_as("spillway_operator", 1);
    let letters = store::dead_letter::list(&operator, Some(WORKLOAD), 10).await.unwrap();
    let shown = store::dead_letter::show(&operator, letters[0].id).await.unwrap().unwrap();
    assert_eq!((shown.letter.reason.as_str(), &shown.message["hello"]), ("command_missing", &json!(1)));
}

fn holdings(account_id: Uuid) -> Holdings {
    let position = |symbol: &str| Position {
        kind: "stock".to_owned(),
        symbol: symbol.to_owned(),
        units: "10.5".parse().ok(),
        price: None,
        cost_basis: None,
        currency: Some("USD".to_owned()),
        instrument: json!({ "symbol": symbol }),
    };
    let balance = |currency: &str| Balance {
        currency: currency.to_owned(),
        cash: "0.1".parse().ok(),
        buying_power: None,
    };
    Holdings {
        account_id,
        as_of: Some(Utc::now()),
        positions: vec![position("AAPL"), position("MSFT")],
        balances: vec![balance("USD"), balance("CAD")],
        orders: Vec::new(),
    }
}

fn effect_of(holdings: Holdings) -> Effect {
    Effect::SnaptradeHoldings { holdings: Box::new(holdings), through: 1 }
}

#[tokio::test]
async fn an_effect_is_committed_together_with_its_success() {
    let (database, pool, message) = one_claimed().await;
    let account = account(&database).await;
    let effect = effect_of(holdings(account));
    assert!(succeed_with(&pool, &done(&message), &effect).await.unwrap());

    assert_eq!(
        database
            .texts("select symbol || ' ' || units from spillway.snaptrade_position order by position")
            .await,
        ["AAPL 10.5", "MSFT 10.5"]
    );
    assert_eq!(database.number("select count(*) from spillway.snaptrade_balance where cash = 0.1").await, 2);
    assert_eq!(database.number("select count(*) from spillway.command where status = 'succeeded'").await, 1);
}

#[tokio::test]
async fn a_refused_effect_changes_nothing_and_is_told_apart() {
    let (database, pool, message) = one_claimed().await;
    let account = account(&database).await;
    let mut twice = holdings(account);
    twice.balances[1].currency = "USD".to_owned();
    let error =
        succeed_with(&pool, &done(&message), &effect_of(twice)).await.expect_err("one currency twice");

    assert_eq!(error.fault(), Fault::Values);
    assert_eq!(database.number("select count(*) from spillway.snaptrade_position").await, 0);
    assert_eq!(
        database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await,
        1,
        "the message is still there"
    );
}
