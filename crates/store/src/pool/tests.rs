//! What sqlx leaves behind when `begin()` is cancelled, and that it never reaches the next user.

use std::net::SocketAddr;
use std::time::Duration;

use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, Executor};
use testkit::proxy::Mode;
use testkit::{Database, Proxy};

use super::{Options, Pool, Pooler};

/// A database behind a proxy, with a table to write to.
async fn behind_a_proxy() -> (Database, Proxy, String) {
    let database = Database::empty().await;
    database.execute("create table kept (n int)").await;
    let url = url::Url::parse(&database.url()).expect("a URL");
    let server: SocketAddr =
        format!("{}:{}", url.host_str().unwrap(), url.port().unwrap()).parse().expect("an address");
    let proxy = Proxy::start(server).await;
    let mut through = url;
    through.set_port(Some(proxy.address().port())).expect("a port fits");
    let through = through.to_string();
    (database, proxy, through)
}

/// Cancels a `begin()` whose BEGIN is on its way, then writes two rows as the next user of the pool.
async fn cancel_begin_then_write(pool: &PgPool, proxy: &Proxy) {
    let mut connection = pool.acquire().await.unwrap();
    proxy.set(Mode::HoldAnswers);
    let begin = tokio::time::timeout(Duration::from_millis(200), connection.begin()).await;
    assert!(begin.is_err(), "the answer is held back");
    drop(begin);
    drop(connection);
    proxy.set(Mode::Pass);
    for n in 1..=2 {
        let mut connection = pool.acquire().await.unwrap();
        connection.execute(sqlx::query("insert into kept values ($1)").bind(n)).await.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_begin_loses_nothing() {
    let (database, proxy, url) = behind_a_proxy().await;
    let pool = Pool::prepare(&Options::of_url(url, 1), "victim", 1).unwrap();
    cancel_begin_then_write(&pool.inner, &proxy).await;

    assert_eq!(database.number("select count(*) from kept").await, 2);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the pool that ours is better than")]
async fn without_the_check_the_next_users_writes_vanish() {
    let (database, proxy, url) = behind_a_proxy().await;
    let bare = PgPoolOptions::new().max_connections(1).connect_lazy(&url).unwrap();
    cancel_begin_then_write(&bare, &proxy).await;

    assert_eq!(database.number("select count(*) from kept").await, 0, "sqlx is mended: the check may go");
}

#[tokio::test]
async fn a_connection_given_back_inside_a_transaction_is_closed() {
    let database = Database::empty().await;
    let pool = Pool::prepare(&Options::of_url(database.url(), 1), "victim", 1).unwrap();
    let backend = async |pool: &Pool| -> i32 {
        let mut session = pool.session().await.unwrap();
        let pid = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *session).await.unwrap();
        session.release().await.unwrap();
        pid
    };
    let first = backend(&pool).await;
    assert_eq!(backend(&pool).await, first, "a clean connection is used again");
    let mut session = pool.session().await.unwrap();
    session.execute(sqlx::raw_sql("begin")).await.unwrap();
    session.release().await.unwrap();

    assert_ne!(backend(&pool).await, first);
}

#[tokio::test]
async fn a_session_dropped_in_mid_call_is_closed() {
    let database = Database::empty().await;
    let pool = Pool::prepare(&Options::of_url(database.url(), 1), "victim", 1).unwrap();
    let slow = pool.bounded("sleeping", async {
        let mut session = pool.session().await?;
        session.execute(sqlx::raw_sql("select pg_sleep(30)")).await?;
        session.release().await?;
        Ok(())
    });
    assert!(tokio::time::timeout(Duration::from_millis(200), slow).await.is_err());

    pool.ping().await.unwrap();
}

/// A pool behind a transaction pooler, and a table that refuses a second row of the same number at the commit.
async fn behind_a_pooler() -> (Database, Pool) {
    let database = Database::empty().await;
    database.execute("create table kept (n int unique deferrable initially deferred)").await;
    let options = Options::of_url(database.pooled_url(), 4).behind(Pooler::Transaction);
    (database, Pool::prepare(&options, "victim", 4).unwrap())
}

const INSERT: &str = "insert into kept values ($1)";

#[tokio::test]
async fn behind_a_pooler_a_call_is_one_transaction_that_its_release_commits() {
    let (database, pool) = behind_a_pooler().await;
    let mut session = pool.session().await.unwrap();
    for n in 1..=2 {
        sqlx::query(INSERT).bind(n).execute(&mut *session).await.unwrap();
    }
    assert_eq!(database.number("select count(*) from kept").await, 0);
    session.release().await.unwrap();
    let mut dropped = pool.session().await.unwrap();
    sqlx::query(INSERT).bind(3).execute(&mut *dropped).await.unwrap();
    drop(dropped);
    let mut session = pool.session().await.unwrap();
    let mut transaction = session.begin().await.unwrap();
    sqlx::query(INSERT).bind(4).execute(&mut *transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    session.release().await.unwrap();

    assert_eq!(database.number("select count(*) from kept").await, 2);
}

#[tokio::test]
async fn behind_a_pooler_a_commit_that_stores_nothing_is_an_error() {
    let (database, pool) = behind_a_pooler().await;
    database.execute("insert into kept values (1)").await;
    let mut refused = pool.session().await.unwrap();
    sqlx::query(INSERT).bind(1).execute(&mut *refused).await.unwrap();
    assert!(refused.release().await.is_err(), "the number is there already");
    let mut failed = pool.session().await.unwrap();
    sqlx::query(INSERT).bind(2).execute(&mut *failed).await.unwrap();
    assert!(failed.execute(sqlx::raw_sql("select 1 / 0")).await.is_err());

    assert!(failed.release().await.is_err(), "a statement failed, so the commit is a rollback");
    assert_eq!(database.number("select count(*) from kept").await, 1);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_not_committed_by_the_release() {
    let database = Database::empty().await;
    database.execute("create table kept (n int)").await;
    for (url, pooler) in [(database.url(), Pooler::None), (database.pooled_url(), Pooler::Transaction)] {
        let pool = Pool::prepare(&Options::of_url(url, 1).behind(pooler), "victim", 1).unwrap();
        let mut session = pool.session().await.unwrap();
        let mut transaction = session.begin().await.unwrap();
        sqlx::query(INSERT).bind(1).execute(&mut *transaction).await.unwrap();
        // Neither committed nor rolled back.
        session.release().await.unwrap();
        pool.ping().await.unwrap();
    }

    assert_eq!(database.number("select count(*) from kept").await, 0);
}

#[tokio::test]
async fn behind_a_pooler_the_server_gives_up_as_early_as_without() {
    let (_database, pool) = behind_a_pooler().await;
    let mut session = pool.session().await.unwrap();
    let setting = sqlx::query_scalar("select current_setting('statement_timeout')");
    let statement_timeout: String = setting.fetch_one(&mut *session).await.unwrap();
    session.release().await.unwrap();

    assert_eq!(statement_timeout, "19s");
}
