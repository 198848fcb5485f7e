//! Dead letters that are sent back, by many at once and by programs that die.

use anyhow::ensure;
use uuid::Uuid;

use super::{FAULT, Fault, Fired, SMOKE};
use crate::chaos::programs::Program;
use crate::chaos::scene::{BUDGET, Scene, Worker};
use crate::probe::Act;

const AUTHOR: [&str; 4] = ["--why", "drill", "--as", "drill"];

pub(super) const ALL: &[Fault] = &[
    Fault {
        id: "F78",
        name: "one dead letter is replayed by ten at once",
        run: |scene| Box::pin(replayed_by_many(scene)),
        ..SMOKE
    },
    Fault {
        id: "F79",
        name: "kill -9 in the middle of a replay",
        run: |scene| Box::pin(replay_dies(scene)),
        ..SMOKE
    },
    Fault {
        id: "F82",
        name: "a dead letter of a dead letter",
        run: |scene| Box::pin(dies_again(scene)),
        ..FAULT
    },
];

/// A command that was rejected, as its open dead letter.
async fn dead_letter(scene: &Scene) -> anyhow::Result<Uuid> {
    let ids = scene.submit(&[scene.job(Act::Reject)]).await?;
    open_letter(scene, ids[0], 1).await
}

/// The open dead letter of a command that has had so many.
async fn open_letter(scene: &Scene, command: Uuid, nth: i64) -> anyhow::Result<Uuid> {
    let all = format!("spillway.dead_letter where command_id = '{command}'");
    scene.until("it is a dead letter", async || Ok(scene.count(&all).await? == nth)).await?;
    let open = format!("select id::text from {all} and state = 'open'");
    let id = scene.database.texts(&open).await.pop().unwrap_or_default();
    Ok(id.parse()?)
}

/// An operator's program that replays it, and dies where it is told to.
fn replay(scene: &Scene, letter: Uuid, crash: &str) -> anyhow::Result<Program> {
    let letter = letter.to_string();
    let arguments = [&["dead-letters", "replay", letter.as_str()], AUTHOR.as_slice()].concat();
    scene.program("spillway", &arguments, Vec::new(), crash)
}

async fn replayed_by_many(scene: &Scene) -> anyhow::Result<Fired> {
    let _worker = scene.worker(&Worker::default())?;
    let letter = dead_letter(scene).await?;
    let mut operators = Vec::new();
    for _ in 0..10 {
        operators.push(replay(scene, letter, "")?);
    }
    let mut won = 0;
    for operator in &mut operators {
        won += usize::from(operator.ends(BUDGET).await?.success());
    }
    ensure!(won == 1, "{won} of 10 operators replayed it");
    ensure!(scene.count("spillway.replay").await? == 1, "more than one replay took effect");
    scene.drains().await?;
    Ok(Fired(true))
}

async fn replay_dies(scene: &Scene) -> anyhow::Result<Fired> {
    let _worker = scene.worker(&Worker::default())?;
    let letter = dead_letter(scene).await?;
    replay(scene, letter, "replay.mid")?.dies(BUDGET).await?;
    let open = format!("spillway.dead_letter where id = '{letter}' and state = 'open'");
    let replays = scene.count("spillway.replay").await?;
    ensure!(scene.count(&open).await? + replays == 1, "neither a dead letter nor a replay, or both");
    let again = replay(scene, letter, "")?.ends(BUDGET).await?;
    ensure!(again.success() == (replays == 0), "the second replay ended with {again}");
    scene.drains().await?;
    Ok(Fired(scene.has_fired("replay.mid")))
}

/// One lineage, and no message in two places.
async fn dies_again(scene: &Scene) -> anyhow::Result<Fired> {
    let _worker = scene.worker(&Worker::default())?;
    let ids = scene.submit(&[scene.job(Act::Reject)]).await?;
    for nth in 1..=2 {
        let letter = open_letter(scene, ids[0], nth).await?;
        let status = replay(scene, letter, "")?.ends(BUDGET).await?;
        ensure!(status.success(), "replay {nth} ended with {status}");
    }
    open_letter(scene, ids[0], 3).await?;
    let lineage = "spillway.dead_letter where first_dead_letter is not null";
    ensure!(scene.count(lineage).await? == 2, "the lineage is broken");
    Ok(Fired(true))
}
