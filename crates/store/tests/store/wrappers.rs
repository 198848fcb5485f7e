//! `public.pgmq_read` and `public.pgmq_archive`: what a worker behind PostgREST may do, and nothing besides.

use contract::Workload;
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use store::migrate::run;
use store::{Pool, command};
use testkit::Database;
use uuid::Uuid;

use crate::acl::is_forbidden;
use crate::queue::{expire_leases, with_commands};
use crate::samples::{self, QUEUE, account, connect_as, refusal, sync};

type Message = (i64, i32, Value);

async fn read(connection: &mut PgConnection, n: i32) -> Vec<Message> {
    sqlx::query_as("select msg_id, read_ct, message from public.pgmq_read($1, 60, $2)")
        .bind(QUEUE)
        .bind(n)
        .fetch_all(connection)
        .await
        .unwrap()
}

async fn archive(connection: &mut PgConnection, (msg_id, read_ct, _): &Message) -> bool {
    sqlx::query_scalar("select public.pgmq_archive($1, $2, $3)")
        .bind(QUEUE)
        .bind(msg_id)
        .bind(read_ct)
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn ledger(database: &Database) -> Vec<String> {
    let sql =
        "select concat_ws(' ', status, attempts, outcomes, started_at is not null, finished_at is not null)
        from spillway.command order by 1 desc";
    database.texts(sql).await
}

async fn messages(database: &Database) -> (i64, i64) {
    let waiting = database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await;
    (waiting, database.number(&format!("select count(*) from pgmq.a_{QUEUE}")).await)
}

#[tokio::test]
async fn a_worker_behind_postgrest_reads_work_and_settles_it() {
    let (database, _) = with_commands(2).await;
    let mut worker = connect_as(&database, "service_role").await;
    let first = read(&mut worker, 1).await.remove(0);
    let command = &first.2["command"];
    assert_eq!((first.1, &first.2["kind"]), (1, &json!("snaptrade-account-sync")));
    assert_eq!(first.2["payload"]["work_type"], "holdings");
    let known = format!("select count(*) from spillway.command where id = '{}'", command.as_str().unwrap());
    assert_eq!(database.number(&known).await, 1);
    let second = read(&mut worker, 10).await;
    assert_eq!(second.len(), 1, "the first is under its lease");
    assert!(read(&mut worker, 10).await.is_empty());
    assert!(archive(&mut worker, &first).await);

    assert_eq!(ledger(&database).await, ["succeeded 1 1 t t", "queued 0 0 f f"]);
    assert_eq!(messages(&database).await, (1, 1));
    assert!(!archive(&mut worker, &first).await, "settled once");
    assert_eq!(ledger(&database).await, ["succeeded 1 1 t t", "queued 0 0 f f"]);
}

#[tokio::test]
async fn a_stale_claim_archives_nothing() {
    let (database, _) = with_commands(1).await;
    let mut worker = connect_as(&database, "service_role").await;
    let stale = read(&mut worker, 1).await.remove(0);
    expire_leases(&database).await;
    let owner = read(&mut worker, 1).await.remove(0);
    for read_ct in [stale.1, 0, owner.1 + 1] {
        assert!(!archive(&mut worker, &(stale.0, read_ct, Value::Null)).await, "{read_ct}");
    }
    assert!(!archive(&mut worker, &(owner.0 + 1, owner.1, Value::Null)).await, "no such message");
    assert_eq!(ledger(&database).await, ["queued 0 0 f f"]);
    assert_eq!(messages(&database).await, (1, 0));

    assert!(archive(&mut worker, &owner).await);
    assert_eq!(ledger(&database).await, ["succeeded 1 1 t t"]);
}

#[tokio::test]
async fn a_command_that_was_taken_back_is_not_handed_out() {
    let (database, _) = with_commands(3).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let ids = database.texts("select id::text from spillway.command order by id").await;
    assert!(command::cancel(&gateway, ids[1].parse().unwrap()).await.unwrap());
    let mut worker = connect_as(&database, "service_role").await;
    let claimed = read(&mut worker, 10).await;
    let mut handed_out: Vec<&str> =
        claimed.iter().map(|(_, _, message)| message["command"].as_str().unwrap()).collect();
    handed_out.sort_unstable();

    assert_eq!(handed_out, [&ids[0], &ids[2]]);
    assert_eq!(messages(&database).await, (2, 1));
    // One that is taken back during its run is archived, and stays taken back.
    let running = claimed[0].2["command"].as_str().unwrap();
    assert!(command::cancel(&gateway, running.parse().unwrap()).await.unwrap());
    assert!(archive(&mut worker, &claimed[0]).await);
    assert_eq!(ledger(&database).await, ["queued 0 0 f f", "cancelled 0 0 f t", "cancelled 0 0 f t"]);
}

#[tokio::test]
async fn a_message_that_names_no_command_is_read_and_archived_as_it_is() {
    let (database, _) = with_commands(0).await;
    for message in ["{\"hello\": 1}", "[7]"] {
        database.execute(&format!("select pgmq.send('{QUEUE}', '{message}')")).await;
    }
    let mut worker = connect_as(&database, "service_role").await;
    let read = read(&mut worker, 2).await;

    assert_eq!(
        read.iter().map(|(_, _, message)| message).collect::<Vec<_>>(),
        [&json!({"hello": 1}), &json!([7])]
    );
    for message in &read {
        assert!(archive(&mut worker, message).await);
    }
    assert_eq!(messages(&database).await, (0, 2));
}

#[tokio::test]
async fn a_sync_that_is_settled_here_makes_room_for_the_next_one() {
    let database = Database::fresh().await;
    let account = account(&database).await;
    let gateway: Pool = database.pool_as("spillway_gateway", 1);
    samples::accept(&gateway, &[sync("evt-1", account)]).await.unwrap();
    let mut worker = connect_as(&database, "service_role").await;
    let message = read(&mut worker, 1).await.remove(0);
    assert!(archive(&mut worker, &message).await);
    let next = samples::accept(&gateway, &[sync("evt-2", account)]).await.unwrap();

    assert_eq!(samples::outcomes(&next), [store::inbox::Outcome::Queued]);
}

#[tokio::test]
async fn only_the_contracts_queues_can_be_named() {
    let (database, _) = with_commands(1).await;
    database.execute("select pgmq.create('somebody_elses')").await;
    let mut worker = connect_as(&database, "service_role").await;
    for queue in [
        "somebody_elses".to_owned(),
        format!("{QUEUE}_dead"),
        format!("q_{QUEUE}"),
        QUEUE.to_uppercase(),
        format!("{QUEUE} "),
        "q; drop table spillway.command".to_owned(),
        format!("{QUEUE}; drop table spillway.command; --"),
        format!("{QUEUE}(1, 1); drop table spillway.command; --"),
        String::new(),
    ] {
        let quoted = queue.replace('\'', "''");
        for call in [
            format!("select public.pgmq_read('{quoted}', 60, 1)"),
            format!("select public.pgmq_archive('{quoted}', 1, 1)"),
        ] {
            let refused = refusal(&mut worker, &call).await;
            assert_eq!(refused, format!("42P01 no queue is called {queue}"), "{call}");
        }
    }
    for call in ["select public.pgmq_read(null, 60, 1)", "select public.pgmq_archive(null, 1, 1)"] {
        assert!(refusal(&mut worker, call).await.starts_with("42P01 "), "{call}");
    }

    assert_eq!(ledger(&database).await, ["queued 0 0 f f"]);
    for workload in Workload::ALL {
        let call = format!("select public.pgmq_read('{}', 1, 1)", workload.queue().name);
        sqlx::raw_sql(&call).execute(&mut worker).await.unwrap();
    }
}

#[tokio::test]
async fn a_read_without_bounds_is_refused() {
    let (database, _) = with_commands(1).await;
    let mut worker = connect_as(&database, "service_role").await;
    for bounds in ["0, 1", "-1, 1", "60, 0", "60, 1001", "60, -1", "null, 1", "60, null", "null, null"] {
        let refused = refusal(&mut worker, &format!("select public.pgmq_read('{QUEUE}', {bounds})")).await;
        assert!(refused.starts_with("22023 sleep_seconds must be"), "{bounds}: {refused}");
    }
    let nothing =
        format!("select count(*) from public.pgmq_archive('{QUEUE}', null, null) done where not done");
    let nothing: i64 = sqlx::query_scalar(&nothing).fetch_one(&mut worker).await.unwrap();

    assert_eq!((nothing, read(&mut worker, 1).await.len()), (1, 1));
}

async fn assert_for_service_role_only(database: &Database) {
    let mut connection = database.connect().await;
    for call in [
        format!("select public.pgmq_read('{QUEUE}', 60, 1)"),
        format!("select public.pgmq_archive('{QUEUE}', 1, 1)"),
    ] {
        assert!(!is_forbidden(&mut connection, "service_role", &call).await, "{call}");
        for role in ["anon", "authenticated", "spillway_gateway", "spillway_worker", "spillway_operator"] {
            assert!(is_forbidden(&mut connection, role, &call).await, "{role}: {call}");
        }
    }
}

#[tokio::test]
async fn they_are_for_the_service_role_alone() {
    assert_for_service_role_only(&Database::fresh().await).await;
}

#[tokio::test]
async fn so_they_are_where_every_new_function_of_public_is_granted_to_the_public_roles() {
    // A first run makes the roles; what it made in this database is taken away again.
    let database = Database::fresh().await;
    database
        .execute(
            "drop schema spillway cascade; drop schema pgmq cascade;
             drop function public.pgmq_read, public.pgmq_archive;
             alter default privileges in schema public grant execute on functions to anon, authenticated, service_role",
        )
        .await;
    run(&database.options(2)).await.unwrap();

    assert_for_service_role_only(&database).await;
}

/// Everything that the functions use by a bare name, for a caller whose path finds the attacker's first.
const HOSTILE: &str = "
    create schema hostile;
    create function hostile.caught() returns boolean language plpgsql as $$
      begin raise exception 'the caller''s path was used'; end $$;
    create function hostile.clock_timestamp() returns timestamptz language sql as
      'select case when hostile.caught() then now() end';
    create function hostile.statement_timestamp() returns timestamptz language sql as
      'select case when hostile.caught() then now() end';
    create function hostile.gen_random_uuid() returns uuid language sql as
      'select case when hostile.caught() then null::uuid end';
    create function hostile.jsonb_build_object(variadic \"any\") returns jsonb language internal as 'jsonb_build_object';
    create function hostile.sha256(bytea) returns bytea language sql as
      'select case when hostile.caught() then ''''::bytea end';
    create function hostile.queue_claim(text, int, bigint) returns boolean language sql as 'select hostile.caught()';
    create function hostile.queue_archive(text, bigint[], int[]) returns boolean language sql as 'select hostile.caught()';
    create function hostile.command_of(jsonb) returns uuid language sql as
      'select case when hostile.caught() then null::uuid end';
    create function hostile.is_less(timestamptz, timestamptz) returns boolean language sql as 'select hostile.caught()';
    create operator hostile.<= (leftarg = timestamptz, rightarg = timestamptz, function = hostile.is_less);
    create table hostile.command (id uuid, status text);
    create table hostile.workload (kind text, class smallint, queue text);
    insert into hostile.workload values ('snaptrade-account-sync', 0, 'hostile'), ('hostile', 0, 'hostile');
    grant usage on schema hostile to service_role;
    grant all on all tables in schema hostile to service_role;
    grant temporary on database current to service_role";

#[tokio::test]
async fn a_callers_search_path_changes_nothing() {
    let (database, _) = with_commands(1).await;
    let name = database.texts("select quote_ident(current_database())").await.remove(0);
    database.execute(&HOSTILE.replace("on database current", &format!("on database {name}"))).await;
    let mut caller = connect_as(&database, "service_role").await;
    sqlx::raw_sql(
        "set search_path = hostile, pg_catalog;
         create temporary table command (id uuid, status text);
         create temporary table workload (kind text, class smallint, queue text)",
    )
    .execute(&mut caller)
    .await
    .unwrap();
    let caught = refusal(&mut caller, "select clock_timestamp()").await;
    assert!(caught.ends_with("the caller's path was used"), "the trap works: {caught}");

    let message = read(&mut caller, 1).await.remove(0);
    assert!(archive(&mut caller, &message).await);
    let submit = "select command_id from spillway.submit(
        'snaptrade-account-sync', 'key', '{\"work_type\": \"holdings\"}', 'user-1', 'branch-1')";
    let id: Uuid = sqlx::query_scalar(submit).fetch_one(&mut caller).await.unwrap();
    let refused = "select command_id from spillway.submit('hostile', 'key', '{}', 'user-1', 'branch-1')";
    assert_eq!(refusal(&mut caller, refused).await, "22023 no workload is called hostile");

    assert_eq!(ledger(&database).await, ["succeeded 1 1 t t", "queued 0 0 f f"]);
    let row = format!("select count(*) from spillway.command where id = '{id}' and class = 1");
    assert_eq!(database.number(&row).await, 1);
}

#[tokio::test]
async fn every_function_that_lends_its_owners_rights_pins_its_search_path() {
    let database = Database::fresh().await;
    let lending = "select p.proname || coalesce(array_to_string(p.proconfig, ','), ' is open') from pg_proc p
        where p.prosecdef and p.pronamespace in ('spillway'::regnamespace, 'public'::regnamespace) order by 1";
    let pinned = "search_path=pg_catalog, pg_temp";
    let expected = ["pgmq_archive", "pgmq_read", "submit"].map(|name| format!("{name}{pinned}"));

    assert_eq!(database.texts(lending).await, expected);
}
