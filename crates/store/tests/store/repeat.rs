//! Deliveries that started nothing are counted under the row that stands for them.

use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use store::inbox::Outcome::{Coalesced, Duplicate, Queued};
use store::repeat::{Kind, Repeat, note};
use testkit::Database;
use tokio::sync::Barrier;
use uuid::Uuid;

use crate::samples::{accept, account, outcomes, sync};

fn repeat(inbox_id: Uuid, kind: Kind, at: DateTime<Utc>, correlation_id: &str) -> Repeat {
    Repeat { inbox_id, kind, at, correlation_id: correlation_id.to_owned() }
}

/// Noon of some day, and so many seconds.
fn noon(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_014_400, 0).unwrap() + Duration::seconds(seconds)
}

async fn latest(database: &Database) -> Vec<String> {
    let sql = "select e.value ->> 'correlation_id'
        from spillway.inbox_repeat, jsonb_array_elements(latest) with ordinality e order by e.ordinality";
    database.texts(sql).await
}

#[tokio::test]
async fn a_duplicate_and_a_coalesced_delivery_are_counted_under_the_row_that_won() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let account = account(&database).await;
    let events =
        [sync("evt-1", account), sync("evt-2", account), sync("evt-1", account), sync("evt-1", account)];
    let receipts = accept(&gateway, &events).await.unwrap();
    assert_eq!(outcomes(&receipts), [Queued, Coalesced, Duplicate, Duplicate]);
    let repeats: Vec<Repeat> = (0..)
        .zip(&receipts)
        .filter_map(|(i, receipt)| {
            let kind = match receipt.outcome {
                Duplicate => Kind::Duplicate,
                Coalesced => Kind::Coalesced,
                _ => return None,
            };
            Some(repeat(receipt.counted_under, kind, noon(i), "c"))
        })
        .collect();
    note(&gateway, &repeats).await.unwrap();

    let counted = "select concat_ws(' ', i.identity, r.duplicates, r.coalesced, r.shed)
        from spillway.inbox_repeat r join spillway.webhook_inbox i on i.id = r.inbox_id";
    assert_eq!(database.texts(counted).await, ["evt-1 2 1 0"]);
    let kinds = "select e ->> 'kind' || ' ' || (e ->> 'at')::timestamptz - first_at
        from spillway.inbox_repeat, jsonb_array_elements(latest) e";
    assert_eq!(
        database.texts(kinds).await,
        ["duplicate 00:00:02", "duplicate 00:00:01", "coalesced 00:00:00"]
    );
    let span = "select extract(epoch from last_at - first_at)::bigint from spillway.inbox_repeat";
    assert_eq!(database.number(span).await, 2);
}

#[tokio::test]
async fn only_the_latest_five_are_kept_in_detail() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let row = Uuid::now_v7();
    let first: Vec<Repeat> =
        (0..40).map(|i| repeat(row, Kind::Duplicate, noon(i), &format!("first-{i}"))).collect();
    note(&gateway, &first).await.unwrap();
    assert_eq!(latest(&database).await, ["first-39", "first-38", "first-37", "first-36", "first-35"]);
    let second: Vec<Repeat> =
        (40..42).map(|i| repeat(row, Kind::Coalesced, noon(i), &format!("second-{i}"))).collect();
    note(&gateway, &second).await.unwrap();

    assert_eq!(latest(&database).await, ["second-41", "second-40", "first-39", "first-38", "first-37"]);
    let sums = "select duplicates * 100 + coalesced from spillway.inbox_repeat";
    assert_eq!(database.number(sums).await, 4002);
}

#[tokio::test]
async fn a_note_that_comes_late_moves_only_the_beginning() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let row = Uuid::now_v7();
    for second in [10, 5] {
        note(&gateway, &[repeat(row, Kind::Duplicate, noon(second), "c")]).await.unwrap();
    }
    note(&gateway, &[]).await.unwrap();

    let times = format!(
        "select extract(epoch from t - '{}')::bigint::text
           from spillway.inbox_repeat, unnest(array[first_at, last_at]) t",
        noon(0).to_rfc3339()
    );
    assert_eq!(database.texts(&times).await, ["5", "10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_of_many_gateways_at_once_add_up() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 12);
    let rows: Arc<Vec<Uuid>> = Arc::new((0..20).map(|_| Uuid::now_v7()).collect());
    let start = Arc::new(Barrier::new(12));
    let tasks: Vec<_> = (0..12)
        .map(|task| {
            let (gateway, rows, start) = (gateway.clone(), Arc::clone(&rows), Arc::clone(&start));
            tokio::spawn(async move {
                let kind = if task % 3 == 0 { Kind::Coalesced } else { Kind::Duplicate };
                let mut repeats: Vec<Repeat> =
                    rows.iter().map(|row| repeat(*row, kind, noon(task), "c")).collect();
                if task % 2 == 0 {
                    repeats.reverse();
                }
                start.wait().await;
                for _ in 0..10 {
                    note(&gateway, &repeats).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }

    let odd = "select count(*) from spillway.inbox_repeat
        where duplicates <> 80 or coalesced <> 40 or jsonb_array_length(latest) <> 5";
    assert_eq!(database.number(odd).await, 0);
    assert_eq!(database.number("select count(*) from spillway.inbox_repeat").await, 20);
}
