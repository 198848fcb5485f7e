//! A worker's life: it dies, hangs, sleeps, burns, and comes back.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;

use super::{FAULT, Fault, Fired, SMOKE};
use crate::chaos::scene::{BUDGET, LEASE, QUEUE, Scene, Worker, command};
use crate::probe::{Act, Probe};

pub(super) const ALL: &[Fault] = &[
    Fault {
        id: "F01",
        name: "kill -9 right after the claim",
        run: |scene| Box::pin(dies_at(scene, "wk.after_claim")),
        ..SMOKE
    },
    Fault {
        id: "F02",
        name: "kill -9 before any effect",
        run: |scene| Box::pin(dies_at(scene, "wk.before_effect")),
        ..FAULT
    },
    Fault {
        id: "F03",
        name: "kill -9 after the provider did it",
        run: |scene| Box::pin(dies_after_the_effect(scene)),
        ..SMOKE
    },
    Fault {
        id: "F04",
        name: "kill -9 before the settlement is sent",
        run: |scene| Box::pin(dies_at(scene, "wk.before_archive")),
        ..SMOKE
    },
    Fault {
        id: "F05",
        name: "kill -9 after the settlement",
        run: |scene| Box::pin(dies_at(scene, "wk.after_archive")),
        ..FAULT
    },
    Fault {
        id: "F06",
        name: "kill -9 before a retry is written",
        run: |scene| Box::pin(dies_while_it_gives_up(scene, "wk.retry_before_setvt", Act::FailTimes(1))),
        ..FAULT
    },
    Fault {
        id: "F07",
        name: "kill -9 around the dead letter",
        run: |scene| Box::pin(dies_while_it_gives_up(scene, "wk.dlq_mid", Act::Reject)),
        ..SMOKE
    },
    Fault {
        id: "F08",
        name: "kill -9 of every worker at once",
        run: |scene| Box::pin(all_die(scene)),
        ..SMOKE
    },
    Fault {
        id: "F10",
        name: "a zombie wakes and ends what is another's by now",
        run: |scene| Box::pin(zombie(scene)),
        ..SMOKE
    },
    Fault {
        id: "F11",
        name: "a settlement that comes when another one holds the message",
        run: |scene| Box::pin(late_settlement(scene)),
        ..SMOKE
    },
    Fault { id: "F12", name: "a run that hangs", run: |scene| Box::pin(hangs(scene)), ..FAULT },
    Fault {
        id: "F13",
        name: "a run burns the runtime's own threads",
        run: |scene| Box::pin(burns(scene)),
        ..FAULT
    },
    Fault { id: "F14", name: "a lease is taken away", run: |scene| Box::pin(robbed(scene)), ..FAULT },
    Fault { id: "F16", name: "poison that panics", run: |scene| Box::pin(panics(scene)), ..SMOKE },
    Fault { id: "F17", name: "poison that ends the process", run: |scene| Box::pin(aborts(scene)), ..FAULT },
    Fault {
        id: "F20",
        name: "SIGTERM, twice, and SIGINT",
        run: |scene| Box::pin(is_stopped(scene)),
        ..SMOKE
    },
    Fault {
        id: "F22",
        name: "a kind that nobody knows, and a version that is newer",
        run: |scene| Box::pin(unknown(scene)),
        ..FAULT
    },
];

/// Twenty jobs, and a worker that dies at a point.
async fn dies_at(scene: &Scene, point: &'static str) -> anyhow::Result<Fired> {
    dies_with(scene, point, &scene.plain(20)).await
}

/// The first worker dies at a point, the second ends what is left.
async fn dies_with(scene: &Scene, point: &'static str, jobs: &[Probe]) -> anyhow::Result<Fired> {
    scene.submit(jobs).await?;
    let mut dying = scene.worker(&Worker::dying(point))?;
    dying.dies(BUDGET).await?;
    let _heir = scene.worker(&Worker::default())?;
    scene.drains().await?;
    Ok(Fired(scene.has_fired(point)))
}

/// The second run has to send the key of the first.
async fn dies_after_the_effect(scene: &Scene) -> anyhow::Result<Fired> {
    let fired = dies_at(scene, "wk.after_effect").await?;
    let calls = scene.effects.calls();
    let repeats = calls.iter().filter(|call| call.is_repeat).count();
    ensure!(repeats > 0, "{} calls, and none of them came again with its key", calls.len());
    Ok(fired)
}

/// Dies while it is about to write that a run failed.
async fn dies_while_it_gives_up(scene: &Scene, point: &'static str, act: Act) -> anyhow::Result<Fired> {
    let mut jobs = scene.plain(10);
    jobs.push(scene.job(act));
    dies_with(scene, point, &jobs).await
}

/// Three workers with all of their places taken.
async fn all_die(scene: &Scene) -> anyhow::Result<Fired> {
    let jobs: Vec<_> = (0..200).map(|_| scene.job(Act::SleepMs(300))).collect();
    scene.submit(&jobs).await?;
    let worker = Worker { concurrency: 30, ..Worker::default() };
    let mut workers = [scene.worker(&worker)?, scene.worker(&worker)?, scene.worker(&worker)?];
    scene.claims(60).await?;
    for worker in &mut workers {
        worker.kill()?;
    }
    let in_flight = scene.count(&format!("pgmq.q_{QUEUE} where read_ct > 0")).await?;
    let _heirs = [scene.worker(&worker)?, scene.worker(&worker)?];
    scene.drains().await?;
    Ok(Fired(in_flight > 0))
}

/// Stopped in the middle of a run for three leases, while another one does its work.
async fn zombie(scene: &Scene) -> anyhow::Result<Fired> {
    let jobs: Vec<_> = (0..4).map(|_| scene.job(Act::SleepMs(1500))).collect();
    scene.submit(&jobs).await?;
    let zombie = scene.worker(&Worker::default())?;
    scene.claims(4).await?;
    zombie.signal(Signal::SIGSTOP)?;
    // The heir's runs are long, so that they are under way when the zombie ends its own.
    let _heir = scene.worker(&Worker::default())?;
    let again = format!("pgmq.q_{QUEUE} where read_ct > 1 and vt > clock_timestamp()");
    scene.until("another one has them", async || Ok(scene.count(&again).await? >= 4)).await?;
    zombie.signal(Signal::SIGCONT)?;
    scene.drains().await?;
    // It had lost them and went on.
    let mut zombie = zombie;
    let fired = zombie.ended()?.is_none();
    zombie.signal(Signal::SIGTERM)?;
    zombie.ends(BUDGET).await?;
    Ok(Fired(fired))
}

/// Asleep with its word on its lips: it wakes when its heir is in the middle of the same work, and says it.
async fn late_settlement(scene: &Scene) -> anyhow::Result<Fired> {
    let jobs: Vec<_> = (0..4).map(|_| scene.job(Act::SleepMs(1500))).collect();
    scene.submit(&jobs).await?;
    let point = "wk.before_archive";
    let mut late = scene.worker(&Worker::dying("wk.before_archive:1:stop"))?;
    scene.until("it is asleep", async || Ok(scene.has_fired(point))).await?;
    let _heir = scene.worker(&Worker::default())?;
    let again = format!("pgmq.q_{QUEUE} where read_ct > 1");
    scene.until("another one has what it holds", async || Ok(scene.count(&again).await? >= 1)).await?;
    late.signal(Signal::SIGCONT)?;
    scene.drains().await?;
    let fired = late.ended()?.is_none();
    Ok(Fired(fired))
}

/// Ended by its deadline, and charged.
async fn hangs(scene: &Scene) -> anyhow::Result<Fired> {
    let mut jobs = scene.plain(10);
    jobs.push(scene.job(Act::Hang));
    let commands = scene.submit(&jobs).await?;
    let worker = Worker { deadline: Duration::from_secs(1), ..Worker::default() };
    let _worker = scene.worker(&worker)?;
    let hung = commands[10];
    let charged = format!("spillway.command where id = '{hung}' and attempts >= 2");
    scene.until("it was ended and tried again", async || Ok(scene.count(&charged).await? == 1)).await?;
    ensure!(scene.open().await? == 1, "the others wait for it");
    scene.cancel(hung).await?;
    scene.drains().await?;
    Ok(Fired(true))
}

/// A run that computes on the runtime's threads for three leases: its beats go on.
async fn burns(scene: &Scene) -> anyhow::Result<Fired> {
    let spin = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX) * 3;
    let jobs: Vec<_> = (0..2).map(|_| scene.job(Act::SpinMs(spin))).collect();
    scene.submit(&jobs).await?;
    let _worker = scene.worker(&Worker::default())?;
    let _other = scene.worker(&Worker::default())?;
    scene.drains().await?;
    let again = scene.count(&format!("pgmq.a_{QUEUE} where read_ct > 1")).await?;
    ensure!(again == 0, "{again} were claimed again while they ran");
    Ok(Fired(true))
}

/// Whoever has lost a lease stops, and calls nobody any more.
async fn robbed(scene: &Scene) -> anyhow::Result<Fired> {
    let jobs = vec![scene.job(Act::SleepMs(3000))];
    scene.submit(&jobs).await?;
    let _worker = scene.worker(&Worker::default())?;
    scene.claims(1).await?;
    // As a claim by another one would: for longer than the run.
    let stolen =
        format!("update pgmq.q_{QUEUE} set read_ct = read_ct + 1, vt = clock_timestamp() + interval '5 s'");
    scene.database.execute(&stolen).await;
    scene.drains().await?;
    let calls = scene.effects.calls().len();
    ensure!(calls == 1, "{calls} calls: whoever lost the lease went on");
    Ok(Fired(true))
}

async fn panics(scene: &Scene) -> anyhow::Result<Fired> {
    let mut jobs = scene.plain(100);
    jobs.insert(50, scene.job(Act::Panic));
    let commands = scene.submit(&jobs).await?;
    let mut worker = scene.worker(&Worker::default())?;
    let poison = commands[50];
    let tried = format!("spillway.command where id = '{poison}' and attempts >= 2");
    scene.until("it was tried again", async || Ok(scene.count(&tried).await? == 1)).await?;
    scene.until("the others end", async || Ok(scene.open().await? <= 1)).await?;
    ensure!(worker.ended()?.is_none(), "the process ended");
    scene.cancel(poison).await?;
    scene.drains().await?;
    Ok(Fired(true))
}

/// Three kinds of death, each of which takes the process along; whoever supervises it starts it again.
async fn aborts(scene: &Scene) -> anyhow::Result<Fired> {
    let mut jobs = scene.plain(20);
    let poison = [Act::Abort, Act::Overflow, Act::MemoryMib(4096)];
    jobs.extend(poison.map(|act| scene.job(act)));
    let commands = scene.submit(&jobs).await?;
    let mut deaths = 0;
    let mut worker = scene.limited_worker(&Worker::default(), 2048)?;
    scene
        .until("all have ended", async || {
            if worker.ended()?.is_some() {
                deaths += 1;
                worker = scene.limited_worker(&Worker::default(), 2048)?;
            }
            Ok(scene.open().await? == 0)
        })
        .await?;
    for id in &commands[20..] {
        let blamed = format!("spillway.dead_letter where command_id = '{id}' and reason = 'worker_crashed'");
        ensure!(scene.count(&blamed).await? == 1, "{id} is no dead letter of the reason worker_crashed");
    }
    ensure!(scene.count("spillway.dead_letter").await? == 3, "innocents were blamed");
    let charged = "spillway.command where crashes > 0 and attempts > 0 and status = 'dead_lettered'";
    ensure!(scene.count(charged).await? == 0, "a crash was counted as an attempt");
    Ok(Fired(deaths >= 3))
}

/// What is short ends, what is longer than the grace is handed back; a second signal ends the process at once.
async fn is_stopped(scene: &Scene) -> anyhow::Result<Fired> {
    for (signals, act, code) in [
        (vec![Signal::SIGTERM], Act::SleepMs(500), 0),
        (vec![Signal::SIGINT], Act::SleepMs(500), 0),
        (vec![Signal::SIGTERM], Act::SleepMs(28_000), 0),
        (vec![Signal::SIGTERM, Signal::SIGTERM], Act::SleepMs(5_000), 1),
    ] {
        let jobs: Vec<_> = (0..8).map(|_| scene.job(act.clone())).collect();
        scene.submit(&jobs).await?;
        let mut worker = scene.worker(&Worker { deadline: Duration::from_secs(30), ..Worker::default() })?;
        scene.claims(4).await?;
        for signal in &signals {
            worker.signal(*signal)?;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let status = worker.ends(BUDGET).await?;
        ensure!(status.code() == Some(code), "{signals:?}: {status}");
        let held = scene.count(&format!("pgmq.q_{QUEUE} where vt > clock_timestamp()")).await?;
        ensure!(code != 0 || held == 0, "{signals:?}: {held} messages were not handed back");
        let _heir = scene.worker(&Worker { deadline: Duration::from_secs(30), ..Worker::default() })?;
        scene.drains().await?;
    }
    Ok(Fired(true))
}

/// Neither is worked on; nothing is claimed and forgotten.
async fn unknown(scene: &Scene) -> anyhow::Result<Fired> {
    let mut strange = command(&scene.job(Act::Plain));
    strange.kind = "chaos.nobody";
    let mut newer = command(&scene.job(Act::Plain));
    newer.version = 99;
    let (strange_id, newer_id) = (strange.id, newer.id);
    scene.submit_as(vec![strange, newer]).await?;
    scene.submit(&scene.plain(5)).await?;
    let _worker = scene.worker(&Worker::default())?;
    let buried = format!("spillway.dead_letter where command_id = '{strange_id}'");
    scene.until("the unknown kind is a dead letter", async || Ok(scene.count(&buried).await? == 1)).await?;
    scene.until("the others end", async || Ok(scene.open().await? == 1)).await?;
    let kept = format!("spillway.command where id = '{newer_id}' and attempts = 0 and crashes = 0");
    ensure!(scene.count(&kept).await? == 1, "the newer version was charged");
    scene.cancel(newer_id).await?;
    scene.drains().await?;
    Ok(Fired(true))
}
