//! Who may touch what: least rights for our roles, nothing for the public ones.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, raw_sql};
use testkit::Database;

/// `42501`: the role lacks a right, whatever a policy would show it.
pub(crate) async fn is_forbidden(connection: &mut PgConnection, role: &str, sql: &str) -> bool {
    let mut transaction = connection.begin().await.unwrap();
    raw_sql(&format!("set local role {role}")).execute(&mut *transaction).await.unwrap();
    let outcome = raw_sql(sql).execute(&mut *transaction).await;
    transaction.rollback().await.unwrap();
    match outcome {
        Ok(_) => false,
        Err(sqlx::Error::Database(refusal)) if refusal.code().as_deref() == Some("42501") => true,
        Err(error) => panic!("{role}: {sql}: {error}"),
    }
}

#[tokio::test]
async fn the_public_roles_reach_nothing_of_ours() {
    let database = Database::fresh().await;
    let mut connection = database.connect().await;
    let tables = database
        .texts("select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('spillway', 'pgmq')")
        .await;
    assert!(tables.len() > 40, "{}", tables.len());
    for role in ["anon", "authenticated"] {
        for table in &tables {
            assert!(
                is_forbidden(&mut connection, role, &format!("select count(1) from {table}")).await,
                "{role}: {table}"
            );
        }
        for call in [
            "select spillway.enqueue('[]')",
            "select spillway.queue_claim('sanmopia_document_rendering', 1, 1)",
            "select pgmq.send('sanmopia_document_rendering', '{}')",
            "select pgmq.read('sanmopia_document_rendering', 1, 1)",
        ] {
            assert!(is_forbidden(&mut connection, role, call).await, "{role}: {call}");
        }
    }
}

#[tokio::test]
async fn no_function_of_ours_is_for_everybody() {
    let database = Database::fresh().await;
    let open = database
        .texts(
            "select p.oid::regprocedure::text from pg_proc p
             where p.pronamespace = 'spillway'::regnamespace
               and (p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0))",
        )
        .await;

    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn every_table_of_ours_has_row_security() {
    let database = Database::fresh().await;
    let open = database
        .texts(
            "select c.oid::regclass::text from pg_class c
             where c.relkind in ('r', 'p') and not c.relrowsecurity
               and (c.relnamespace = 'spillway'::regnamespace
                 or (c.relnamespace = 'pgmq'::regnamespace and c.relname ~ '^[aq]_sanmopia'))",
        )
        .await;

    assert!(open.is_empty(), "{open:?}");
    let bypassing = database.texts("select rolname::text from pg_roles where rolname like 'spillway\\_%' and (rolbypassrls or rolsuper)").await;
    assert!(bypassing.is_empty(), "{bypassing:?}");
}

#[tokio::test]
async fn each_role_can_do_its_work_and_no_more() {
    let database = Database::fresh().await;
    let mut connection = database.connect().await;
    let queue = "pgmq.q_sanmopia_snaptrade_account_sync";
    let dead = "pgmq.q_sanmopia_snaptrade_account_sync_dead";
    let archive = "pgmq.a_sanmopia_snaptrade_account_sync";
    for (role, allowed, forbidden) in [
        (
            "spillway_gateway",
            vec![
                "select count(1) from spillway.command".to_owned(),
                "select pgmq.send('sanmopia_snaptrade_account_sync', '{}')".to_owned(),
                "select spillway.enqueue('[]')".to_owned(),
                "select account_id, state from spillway.snaptrade_account".to_owned(),
                "select spillway.trim_batch('command', null, 1, true)".to_owned(),
            ],
            vec![
                format!("select message from {queue}"),
                format!("delete from {queue}"),
                format!("update {queue} set vt = now()"),
                format!("select count(1) from {archive}"),
                format!("insert into {dead} (vt, message) values (now(), '{{}}')"),
                "update spillway.command set payload = '{}'".to_owned(),
                "delete from spillway.webhook_inbox".to_owned(),
                "delete from spillway.command".to_owned(),
                "update spillway.retention set keep = '1 hour'".to_owned(),
                "select spillway.trim_archives(now(), 1, true)".to_owned(),
                "update spillway.webhook_inbox set body = ''".to_owned(),
                "delete from spillway.payment_feed_entry".to_owned(),
                "select sealed_secret from spillway.snaptrade_user".to_owned(),
                "select count(1) from spillway.dead_letter".to_owned(),
                "select spillway.queue_claim('sanmopia_snaptrade_account_sync', 1, 1)".to_owned(),
            ],
        ),
        (
            "spillway_worker",
            vec![
                "select spillway.queue_claim('sanmopia_snaptrade_account_sync', 1, 1)".to_owned(),
                "select spillway.queue_archive('sanmopia_snaptrade_account_sync', '{1}', '{1}')".to_owned(),
                "select pgmq.send('sanmopia_snaptrade_account_sync_dead', '{}')".to_owned(),
                "select sealed_secret from spillway.snaptrade_user".to_owned(),
                "select spillway.trim_batch('command', null, 1, true)".to_owned(),
            ],
            vec![
                "update spillway.retention set keep = '1 hour'".to_owned(),
                format!("insert into {queue} (vt, message) values (now(), '{{}}')"),
                format!("select message from {dead}"),
                format!("delete from {dead}"),
                format!("delete from {archive}"),
                "insert into spillway.command (id) values (null)".to_owned(),
                "delete from spillway.command".to_owned(),
                "insert into spillway.webhook_inbox (id) values (null)".to_owned(),
                "select body from spillway.webhook_inbox".to_owned(),
                "update spillway.workload set max_attempts = 1".to_owned(),
                "update spillway.dead_letter set state = 'suppressed'".to_owned(),
            ],
        ),
        (
            "spillway_operator",
            vec![
                format!("select count(1) from {queue}"),
                "select count(1) from spillway.dead_letter".to_owned(),
                "select due from spillway.queue_depth('sanmopia_document_rendering', 10)".to_owned(),
                "select user_id from spillway.snaptrade_user".to_owned(),
            ],
            vec![
                format!("delete from {queue}"),
                "select sealed_secret from spillway.snaptrade_user".to_owned(),
                "delete from spillway.command".to_owned(),
                "select body from spillway.webhook_inbox".to_owned(),
                "update spillway.command set request_hash = ''".to_owned(),
                "select spillway.enqueue('[]')".to_owned(),
                "update spillway.retention set keep = '1 hour'".to_owned(),
                "delete from spillway.process".to_owned(),
                "update spillway.elected_job set holder = 'me'".to_owned(),
            ],
        ),
    ] {
        for sql in allowed {
            assert!(!is_forbidden(&mut connection, role, &sql).await, "{role} must be able to: {sql}");
        }
        for sql in forbidden {
            assert!(is_forbidden(&mut connection, role, &sql).await, "{role} must not: {sql}");
        }
    }
}

#[tokio::test]
async fn our_roles_carry_timeouts() {
    let database = Database::fresh().await;
    for role in ["spillway_gateway", "spillway_worker", "spillway_operator"] {
        for setting in ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] {
            let sql = format!(
                "select count(*) from pg_db_role_setting s join pg_roles r on r.oid = s.setrole,
                 unnest(s.setconfig) c where r.rolname = '{role}' and c like '{setting}=%'"
            );
            assert_eq!(database.number(&sql).await, 1, "{role} {setting}");
        }
    }
}

#[tokio::test]
async fn a_roles_url_has_its_rights_and_no_others() {
    let database = Database::fresh().await;
    for role in ["spillway_gateway", "spillway_worker", "spillway_operator"] {
        let mut connection = PgConnection::connect(&database.url_as(role)).await.unwrap();
        let own: String =
            sqlx::query_scalar("select current_user::text").fetch_one(&mut connection).await.unwrap();
        assert_eq!(own, role);
    }
}

#[tokio::test]
async fn the_policies_let_our_roles_see_the_rows_that_they_have_rights_on() {
    let database = Database::fresh().await;
    let delivery = crate::samples::sync("evt-1", crate::samples::account(&database).await);
    crate::samples::accept(&database.pool_as("spillway_gateway", 1), &[delivery]).await.unwrap();
    for (role, table) in [
        ("spillway_gateway", "spillway.command"),
        ("spillway_gateway", "spillway.webhook_inbox"),
        ("spillway_gateway", "spillway.workload"),
        ("spillway_worker", "spillway.command"),
        ("spillway_worker", "spillway.webhook_inbox"),
        ("spillway_worker", "pgmq.q_sanmopia_snaptrade_account_sync"),
        ("spillway_operator", "spillway.command"),
        ("spillway_operator", "spillway.webhook_inbox"),
        ("spillway_operator", "pgmq.q_sanmopia_snaptrade_account_sync"),
    ] {
        let mut connection = PgConnection::connect(&database.url_as(role)).await.unwrap();
        let count: i64 = sqlx::query_scalar(&format!("select count(1) from {table}"))
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert!(count >= 1, "{role} sees nothing in {table}");
    }
}

#[tokio::test]
async fn a_door_ends_a_command_only_by_taking_it_back() {
    let database = Database::fresh().await;
    let account = crate::samples::account(&database).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    crate::samples::enqueue(&gateway, &[crate::samples::command("key-1", account)]).await.unwrap();
    let mut connection = PgConnection::connect(&database.url_as("spillway_gateway")).await.unwrap();
    for (status, allowed) in
        [("succeeded", false), ("dead_lettered", false), ("running", false), ("cancelled", true)]
    {
        let sql = format!("update spillway.command set status = '{status}', finished_at = now()");
        let changed = sqlx::query(&sql).execute(&mut connection).await;
        assert_eq!(changed.is_ok_and(|changed| changed.rows_affected() == 1), allowed, "{status}");
    }
    let reopened = "update spillway.command set status = 'queued', finished_at = null";
    let reopened = sqlx::query(reopened).execute(&mut connection).await.unwrap();

    assert_eq!(reopened.rows_affected(), 0, "what has ended stays so");
}
