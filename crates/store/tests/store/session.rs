//! What is seen of other sessions: who holds the oldest snapshot, and nothing of what it reads.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::raw_sql;
use store::session::look;
use testkit::{Database, eventually};

use crate::samples::QUEUE;

const BUDGET: Duration = Duration::from_secs(20);

/// A session that has read something in a transaction that stays open, and its pid.
async fn report(database: &Database) -> (PgConnection, i32) {
    let mut session = database.connect().await;
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await.unwrap();
    let open = "set application_name = 'nightly report'; begin isolation level repeatable read";
    raw_sql(open).execute(&mut session).await.unwrap();
    let read = "select count(*) from spillway.command where class < 471142 and scope <> 'canary''canary'";
    raw_sql(read).execute(&mut session).await.unwrap();
    (session, pid)
}

#[tokio::test]
async fn the_holder_of_an_old_snapshot_is_named_without_what_it_reads() {
    let database = Database::fresh().await;
    let (session, pid) = report(&database).await;
    for _ in 0..5 {
        database.execute("insert into spillway.payment_feed values ('main', gen_random_uuid(), 1)").await;
    }
    for role in ["spillway_gateway", "spillway_worker", "spillway_operator"] {
        let seen = look(&database.pool_as(role, 1)).await.unwrap();
        let holder = seen.holders.iter().find(|holder| holder.pid == Some(pid)).expect("it is seen");

        assert!(seen.sees_all, "the tests' owner is a superuser");
        assert_eq!(holder.application.as_deref(), Some("nightly report"));
        assert_eq!(holder.state.as_deref(), Some("idle in transaction"));
        assert!(holder.transactions >= 5 && seen.oldest_transactions() >= 5, "{holder:?}");
        assert!(holder.held_seconds > Some(0.0) && holder.idle_seconds.is_some(), "{holder:?}");
        assert_eq!(seen.oldest().and_then(|(oldest, _)| oldest.pid), Some(pid));
        let statement = holder.statement.as_deref().unwrap();
        assert_eq!(statement, "select count(*) from spillway.command where class < ? and scope <> ");
    }
    drop(session);
    eventually("the session is gone", BUDGET, async || {
        let seen = look(&database.pool(1)).await.unwrap();
        (!seen.holders.iter().any(|holder| holder.pid == Some(pid))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn literals_of_every_kind_are_hidden() {
    let database = Database::fresh().await;
    let mut session = database.connect().await;
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await.unwrap();
    for literal in
        ["'canary'", "$$canary$$", "$tag$canary$tag$", "E'\\'canary'", "U&'canary'", "4711.42", "0 + 4711"]
    {
        raw_sql(&format!("begin; select {literal} as a; select {literal} as b"))
            .execute(&mut session)
            .await
            .unwrap();
        let seen = look(&database.pool_as("spillway_operator", 1)).await.unwrap();
        let holder = seen.holders.iter().find(|holder| holder.pid == Some(pid)).expect("it is seen");
        let statement = holder.statement.as_deref().unwrap();
        assert!(statement.starts_with("begin; select"), "{statement}");
        assert!(!statement.contains("canary") && !statement.contains("4711"), "{statement}");
        raw_sql("rollback").execute(&mut session).await.unwrap();
    }
}

#[tokio::test]
async fn an_owner_that_may_not_look_says_so_and_still_names_the_session() {
    let database = Database::fresh().await;
    for function in ["snapshot_holders", "sees_all_sessions"] {
        database
            .execute(&format!(
                "grant create on schema spillway to spillway_worker;
          alter function spillway.{function}() owner to spillway_worker"
            ))
            .await;
    }
    let (_session, pid) = report(&database).await;
    database.execute("insert into spillway.payment_feed values ('main', gen_random_uuid(), 1)").await;
    let seen = look(&database.pool_as("spillway_operator", 1)).await.unwrap();
    let holder = seen.holders.iter().find(|holder| holder.pid == Some(pid)).expect("it is seen");

    assert!(!seen.sees_all);
    assert!(holder.transactions >= 1 && holder.login.is_some(), "{holder:?}");
    assert_eq!((&holder.state, holder.held_seconds, &holder.statement), (&None, None, &None));
}

#[tokio::test]
async fn dead_rows_of_a_queue_are_counted_while_a_snapshot_holds_them() {
    let database = Database::fresh().await;
    let (_session, _) = report(&database).await;
    let churn = format!(
        "insert into pgmq.q_{QUEUE} (vt, message) select now(), '{{}}' from generate_series(1, 300);
         delete from pgmq.q_{QUEUE}"
    );
    database.execute(&churn).await;
    let table = format!("pgmq.q_{QUEUE}");
    let dead = eventually("the server counted them", BUDGET, async || {
        let seen = look(&database.pool_as("spillway_gateway", 1)).await.unwrap();
        seen.dead_rows.iter().find(|rows| rows.table == table).map(|rows| rows.dead).filter(|dead| *dead > 0)
    })
    .await;

    assert_eq!(dead, 300);
}
