//! Supabase ships pgmq 1.5.1: nothing that came later may be needed, and what waits in its queues is kept.

use std::time::Duration;

use contract::{Cause, DeadReason, QueueSpec, RetryClass, Workload};
use sqlx::raw_sql;
use store::inbox::Outcome::Queued;
use store::ledger::{Dead, Done, Unfinished, bury, delay, drop_closed, succeed};
use store::migrate::run;
use store::queue::{Beat, Claimed, Held, beat, hand_back};
use testkit::Database;
use uuid::Uuid;

use crate::samples::{FACTS, accept, claim, connect_as, delivery};

const PGMQ: &str = include_str!("fixtures/pgmq-1.5.1.sql");
const RELATIONSHIPS: &QueueSpec = Workload::SpicedbRelationshipSync.queue();

/// A database as the business's backend left it: pgmq 1.5.1 with a queue that it made itself and has used. Of five
/// messages one is archived and one is claimed.
async fn in_use() -> Database {
    let database = Database::empty().await;
    database.execute(PGMQ).await;
    database
        .execute(
            "select pgmq.create('sanmopia_spicedb_relationships');
             select pgmq.send('sanmopia_spicedb_relationships', jsonb_build_object('relationship', n))
             from generate_series(1, 5) n;
             select pgmq.archive('sanmopia_spicedb_relationships', 1);
             select msg_id from pgmq.read('sanmopia_spicedb_relationships', 3600, 1)",
        )
        .await;
    database
}

async fn migrated() -> Database {
    let database = in_use().await;
    let report = run(&database.options(2)).await.unwrap();
    assert!(!report.installed_pgmq, "what is there is used");
    database
}

fn cause() -> Cause {
    Cause::new(RetryClass::Transient, "timeout", "no answer in time")
}

fn dead<'a>(message: &Claimed, workload: Workload, cause: &'a Cause) -> Dead<'a> {
    Dead {
        id: Uuid::now_v7(),
        fence: message.fence,
        command: message.command.as_ref().map(|command| command.id),
        workload,
        reason: DeadReason::AttemptsExhausted,
        cause,
        worker: "worker-1",
    }
}

#[tokio::test]
async fn this_is_1_5_1_and_migrating_leaves_it_so() {
    let database = migrated().await;
    let newer = "select p.proname::text from pg_proc p where p.pronamespace = 'pgmq'::regnamespace
          and (p.proname ~ 'notify|topic|grouped|fifo' or p.proname = 'pop' and p.pronargs > 1
            or p.proname = 'set_vt' and 'integer'::regtype <> all (p.proargtypes[2:2]))
        union all
        select c.relname || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = 'pgmq'::regnamespace and a.attname = 'last_read_at'";

    assert!(database.texts(newer).await.is_empty());
    let ours =
        "select count(*) from pg_proc where pronamespace = 'pgmq'::regnamespace and proname = 'send_batch'";
    assert_eq!(database.number(ours).await, 6);
    store::contract_check::require(&database.pool_as("spillway_worker", 1)).await.unwrap();
    assert_eq!(run(&database.options(2)).await.unwrap(), store::migrate::Report::default());
}

#[tokio::test]
async fn messages_that_were_there_are_kept_and_worked_on() {
    let database = migrated().await;
    let waiting = "select concat_ws(' ', msg_id, read_ct, message -> 'relationship', vt > now())
        from pgmq.q_sanmopia_spicedb_relationships order by msg_id";
    assert_eq!(database.texts(waiting).await, ["2 1 2 t", "3 0 3 f", "4 0 4 f", "5 0 5 f"]);
    let archived = "select concat_ws(' ', msg_id, message -> 'relationship')
        from pgmq.a_sanmopia_spicedb_relationships order by msg_id";
    assert_eq!(database.texts(archived).await, ["1 1"]);
    let worker = database.pool_as("spillway_worker", 1);
    let mut claimed = claim(&worker, RELATIONSHIPS, 10).await.unwrap();
    claimed.sort_by_key(|message| message.fence.msg_id);
    assert_eq!(claimed.iter().map(|message| message.fence.msg_id).collect::<Vec<_>>(), [3, 4, 5]);
    // They name no command of ours: what we can't run is kept where a person finds it.
    let cause = cause();
    assert!(bury(&worker, &dead(&claimed[0], Workload::SpicedbRelationshipSync, &cause)).await.unwrap());
    assert!(drop_closed(&worker, claimed[1].fence).await.unwrap());
    assert!(hand_back(&worker, claimed[2].fence, None, Duration::ZERO).await.unwrap());

    assert_eq!(database.texts(archived).await, ["1 1", "3 3", "4 4"]);
    let letters =
        store::dead_letter::list(&database.pool_as("spillway_operator", 1), None, 10).await.unwrap();
    let shown = store::dead_letter::show(&database.pool_as("spillway_operator", 1), letters[0].id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(shown.message["relationship"], 3);
    // The backend's own calls go on working, with ids that go on.
    let mut backend = database.connect().await;
    let sent: i64 =
        sqlx::query_scalar("select pgmq.send('sanmopia_spicedb_relationships', '{\"relationship\": 6}')")
            .fetch_one(&mut backend)
            .await
            .unwrap();
    assert_eq!(sent, 6);
    raw_sql("select msg_id from pgmq.read('sanmopia_spicedb_relationships', 60, 10)")
        .execute(&mut backend)
        .await
        .unwrap();
    assert_eq!(database.texts(waiting).await, ["2 1 2 t", "5 3 5 t", "6 1 6 t"]);
}

#[tokio::test]
async fn a_webhook_goes_all_the_way() {
    let database = migrated().await;
    let (gateway, worker) = (database.pool_as("spillway_gateway", 1), database.pool_as("spillway_worker", 1));
    let batch: Vec<_> = (0..4).map(|i| delivery(&format!("evt-{i}"))).collect();
    let receipts = accept(&gateway, &batch).await.unwrap();
    assert!(receipts.iter().all(|receipt| receipt.outcome == Queued));
    let spec = Workload::PaymentWebhookProcessing.queue();
    let claimed = claim(&worker, spec, 10).await.unwrap();
    assert_eq!(claimed.len(), 4);
    assert!(claimed.iter().all(|message| message.command.is_some()));
    let beats: Vec<Beat> = claimed
        .iter()
        .map(|message| Beat {
            fence: message.fence,
            started: message.command.as_ref().map(|command| (command.id, message.claimed_at)),
        })
        .collect();
    let held = beat(&worker, FACTS, spec.lease, &beats).await.unwrap();
    assert!(held.len() == 4 && held.iter().all(|(_, held)| *held == Held::Renewed));
    let done = Done {
        fence: claimed[0].fence,
        command: claimed[0].command.as_ref().unwrap().id,
        started_at: claimed[0].claimed_at,
        result: None,
        request_ids: Vec::new(),
    };
    let cause = cause();
    let failed = Unfinished {
        fence: claimed[1].fence,
        command: claimed[1].command.as_ref().unwrap().id,
        after: Duration::from_mins(1),
        cause: &cause,
        worker: "worker-1",
    };
    assert_eq!(succeed(&worker, FACTS, &[done]).await.unwrap(), [claimed[0].fence.msg_id]);
    assert!(delay(&worker, &failed).await.unwrap());
    assert!(bury(&worker, &dead(&claimed[2], Workload::PaymentWebhookProcessing, &cause)).await.unwrap());
    assert!(
        hand_back(&worker, claimed[3].fence, claimed[3].command.as_ref().map(|c| c.id), Duration::ZERO)
            .await
            .unwrap()
    );

    let statuses = "select status from spillway.command order by status";
    assert_eq!(database.texts(statuses).await, ["dead_lettered", "queued", "retrying", "succeeded"]);
    let counts = format!(
        "select concat_ws(' ', (select count(*) from pgmq.q_{FACTS}), (select count(*) from pgmq.a_{FACTS}),
           (select count(*) from pgmq.q_{FACTS}_dead d join spillway.dead_letter l on l.dead_msg_id = d.msg_id))"
    );
    assert_eq!(database.texts(&counts).await, ["2 2 1"]);
    let depths = store::overview::depths(&database.pool_as("spillway_operator", 1)).await.unwrap();
    let depth = depths.iter().find(|depth| depth.workload == Workload::PaymentWebhookProcessing).unwrap();
    assert_eq!((depth.due, depth.later, depth.open_dead_letters), (1, 1, 1));
    assert!(depth.oldest_due_at.is_some());
}

#[tokio::test]
async fn a_command_of_a_transaction_of_the_business_goes_all_the_way() {
    let database = migrated().await;
    let mut business = connect_as(&database, "service_role").await;
    let submit = "select command_id from spillway.submit(
        'spicedb-relationship-sync', 'key', '{\"relationship\": 6}', 'user-1', 'branch-1')";
    let id: Uuid = sqlx::query_scalar(submit).fetch_one(&mut business).await.unwrap();
    let read = "select msg_id, read_ct from public.pgmq_read('sanmopia_spicedb_relationships', 60, 10)
        where message ->> 'command' = $1";
    let (msg_id, read_ct): (i64, i32) =
        sqlx::query_as(read).bind(id.to_string()).fetch_one(&mut business).await.unwrap();
    let archived: bool =
        sqlx::query_scalar("select public.pgmq_archive('sanmopia_spicedb_relationships', $1, $2)")
            .bind(msg_id)
            .bind(read_ct)
            .fetch_one(&mut business)
            .await
            .unwrap();

    assert_eq!((msg_id, archived), (6, true));
    assert_eq!(database.texts("select status from spillway.command").await, ["succeeded"]);
}
