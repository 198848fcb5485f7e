//! Who is there, and who does what one does for all.

use std::time::Duration;

use contract::Workload;
use store::elected_job::{hold, release};
use store::process::{Identity, beat, leave, list, versions, workers};
use testkit::Database;

const LEASE: Duration = Duration::from_mins(1);

fn worker(id: &str, version: &'static str) -> Identity {
    Identity {
        id: id.to_owned(),
        kind: "webhook-worker",
        version,
        host: "host-1".to_owned(),
        pid: 7,
        queue: Some(Workload::SnaptradeAccountSync.queue().name),
        slots: 16,
    }
}

#[tokio::test]
async fn a_process_is_live_until_it_leaves_or_falls_silent() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_worker", 1);
    for identity in [worker("a", "1.0.0"), worker("b", "1.1.0"), worker("c", "1.1.0")] {
        beat(&pool, &identity).await.unwrap();
        beat(&pool, &identity).await.unwrap();
    }
    leave(&pool, "c").await.unwrap();
    let operator = database.pool_as("spillway_operator", 1);
    let seen = list(&operator).await.unwrap();
    assert_eq!(
        seen.iter().map(|process| (&*process.id, process.is_live)).collect::<Vec<_>>(),
        [("a", true), ("b", true)]
    );
    assert_eq!(versions(&seen).into_iter().collect::<Vec<_>>(), [("1.0.0", 1), ("1.1.0", 1)]);

    database
        .execute("update spillway.process set last_seen_at = now() - interval '31 s' where id = 'a'")
        .await;
    let seen = list(&operator).await.unwrap();
    let attended: Vec<_> = workers(&seen).into_iter().filter(|(_, workers)| *workers > 0).collect();
    assert_eq!(attended, [(Workload::SnaptradeAccountSync, 1)]);
    assert_eq!(versions(&seen).into_keys().collect::<Vec<_>>(), ["1.1.0"]);

    beat(&pool, &worker("a", "1.0.0")).await.unwrap();
    assert!(list(&operator).await.unwrap().iter().all(|process| process.is_live));
}

#[tokio::test]
async fn processes_that_have_been_silent_for_a_day_are_trimmed() {
    use store::retention::{Mode, batch};

    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_gateway", 1);
    for identity in [worker("a", "1.0.0"), worker("b", "1.0.0")] {
        beat(&pool, &identity).await.unwrap();
    }
    database
        .execute("update spillway.process set last_seen_at = now() - interval '25 h' where id = 'a'")
        .await;
    let past = |mode| batch(&pool, "process", None, 10, mode);

    assert_eq!(past(Mode::Count).await.unwrap().past, 1);
    assert_eq!(past(Mode::Remove).await.unwrap().past, 1);
    assert_eq!(database.texts("select id from spillway.process").await, ["b"]);
}

#[tokio::test]
async fn of_many_candidates_one_is_elected() {
    let database = Database::fresh().await;
    let pool = database.pool_as("spillway_worker", 8);
    let candidates: Vec<_> = (0..16)
        .map(|i| {
            let pool = pool.clone();
            tokio::spawn(async move { hold(&pool, "trim", &format!("process-{i}"), LEASE).await.unwrap() })
        })
        .collect();
    let mut elected = 0;
    for candidate in candidates {
        elected += u32::from(candidate.await.unwrap());
    }

    assert_eq!(elected, 1);
}

#[tokio::test]
async fn a_dead_holder_is_succeeded_and_does_not_come_back() {
    let database = Database::fresh().await;
    let (gateway, worker) = (database.pool_as("spillway_gateway", 1), database.pool_as("spillway_worker", 1));
    assert!(hold(&gateway, "trim", "one", LEASE).await.unwrap());
    assert!(hold(&gateway, "trim", "one", LEASE).await.unwrap(), "it renews");
    assert!(!hold(&worker, "trim", "two", LEASE).await.unwrap());
    assert!(hold(&worker, "watch", "two", LEASE).await.unwrap(), "another job");

    database.execute("update spillway.elected_job set until = now() where name = 'trim'").await;
    assert!(hold(&worker, "trim", "two", LEASE).await.unwrap());
    assert!(!hold(&gateway, "trim", "one", LEASE).await.unwrap());
    release(&gateway, "trim", "one").await.unwrap();
    assert!(!hold(&gateway, "trim", "one", LEASE).await.unwrap(), "what it does not hold it can't release");
    release(&worker, "trim", "two").await.unwrap();
    assert!(hold(&gateway, "trim", "one", LEASE).await.unwrap());
}
