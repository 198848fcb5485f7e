//! Claims, leases, and the plans of the statements that run all day.

use std::time::Duration;

use contract::{QueueSpec, Workload};
use sqlx::Row;
use store::Pool;
use store::queue::{Beat, Claimed, Fence, Held, beat, hand_back};
use testkit::Database;
use uuid::Uuid;

use crate::samples::{QUEUE, claim, command, enqueue};

pub(crate) const WORKLOAD: Workload = Workload::SnaptradeAccountSync;
pub(crate) const SPEC: &QueueSpec = WORKLOAD.queue();

/// A database with `n` waiting commands.
pub(crate) async fn with_commands(n: usize) -> (Database, Pool) {
    let database = Database::fresh().await;
    // Each of an account of its own: those of one account run one after the other.
    let batch: Vec<_> = (0..n).map(|i| command(&format!("key-{i}"), Uuid::now_v7())).collect();
    enqueue(&database.pool_as("spillway_gateway", 1), &batch).await.unwrap();
    let pool = database.pool_as("spillway_worker", 4);
    (database, pool)
}

/// Makes every claimed message due, as the end of its lease would.
pub(crate) async fn expire_leases(database: &Database) {
    database.execute(&format!("update pgmq.q_{QUEUE} set vt = now() - interval '1 s'")).await;
}

#[tokio::test]
async fn a_claim_takes_due_messages_with_their_commands() {
    let (_database, pool) = with_commands(3).await;
    let claimed = claim(&pool, SPEC, 2).await.unwrap();
    let rest = claim(&pool, SPEC, 10).await.unwrap();

    assert_eq!((claimed.len(), rest.len()), (2, 1));
    for Claimed { fence, command, .. } in claimed.iter().chain(&rest) {
        assert_eq!((fence.queue, fence.read_ct), (QUEUE, 1));
        let command = command.as_ref().expect("every message names a command");
        assert_eq!((command.attempts, command.is_closed), (0, false));
        assert_eq!(command.payload["work_type"], "holdings");
    }
    assert!(claim(&pool, SPEC, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_message_that_names_no_command_is_claimed_like_any_other() {
    let (database, pool) = with_commands(1).await;
    for message in [
        "{}",
        "{\"command\": \"no uuid\"}",
        "{\"command\": \"018f0000-0000-7000-8000-000000000001\"}",
        "[]",
        "7",
    ] {
        database.execute(&format!("select pgmq.send('{QUEUE}', '{message}')")).await;
    }
    database.execute(&format!("insert into pgmq.q_{QUEUE} (vt, message) values ('-infinity', null)")).await;
    let claimed = claim(&pool, SPEC, 10).await.unwrap();

    assert_eq!(claimed.len(), 7);
    assert_eq!(claimed.iter().filter(|message| message.command.is_some()).count(), 1);
}

#[tokio::test]
async fn a_heartbeat_renews_its_own_leases_and_names_the_lost_ones() {
    let (database, pool) = with_commands(2).await;
    let claimed = claim(&pool, SPEC, 2).await.unwrap();
    let stolen = claimed[0].fence;
    database
        .execute(&format!("update pgmq.q_{QUEUE} set read_ct = 2 where msg_id = {}", stolen.msg_id))
        .await;
    let beats: Vec<Beat> = claimed
        .iter()
        .map(|message| Beat {
            fence: message.fence,
            started: message.command.as_ref().map(|command| (command.id, message.claimed_at)),
        })
        .collect();
    let held = beat(&pool, QUEUE, SPEC.lease, &beats).await.unwrap();

    assert_eq!(held, [(claimed[1].fence, Held::Renewed)]);
    // Only the one that is still held is shown as running.
    assert_eq!(
        database
            .number(
                "select count(*) from spillway.command where status = 'running' and started_at is not null"
            )
            .await,
        1
    );
}

#[tokio::test]
async fn a_heartbeat_passes_a_row_that_somebody_else_is_writing() {
    let (database, pool) = with_commands(2).await;
    let claimed = claim(&pool, SPEC, 2).await.unwrap();
    let mut other = database.connect().await;
    let mut transaction = sqlx::Connection::begin(&mut other).await.unwrap();
    let busy = claimed[0].fence.msg_id;
    sqlx::raw_sql(&format!("select from pgmq.q_{QUEUE} where msg_id = {busy} for update"))
        .execute(&mut *transaction)
        .await
        .unwrap();
    let beats: Vec<Beat> =
        claimed.iter().map(|message| Beat { fence: message.fence, started: None }).collect();
    let mut held = beat(&pool, QUEUE, SPEC.lease, &beats).await.unwrap();
    held.sort_by_key(|(fence, _)| fence.msg_id);

    assert_eq!(held, [(claimed[0].fence, Held::Busy), (claimed[1].fence, Held::Renewed)]);
}

#[tokio::test]
async fn a_message_handed_back_is_due_at_once_and_costs_nothing() {
    let (database, pool) = with_commands(1).await;
    let claimed = claim(&pool, SPEC, 1).await.unwrap().remove(0);
    let command = claimed.command.unwrap().id;
    let back = hand_back(&pool, claimed.fence, Some(command), Duration::ZERO).await.unwrap();
    let again = claim(&pool, SPEC, 1).await.unwrap().remove(0);

    assert!(back);
    assert_eq!(again.fence.read_ct, 3, "one more for the hand-back, one more for the claim");
    assert_eq!(database.number("select outcomes::bigint from spillway.command").await, 1);
    assert!(
        !hand_back(&pool, claimed.fence, Some(command), Duration::ZERO).await.unwrap(),
        "the old lease is stale"
    );
    assert_eq!(database.number("select attempts::bigint from spillway.command").await, 0);
}

#[tokio::test]
async fn a_beat_that_comes_after_the_run_has_ended_changes_nothing() {
    let (database, pool) = with_commands(1).await;
    let claimed = claim(&pool, SPEC, 1).await.unwrap().remove(0);
    let command = claimed.command.as_ref().unwrap().id;
    assert!(hand_back(&pool, claimed.fence, Some(command), Duration::from_mins(30)).await.unwrap());
    let late = [Beat { fence: claimed.fence, started: Some((command, claimed.claimed_at)) }];

    assert!(beat(&pool, QUEUE, SPEC.lease, &late).await.unwrap().is_empty());
    assert_eq!(database.number("select count(*) from spillway.command where status = 'queued'").await, 1);
    let pause = format!("select extract(epoch from vt - now())::bigint from pgmq.q_{QUEUE}");
    assert!(database.number(&pause).await > 1700);
}

#[tokio::test]
async fn a_claim_reads_the_index_however_much_is_parked() {
    let (database, pool) = with_commands(10).await;
    database
        .execute(&format!(
            "insert into pgmq.q_{QUEUE} (vt, message)
               select now() + interval '1 h', '{{}}' from generate_series(1, 20000);
             analyze pgmq.q_{QUEUE}"
        ))
        .await;
    // The function's own statement, as the planner sees it.
    let source = format!("select prosrc from pg_proc where proname = 'queue_claim_{QUEUE}'");
    let body = database.texts(&source).await.remove(0);
    let start = body.find("select q.msg_id, q.vt, q.headers").unwrap();
    let end = start + body[start..].find("for update skip locked").unwrap();
    let statement = body[start..end].replace("p_look - cardinality(ids)", "10").replace("= nth", "= 1");
    let statement = statement.replace("coalesce(p_since[nth + 1], '-infinity')", "'-infinity'");
    let plan = database.texts(&format!("explain {statement} for update skip locked")).await.join("\n");
    assert!(plan.contains(&format!("Index Scan using q_{QUEUE}_lane_vt")), "{plan}");
    assert!(!plan.contains("Seq Scan on q_"), "{plan}");

    assert_eq!(claim(&pool, SPEC, 10).await.unwrap().len(), 10);
}

#[tokio::test]
async fn every_queue_has_its_functions_and_plans() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_worker", 1);
    for workload in Workload::ALL {
        let queue = workload.queue();
        let fence = Fence { queue: queue.name, msg_id: 1, read_ct: 1 };
        assert!(claim(&pool, queue, 5).await.unwrap().is_empty());
        assert!(
            beat(&pool, queue.name, queue.lease, &[Beat { fence, started: None }]).await.unwrap().is_empty()
        );
        assert!(!hand_back(&pool, fence, None, Duration::ZERO).await.unwrap());
        assert!(!store::ledger::drop_closed(&pool, fence).await.unwrap());
        let locked = format!("select spillway.queue_lock('{}', 1, 1)", queue.name);
        let row = sqlx::query(&locked).fetch_one(&mut database.connect().await).await.unwrap();
        assert!(!row.get::<bool, _>(0));
    }
    let operator = database.pool_as("spillway_operator", 1);
    assert_eq!(store::overview::depths(&operator).await.unwrap().len(), Workload::ALL.len());
}

/// The message and its command are committed together, so a claim that sees the one must see the other, also
/// where the commit falls into the claim.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_never_sees_a_message_before_its_command() {
    let (database, pool) = with_commands(0).await;
    let producers: Vec<_> = (0..4)
        .map(|producer| {
            let pool = database.pool_as("spillway_gateway", 1);
            tokio::spawn(async move {
                for i in 0..500 {
                    let command = command(&format!("key-{producer}-{i}"), Uuid::now_v7());
                    enqueue(&pool, &[command]).await.unwrap();
                }
            })
        })
        .collect();
    let mut claimed = 0;
    while claimed < 2000 {
        for message in claim(&pool, SPEC, 50).await.unwrap() {
            assert!(message.command.is_some(), "message {} of 2000", message.fence.msg_id);
            claimed += 1;
        }
    }
    for producer in producers {
        producer.await.unwrap();
    }
}
