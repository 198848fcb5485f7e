//! A connection that is still inside a transaction never reaches the next user.

use std::time::Duration;

use sqlx::Connection;
use store::{Fault, Options, Pool};
use testkit::Database;

/// Holds the answer of the backend's next statement by stopping the backend's process.
async fn backend_of(database: &Database) -> i64 {
    database
        .number("select pid::bigint from pg_stat_activity where application_name = 'spillway victim'")
        .await
}

#[tokio::test]
async fn a_call_that_takes_too_long_loses_its_connection_and_nothing_else() {
    let database = Database::fresh().await;
    let impatient = Options::of_url(database.url(), 1).with_deadline(Duration::from_millis(300));
    let pool = Pool::prepare(&impatient, "victim", 1).unwrap();
    pool.ping().await.unwrap();
    let first = backend_of(&database).await;

    let mut blocker = database.connect().await;
    let mut transaction = blocker.begin().await.unwrap();
    sqlx::raw_sql("lock table spillway.workload in access exclusive mode")
        .execute(&mut *transaction)
        .await
        .unwrap();
    let error = store::contract_check::require(&pool).await.expect_err("the table is locked");
    assert_eq!(error.fault(), Fault::Passing, "{error:?}");
    transaction.rollback().await.unwrap();

    store::contract_check::require(&pool).await.unwrap();
    assert_ne!(backend_of(&database).await, first, "the late answer went down with its connection");
}
