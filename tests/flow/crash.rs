//! Two thousand events, and a worker that is killed in the middle.

use lab::connection::Settings;
use lab::storm::{Args, Report, blow};
use testkit::eventually;

use crate::platform::{BUDGET, Platform, QUEUE};
use crate::program::Program;

const WORKER: &[&str] = &["--queue", "snaptrade-account-sync"];

fn storm(platform: &Platform) -> impl Future<Output = Report> + use<> {
    let args = Args {
        events: 2000,
        accounts: 200,
        duplicates: 0.6,
        clients: 32,
        seed: Some(20_260_501),
        gateways: platform.gateways.iter().map(|gateway| gateway.url.clone()).collect(),
        wait_seconds: 150,
        json: false,
    };
    let settings = Settings::of(platform.settings());
    async move { blow(&args, &settings).await.expect("the platform is there") }
}

/// The commands that have not ended, with what became of their messages.
async fn open_commands(platform: &Platform) -> Vec<String> {
    let sql = format!(
        "select concat_ws(' ', c.id, c.status, 'attempts', c.attempts, 'outcomes', c.outcomes, c.failure_code,
           'queued', q.msg_id, q.read_ct, q.vt - now(), 'archived', a.msg_id, a.read_ct, a.archived_at - c.accepted_at)
         from spillway.command c
         left join pgmq.q_{QUEUE} q on spillway.command_of(q.message) = c.id
         left join pgmq.a_{QUEUE} a on spillway.command_of(a.message) = c.id
         where c.finished_at is null"
    );
    platform.database.texts(&sql).await
}

async fn assert_whole(platform: &Platform, report: &Report) {
    assert!(report.is_whole(), "{report:?}\n{}", open_commands(platform).await.join("\n"));
    let queued = report.outcomes["queued"];
    let coalesced = report.outcomes.get("coalesced").copied().unwrap_or_default();
    assert_eq!((queued + coalesced, report.outcomes["duplicate"]), (800, 1200));
    assert_eq!(report.ended["succeeded"], queued, "{report:?}");
    assert_eq!(platform.count("spillway.webhook_inbox").await, 800);
    assert_eq!(platform.count("spillway.account_sync where ok_through <> requested").await, 0);
    assert_eq!(platform.count("spillway.account_sync where waiting_command is not null").await, 0);
    assert_eq!(
        platform.database.number("select sum(requested)::bigint from spillway.account_sync").await,
        800
    );
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 0);
    assert_eq!(platform.count(&format!("pgmq.a_{QUEUE}")).await, i64::try_from(queued).unwrap_or(0));
    assert_eq!(platform.count("spillway.dead_letter").await, 0);
}

#[tokio::test]
async fn a_storm_of_two_thousand_events_ends_once_each() {
    let platform = Platform::with(2, 0).await;
    let worker = Program::start("webhook-worker", WORKER, &platform.settings());
    let report = storm(&platform).await;

    assert_whole(&platform, &report).await;
    assert_eq!(worker.terminate().await, Some(0));
}

#[tokio::test]
async fn a_worker_killed_in_the_middle_of_a_storm_loses_and_doubles_nothing() {
    let platform = Platform::with(2, 0).await;
    let first = Program::start("webhook-worker", WORKER, &platform.settings());
    let storm = tokio::spawn(storm(&platform));
    let running = format!("pgmq.q_{QUEUE} where vt > now() and vt < spillway.parked_until()");
    eventually("the worker is in the middle of it", BUDGET, async || {
        let has_begun = platform.count("spillway.command where status = 'succeeded'").await >= 100;
        (has_begun && platform.count(&running).await > 0).then_some(())
    })
    .await;
    first.kill();
    let in_flight = platform.count(&running).await;
    // The leases of the dead worker end in a minute; this test has no minute.
    platform.database.execute(&format!("update {}", running.replace("where", "set vt = now() where"))).await;
    let second = Program::start("webhook-worker", WORKER, &platform.settings());
    let report = storm.await.unwrap();

    assert!(in_flight > 0, "the kill hit running work");
    assert_whole(&platform, &report).await;
    assert_eq!(second.terminate().await, Some(0));
}
