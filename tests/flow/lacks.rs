//! The patches with which chaos drills take a guard out of the database: each finds what it takes away, and leaves a
//! database that works while nothing goes wrong.

use lab::connection::Settings;
use lab::storm::{Args, blow};
use testkit::Database;

use crate::platform::Platform;
use crate::program::Program;

/// Each patch, with the function in front of it that all of them call.
fn patches() -> Vec<String> {
    let common = std::fs::read_to_string("lab/chaos/take_away.sql").unwrap();
    let files = std::fs::read_dir("lab/chaos/lacks").unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| common.clone() + &std::fs::read_to_string(file).unwrap()).collect()
}

#[tokio::test]
async fn a_guard_can_be_taken_away_once() {
    for patch in patches() {
        let database = Database::fresh().await;
        database.execute(&patch).await;
        let again = tokio::spawn(async move { database.execute(&patch).await });

        assert!(again.await.is_err(), "what is gone can't be taken away");
    }
}

#[tokio::test]
async fn without_any_guard_everything_ends_once_while_nothing_goes_wrong() {
    let platform = Platform::with(2, 0).await;
    for patch in patches() {
        platform.database.execute(&patch).await;
    }
    let args = Args {
        events: 200,
        accounts: 20,
        duplicates: 0.5,
        clients: 8,
        seed: Some(20_260_501),
        gateways: platform.gateways.iter().map(|gateway| gateway.url.clone()).collect(),
        wait_seconds: 60,
        json: false,
    };
    let worker =
        Program::start("webhook-worker", &["--queue", "snaptrade-account-sync"], &platform.settings());
    let report = blow(&args, &Settings::of(platform.settings())).await.unwrap();

    assert!(report.is_whole(), "{report:?}");
    assert_eq!(platform.count("spillway.command where status <> 'succeeded'").await, 0);
    assert_eq!(worker.terminate().await, Some(0));
}
