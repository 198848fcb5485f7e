//! Limits: holders that die, zombies that give back what is not theirs.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;

use super::{FAULT, Fault, Fired, SMOKE};
use crate::chaos::scene::{BUDGET, CAP, QUEUE, Scene, Worker};
use crate::probe::{Act, Probe};

pub(super) const ALL: &[Fault] = &[
    Fault {
        id: "F74",
        name: "holders of a key are killed, and one is a zombie",
        run: |scene| Box::pin(holders_die(scene)),
        ..SMOKE
    },
    Fault {
        id: "F37",
        name: "a long line waits for a key before the work that is free",
        run: |scene| Box::pin(long_line(scene)),
        ..FAULT
    },
];

/// Sessions tell the server what they have read a second later.
const TOLD: Duration = Duration::from_secs(2);

/// Jobs that share keys of their groups.
fn grouped(scene: &Scene, groups: usize, each: usize, act: &Act) -> Vec<Probe> {
    let jobs = (0..groups * each)
        .map(|nth| Probe { group: format!("group-{}", nth % groups), ..scene.job(act.clone()) });
    jobs.collect()
}

/// Places come back, no more and no fewer than there are.
async fn holders_die(scene: &Scene) -> anyhow::Result<Fired> {
    scene.cap_groups().await;
    // Long enough for calls that should not to meet, and to be sent again under a lease of two seconds.
    scene.effects.answer_late(Duration::from_millis(250));
    scene.submit(&grouped(scene, 4, 30, &Act::Plain)).await?;
    let worker = Worker { concurrency: 12, ..Worker::default() };
    let mut killed = scene.worker(&worker)?;
    scene.claims(6).await?;
    killed.kill()?;
    let mut zombie = scene.worker(&worker)?;
    let again = format!(
        "pgmq.q_{QUEUE} where read_ct > 1 and vt > clock_timestamp() and vt < spillway.parked_until()"
    );
    scene.until("places were taken over", async || Ok(scene.count(&again).await? >= 1)).await?;
    zombie.signal(Signal::SIGSTOP)?;
    let _heirs = [scene.worker(&worker)?, scene.worker(&worker)?];
    let third = format!(
        "pgmq.q_{QUEUE} where read_ct > 2 and vt > clock_timestamp() and vt < spillway.parked_until()"
    );
    let done = "spillway.command where finished_at is not null";
    scene
        .until("the zombie's places were taken over", async || {
            Ok(scene.count(&third).await? >= 1 || scene.count(done).await? >= 20)
        })
        .await?;
    zombie.signal(Signal::SIGCONT)?;
    scene.drains().await?;
    for group in 0..4 {
        let most = scene.effects.most_at_once(&format!("group-{group}"));
        ensure!(most <= CAP, "group {group} had {most} calls at once and may have {CAP}");
    }
    zombie.signal(Signal::SIGTERM)?;
    zombie.ends(BUDGET).await?;
    Ok(Fired(true))
}

/// Rows of the queue that statements have read so far.
async fn rows_read(scene: &Scene) -> anyhow::Result<i64> {
    let read = format!(
        "select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables
         where schemaname = 'pgmq' and relname = 'q_{QUEUE}'"
    );
    Ok(scene.database.number(&read).await)
}

/// What waits for a key is looked at once: claims of free work don't walk the line.
async fn long_line(scene: &Scene) -> anyhow::Result<Fired> {
    const LINE: usize = 1000;
    scene.cap_groups().await;
    let holders = grouped(scene, 1, usize::try_from(CAP)?, &Act::SleepMs(15_000));
    let held = scene.submit(&holders).await?;
    let _worker = scene.worker(&Worker::default())?;
    scene.claims(i64::from(CAP)).await?;
    let line = scene.submit(&grouped(scene, 1, LINE, &Act::Plain)).await?;
    scene
        .until("the line waits apart", async || {
            Ok(scene.count("spillway.limit_wait").await? == i64::try_from(LINE)?)
        })
        .await?;
    tokio::time::sleep(TOLD).await;
    let before = rows_read(scene).await?;
    scene.submit(&scene.plain(50)).await?;
    let waiting = i64::try_from(LINE)? + i64::from(CAP);
    scene.until("free work passes the line", async || Ok(scene.open().await? == waiting)).await?;
    tokio::time::sleep(TOLD).await;
    let read = rows_read(scene).await? - before;
    let line_length = i64::try_from(LINE)?;
    ensure!(read < 2 * line_length, "claims read {read} rows to find 50 behind a line of {LINE}");
    for id in line.iter().chain(&held) {
        // The holders end by themselves.
        let _ = store::command::cancel(scene.pool(), *id).await;
    }
    scene.drains().await?;
    scene
        .until("the line is worked off", async || Ok(scene.count("spillway.limit_wait").await? == 0))
        .await?;
    Ok(Fired(true))
}
