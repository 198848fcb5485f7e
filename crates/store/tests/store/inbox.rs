//! What the inbox makes of deliveries.

use store::Fault;
use store::inbox::Outcome::{Duplicate, Quarantined, Queued};
use store::inbox::{Delivery, Fate, Outcome};
use testkit::Database;

use crate::samples::{FACTS, TRACEPARENT, accept, delivery, outcomes};

#[tokio::test]
async fn a_new_delivery_becomes_a_row_a_command_and_a_message() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let event = delivery("evt-1");
    let receipts = accept(&pool, std::slice::from_ref(&event)).await.unwrap();

    assert_eq!(receipts[0].outcome, Queued);
    assert_eq!(receipts[0].inbox_id, event.id);
    let command = receipts[0].command_id.unwrap();
    assert_eq!(
        database
            .number(&format!(
                "select count(*) from spillway.command where id = '{command}' and status = 'queued'"
            ))
            .await,
        1
    );
    let messages = database.texts(&format!("select message ->> 'command' from pgmq.q_{FACTS}")).await;
    assert_eq!(messages, [command.to_string()]);
    let traces = database.texts(&format!("select headers ->> 'traceparent' from pgmq.q_{FACTS}")).await;
    assert_eq!(traces, [TRACEPARENT]);
    // The bytes are kept; the derived form keeps the number as it was written.
    assert_eq!(
        database.texts("select convert_from(body, 'UTF8') from spillway.webhook_inbox").await,
        ["{\"a\":1.10}"]
    );
    assert_eq!(database.texts("select doc ->> 'a' from spillway.webhook_inbox").await, ["1.10"]);
}

#[tokio::test]
async fn a_second_delivery_is_not_accepted() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let first = accept(&pool, &[delivery("evt-1")]).await.unwrap();
    let second = accept(&pool, &[delivery("evt-1")]).await.unwrap();

    assert_eq!(second[0].outcome, Duplicate);
    assert_eq!((second[0].inbox_id, second[0].command_id), (first[0].inbox_id, first[0].command_id));
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{FACTS}")).await, 1);
}

#[tokio::test]
async fn the_same_identity_with_another_body_is_set_aside_and_stays_so() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let first = accept(&pool, &[delivery("evt-1")]).await.unwrap();
    let other = || Delivery { sha256: [8; 32], ..delivery("evt-1") };
    let second = accept(&pool, &[other()]).await.unwrap();
    let third = accept(&pool, &[other()]).await.unwrap();

    assert_eq!(second[0].outcome, Quarantined);
    assert_eq!(third[0], second[0]);
    let hashes =
        database.texts("select encode(body_sha256, 'hex') from spillway.webhook_inbox order by 1").await;
    assert_eq!(hashes, ["07".repeat(32), "08".repeat(32)]);
    let conflicts = database
        .texts("select conflicts_with::text from spillway.webhook_inbox where reason = 'identity_conflict'")
        .await;
    assert_eq!(conflicts, [first[0].inbox_id.to_string()]);
}

#[tokio::test]
async fn a_batch_folds_its_own_repetitions() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let conflict = Delivery { sha256: [9; 32], ..delivery("b") };
    let aside = |identity: &str| Delivery { fate: Fate::Quarantine("unknown_account"), ..delivery(identity) };
    let record = Delivery { fate: Fate::Record, ..delivery("d") };
    let batch = [delivery("b"), delivery("a"), delivery("b"), conflict, aside("c"), aside("c"), record];
    let receipts = accept(&pool, &batch).await.unwrap();

    assert_eq!(outcomes(&receipts)[1], Queued);
    let b: Vec<Outcome> = [0, 2, 3].map(|i| receipts[i].outcome).to_vec();
    assert!(b.contains(&Queued), "{b:?}");
    assert_eq!(outcomes(&receipts)[4..], [Quarantined, Quarantined, Queued]);
    assert_eq!(receipts[4].inbox_id, receipts[5].inbox_id);
    assert_eq!(receipts[6].command_id, None);
    assert!(b.iter().filter(|outcome| **outcome == Duplicate).count() <= 1);
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{FACTS}")).await, 2);
}

#[tokio::test]
async fn a_delivery_set_aside_once_is_accepted_when_its_account_is_known() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let unknown = Delivery { fate: Fate::Quarantine("unknown_account"), ..delivery("evt-1") };
    let first = accept(&pool, std::slice::from_ref(&unknown)).await.unwrap();
    let second = accept(&pool, &[delivery("evt-1")]).await.unwrap();
    // And what was accepted yesterday is a duplicate today, even if today it would be set aside.
    let third = accept(&pool, &[unknown]).await.unwrap();

    assert_eq!([first[0].outcome, second[0].outcome, third[0].outcome], [Quarantined, Queued, Duplicate]);
}

#[tokio::test]
async fn sixty_four_at_once_on_two_pools_make_one_row_and_one_message() {
    let database = Database::fresh().await;
    let pools = [database.pool_as("spillway_gateway", 16), database.pool_as("spillway_gateway", 16)];
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(64));
    let tasks: Vec<_> = (0..64)
        .map(|i| {
            let (pool, start) = (pools[i % 2].clone(), start.clone());
            tokio::spawn(async move {
                start.wait().await;
                accept(&pool, &[delivery("evt-1")]).await.unwrap()[0].outcome
            })
        })
        .collect();
    let mut queued = 0;
    for task in tasks {
        match task.await.unwrap() {
            Queued => queued += 1,
            outcome => assert_eq!(outcome, Duplicate),
        }
    }

    assert_eq!(queued, 1);
    assert_eq!(database.number("select count(*) from spillway.webhook_inbox").await, 1);
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{FACTS}")).await, 1);
}

#[tokio::test]
async fn overlapping_batches_in_any_order_do_not_deadlock() {
    let database = Database::fresh().await;
    let pools = [database.pool_as("spillway_gateway", 8), database.pool_as("spillway_gateway", 8)];
    let tasks: Vec<_> = (0..40)
        .map(|round| {
            let pool = pools[round % 2].clone();
            tokio::spawn(async move {
                let mut batch: Vec<Delivery> =
                    (0..30).map(|i| delivery(&format!("evt-{}-{i}", round / 4))).collect();
                if round % 3 == 0 {
                    batch.reverse();
                }
                accept(&pool, &batch).await.map(|_| ())
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }

    assert_eq!(database.number("select count(*) from spillway.webhook_inbox").await, 300);
}

#[tokio::test]
async fn a_number_that_only_jsonb_refuses_is_told_as_a_fault_of_the_values() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let tiny = Delivery { body: bytes::Bytes::from_static(b"{\"a\":1e-20000}"), ..delivery("evt-1") };
    let error = accept(&pool, &[delivery("evt-0"), tiny.clone()]).await.expect_err("jsonb refuses it");

    assert_eq!(error.fault(), Fault::Values);
    assert_eq!(database.number("select count(*) from spillway.webhook_inbox").await, 0);
    let as_bytes = Delivery { is_clean_json: false, ..tiny };
    assert_eq!(accept(&pool, &[as_bytes]).await.unwrap()[0].outcome, Queued);
}

#[tokio::test]
async fn a_secret_in_the_body_is_not_in_the_readable_form() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let body = bytes::Bytes::from_static(b"{\"webhookSecret\":\"canary\",\"a\":1}");
    accept(&pool, &[Delivery { body, ..delivery("evt-1") }]).await.unwrap();

    assert_eq!(database.texts("select doc::text from spillway.webhook_inbox").await, ["{\"a\": 1}"]);
}

#[tokio::test]
async fn nothing_is_promised_where_a_workload_has_no_row() {
    let database = Database::fresh().await;
    database.execute("delete from spillway.workload").await;
    accept(&database.pool_as("spillway_gateway", 1), &[delivery("evt-1")])
        .await
        .expect_err("no queue is known");

    assert_eq!(database.number("select count(*) from spillway.webhook_inbox").await, 0);
}

#[tokio::test]
async fn a_body_that_jsonb_refuses_is_kept_as_bytes() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 2);
    let dirty = Delivery {
        body: bytes::Bytes::from_static(b"{\"a\":\"\\u0000\"}"),
        is_clean_json: false,
        ..delivery("evt-1")
    };
    let receipts = accept(&pool, &[dirty]).await.unwrap();

    assert_eq!(receipts[0].outcome, Queued);
    assert_eq!(database.number("select count(*) from spillway.webhook_inbox where doc is null").await, 1);
}
