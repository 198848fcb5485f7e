//! The database: sessions end, answers are lost, the server restarts, rows stay locked.

use std::time::Duration;

use anyhow::ensure;
use futures_util::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::proxy::{Mode, Proxy};

use super::{FAULT, Fault, Fired, SMOKE};
use crate::chaos::gateway::{Answer, Event};
use crate::chaos::scene::{QUEUE, Scene, Worker};
use crate::probe::Act;

pub(super) const ALL: &[Fault] = &[
    Fault {
        id: "F09",
        name: "power cut: programs and database at once",
        is_alone: true,
        run: |scene| Box::pin(power_cut(scene)),
        ..FAULT
    },
    Fault {
        id: "F23",
        name: "a commit whose answer is lost, at the gateway and at a worker",
        run: |scene| Box::pin(answers_are_lost(scene)),
        ..SMOKE
    },
    Fault {
        id: "F24",
        name: "senders leave while the database is slower than the deadline",
        run: |scene| Box::pin(senders_leave(scene, Duration::from_millis(450))),
        ..SMOKE
    },
    Fault {
        id: "F25",
        name: "senders leave at any moment",
        run: |scene| Box::pin(senders_leave(scene, Duration::ZERO)),
        ..SMOKE
    },
    Fault {
        id: "F26",
        name: "the database crashes again and again",
        is_alone: true,
        run: |scene| Box::pin(crashes(scene)),
        ..SMOKE
    },
    Fault {
        id: "F27",
        name: "sessions are ended from outside",
        run: |scene| Box::pin(sessions_end(scene)),
        ..SMOKE
    },
    Fault {
        id: "F28",
        name: "the network to the database falls silent",
        run: |scene| Box::pin(silence(scene)),
        ..FAULT
    },
    Fault {
        id: "F19",
        name: "the dead letter can't be written",
        run: |scene| Box::pin(no_dead_letters(scene)),
        ..FAULT
    },
    Fault {
        id: "F30",
        name: "a lock that outlasts every statement",
        run: |scene| Box::pin(tables_locked(scene)),
        ..FAULT
    },
    Fault {
        id: "F32",
        name: "the server takes no writes for a while",
        run: |scene| Box::pin(read_only(scene)),
        ..FAULT
    },
    Fault {
        id: "F34",
        name: "batches that meet the same rows at once",
        run: |scene| Box::pin(batches_meet(scene)),
        ..FAULT
    },
    Fault {
        id: "F31",
        name: "a session idles in a transaction with rows locked",
        run: |scene| Box::pin(rows_locked(scene)),
        ..FAULT
    },
];

/// One answer of each side is thrown away after the database has committed.
async fn answers_are_lost(scene: &Scene) -> anyhow::Result<Fired> {
    let (at_door, at_work) = (scene.proxy().await?, scene.proxy().await?);
    let gateway = scene.gateway("", scene.gateway_through(&at_door)?).await?;
    let accounts = scene.accounts(20).await?;
    let events = Event::each(&accounts);
    for (nth, event) in events.iter().enumerate() {
        if nth == 5 {
            at_door.lose_answer(["commit"]);
        }
        scene.deliver_at_last(&gateway.url, event).await?;
    }
    scene.submit(&scene.plain(30)).await?;
    at_work.lose_answer([b"queue_succeed".as_slice(), Proxy::EXECUTE]);
    let url = Some(scene.url_through(&at_work, "spillway_worker")?);
    let _worker = scene.worker(&Worker { url, ..Worker::default() })?;
    scene.drains().await?;
    Ok(Fired(at_door.fired().answers_lost == 1 && at_work.fired().answers_lost == 1))
}

/// Three hundred senders, most of whom hang up before they are answered; then each comes back until it is.
async fn senders_leave(scene: &Scene, slow: Duration) -> anyhow::Result<Fired> {
    let proxy = scene.proxy().await?;
    // Slow means: the second answer of a transaction is too late.
    let mut own = scene.gateway_through(&proxy)?;
    own.push(("SANMOPIA_DATABASE_DEADLINE_MS", "1000".to_owned()));
    let gateway = scene.gateway("", own).await?;
    let accounts = scene.accounts(300).await?;
    let events = Event::each(&accounts);
    let (early, events) = events.split_at(50);
    for taken in join_all(early.iter().map(|event| scene.deliver_at_last(&gateway.url, event))).await {
        taken?;
    }
    if slow > Duration::ZERO {
        proxy.set(Mode::Delay(slow));
    }
    let mut dice = scene.dice("patience");
    let longest = 20 + u16::try_from(slow.as_millis() * 6).unwrap_or(u16::MAX);
    let patience: Vec<_> = events
        .iter()
        .map(|_| Duration::from_millis(u64::try_from(dice.below(longest)).unwrap_or(0) + 1))
        .collect();
    let first =
        events.iter().zip(patience).map(|(event, patience)| scene.deliver(&gateway.url, event, patience));
    let left = join_all(first).await.into_iter().filter(|answer| *answer == Answer::Nothing).count();
    proxy.set(Mode::Pass);
    // Soon: the server ends such a transaction by itself after two deadlines.
    tokio::time::sleep(Duration::from_millis(400)).await;
    let open = "pg_stat_activity where datname = current_database() and state like 'idle in transaction%'
        and state_change < clock_timestamp() - interval '300 ms'";
    let open = scene.count(open).await?;
    ensure!(open == 0, "{open} transactions were left open");
    scene.deliver_all(&gateway.url, events).await?;
    Ok(Fired(left > 50))
}

/// Ends every session of the programs, ten times.
async fn sessions_end(scene: &Scene) -> anyhow::Result<Fired> {
    let gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(200).await?;
    let jobs: Vec<_> = (0..200).map(|_| scene.job(Act::SleepMs(50))).collect();
    scene.submit(&jobs).await?;
    let _workers = [scene.worker(&Worker::default())?, scene.worker(&Worker::default())?];
    let events = Event::each(&accounts);
    let deliveries = scene.deliver_all(&gateway.url, &events);
    let ends = async {
        let mut ended = 0;
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            ended += scene.end_sessions().await?;
        }
        anyhow::Ok(ended)
    };
    let (delivered, ended) = tokio::join!(deliveries, ends);
    delivered?;
    scene.drains().await?;
    Ok(Fired(ended? >= 10))
}

/// Bytes are swallowed for longer than any lease.
async fn silence(scene: &Scene) -> anyhow::Result<Fired> {
    let proxy = scene.proxy().await?;
    let gateway = scene.gateway("", scene.gateway_through(&proxy)?).await?;
    let url = Some(scene.url_through(&proxy, "spillway_worker")?);
    let accounts = scene.accounts(2).await?;
    let jobs: Vec<_> = (0..60).map(|_| scene.job(Act::SleepMs(200))).collect();
    scene.submit(&jobs).await?;
    let mut worker = scene.worker(&Worker { url, ..Worker::default() })?;
    scene.claims(4).await?;
    proxy.set(Mode::BlackHole);
    let events = Event::each(&accounts);
    let answer = scene.deliver(&gateway.url, &events[0], Duration::from_secs(30)).await;
    ensure!(answer == Answer::Refused(503), "in silence the gateway answered {answer:?}");
    tokio::time::sleep(Duration::from_secs(8)).await;
    proxy.set(Mode::Pass);
    scene.deliver_all(&gateway.url, &events).await?;
    scene.drains().await?;
    ensure!(worker.ended()?.is_none(), "the worker ended");
    Ok(Fired(proxy.fired().swallowed > 0))
}

/// What is locked is passed over; what is free goes on.
async fn rows_locked(scene: &Scene) -> anyhow::Result<Fired> {
    scene.submit(&scene.plain(40)).await?;
    let lock = format!("begin; select from pgmq.q_{QUEUE} order by msg_id limit 10 for update");
    let holder = scene.database.session(&lock).await;
    let _worker = scene.worker(&Worker::default())?;
    scene.until("what is free ends", async || Ok(scene.open().await? == 10)).await?;
    drop(holder);
    scene.drains().await?;
    Ok(Fired(true))
}

/// The server's processes die three times and come back, while events come in and work is done.
async fn crashes(scene: &Scene) -> anyhow::Result<Fired> {
    let gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(200).await?;
    let jobs: Vec<_> = (0..300).map(|_| scene.job(Act::SleepMs(20))).collect();
    scene.submit(&jobs).await?;
    let _workers = [scene.worker(&Worker::default())?, scene.worker(&Worker::default())?];
    let events = Event::each(&accounts);
    let deliveries = scene.deliver_all(&gateway.url, &events);
    let strikes = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            strike(scene).await?;
            scene.answers().await?;
        }
        anyhow::Ok(())
    };
    let (delivered, struck) = tokio::join!(deliveries, strikes);
    delivered?;
    struck?;
    scene.drains().await?;
    Ok(Fired(true))
}

/// Everything dies in the same moment.
async fn power_cut(scene: &Scene) -> anyhow::Result<Fired> {
    let mut gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(50).await?;
    let events = Event::each(&accounts);
    let jobs: Vec<_> = (0..100).map(|_| scene.job(Act::SleepMs(200))).collect();
    scene.submit(&jobs).await?;
    let mut worker = scene.worker(&Worker { concurrency: 20, ..Worker::default() })?;
    scene.claims(10).await?;
    let patience = Duration::from_secs(5);
    let deliveries = join_all(events.iter().map(|event| scene.deliver(&gateway.url, event, patience)));
    let cut = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        strike(scene).await
    };
    let (_, cut) = tokio::join!(deliveries, cut);
    cut?;
    gateway.program.kill()?;
    worker.kill()?;
    // The gateway comes back before its database does.
    let gateway = scene.gateway("", Vec::new()).await?;
    scene.answers().await?;
    let _worker = scene.worker(&Worker { concurrency: 20, ..Worker::default() })?;
    scene.deliver_all(&gateway.url, &events).await?;
    scene.drains().await?;
    Ok(Fired(true))
}

/// `kill -9` of one backend: the server takes all of them down and recovers from its log.
async fn strike(scene: &Scene) -> anyhow::Result<()> {
    let victim = "select max(pid)::bigint from pg_stat_activity
        where datname = current_database() and application_name like 'spillway%'";
    let pid = scene.database.number(victim).await;
    kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGKILL)?;
    Ok(())
}

/// The tables stand still for longer than any statement may wait.
async fn tables_locked(scene: &Scene) -> anyhow::Result<Fired> {
    let gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(3).await?;
    let jobs: Vec<_> = (0..40).map(|_| scene.job(Act::SleepMs(100))).collect();
    scene.submit(&jobs).await?;
    let mut worker = scene.worker(&Worker::default())?;
    scene.claims(4).await?;
    let holder = scene.database.session("begin; lock table spillway.command in exclusive mode").await;
    let events = Event::each(&accounts);
    let answer = scene.deliver(&gateway.url, &events[0], Duration::from_secs(30)).await;
    ensure!(answer == Answer::Refused(503), "behind a lock the gateway answered {answer:?}");
    drop(holder);
    scene.deliver_all(&gateway.url, &events).await?;
    scene.drains().await?;
    ensure!(worker.ended()?.is_none(), "the worker ended");
    Ok(Fired(true))
}

/// The server takes no writes, as one that was demoted; then it does again.
async fn read_only(scene: &Scene) -> anyhow::Result<Fired> {
    let gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(3).await?;
    let jobs: Vec<_> = (0..40).map(|_| scene.job(Act::SleepMs(100))).collect();
    scene.submit(&jobs).await?;
    let mut worker = scene.worker(&Worker::default())?;
    scene.claims(4).await?;
    scene.set_read_only(true).await?;
    let ready = format!("{}/readyz", gateway.internal_url);
    scene
        .until("the gateway says that it is not ready", async || {
            Ok(scene.http.get(&ready).send().await?.status() == 503)
        })
        .await?;
    let events = Event::each(&accounts);
    let answer = scene.deliver(&gateway.url, &events[0], Duration::from_secs(30)).await;
    ensure!(answer == Answer::Refused(503), "without writes the gateway answered {answer:?}");
    scene.set_read_only(false).await?;
    scene.deliver_all(&gateway.url, &events).await?;
    scene.drains().await?;
    ensure!(worker.ended()?.is_none(), "the worker ended");
    Ok(Fired(true))
}

/// The dead letter can't be written: the message stays where it is, the worker goes on.
async fn no_dead_letters(scene: &Scene) -> anyhow::Result<Fired> {
    scene.database.execute("revoke insert on spillway.dead_letter from spillway_worker").await;
    let mut jobs = scene.plain(20);
    jobs.push(scene.job(Act::Reject));
    scene.submit(&jobs).await?;
    let mut worker = scene.worker(&Worker::default())?;
    scene.until("the others end", async || Ok(scene.open().await? == 1)).await?;
    let tried = format!("pgmq.q_{QUEUE} where read_ct > 1");
    scene.until("it was tried again", async || Ok(scene.count(&tried).await? == 1)).await?;
    ensure!(worker.ended()?.is_none(), "the worker ended");
    scene.database.execute("grant insert on spillway.dead_letter to spillway_worker").await;
    scene.drains().await?;
    Ok(Fired(true))
}

/// Two gateways write the same accounts' events in batches, two workers beat and settle: nobody waits in a circle.
async fn batches_meet(scene: &Scene) -> anyhow::Result<Fired> {
    let gateways = [scene.gateway("", Vec::new()).await?, scene.gateway("", Vec::new()).await?];
    let accounts = scene.accounts(60).await?;
    let jobs: Vec<_> = (0..400).map(|_| scene.job(Act::SleepMs(700))).collect();
    scene.submit(&jobs).await?;
    let worker = Worker { concurrency: 40, ..Worker::default() };
    let _workers = [scene.worker(&worker)?, scene.worker(&worker)?];
    let mut dice = scene.dice("meetings");
    for _ in 0..40 {
        let events: Vec<_> =
            accounts.iter().map(|account| Event::new(dice.uuid().to_string(), *account)).collect();
        // Each event at both, at one from the first to the last and at the other from the last to the first.
        let both = events.iter().zip(events.iter().rev());
        let sent = both.flat_map(|(one, other)| [(&gateways[0].url, one), (&gateways[1].url, other)]);
        for taken in join_all(sent.map(|(gateway, event)| scene.deliver_at_last(gateway, event))).await {
            taken?;
        }
    }
    scene.drains().await?;
    // Servers tell a second later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    let deadlocks = scene.database.number(deadlocks).await;
    ensure!(deadlocks == 0, "{deadlocks} transactions waited in a circle");
    Ok(Fired(true))
}
