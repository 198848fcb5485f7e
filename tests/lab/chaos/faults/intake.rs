//! The door: floods of one event, changed bodies, gateways that die.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use futures_util::future::join_all;
use nix::sys::signal::Signal;

use super::{FAULT, Fault, Fired, SMOKE};
use crate::chaos::gateway::{Answer, Event};
use crate::chaos::scene::{BUDGET, Scene};

const PATIENCE: Duration = Duration::from_secs(15);

pub(super) const ALL: &[Fault] = &[
    Fault {
        id: "F55",
        name: "one event a hundred times at once by two gateways",
        run: |scene| Box::pin(one_event(scene)),
        ..SMOKE
    },
    Fault {
        id: "F56",
        name: "the same id with another body",
        run: |scene| Box::pin(other_body(scene)),
        ..SMOKE
    },
    Fault {
        id: "F58",
        name: "a gateway dies around its commit",
        run: |scene| Box::pin(gateway_dies(scene)),
        ..SMOKE
    },
    Fault {
        id: "F63",
        name: "a gateway is stopped with requests under way",
        run: |scene| Box::pin(gateway_is_stopped(scene)),
        ..FAULT
    },
];

async fn one_event(scene: &Scene) -> anyhow::Result<Fired> {
    let gateways = [scene.gateway("", Vec::new()).await?, scene.gateway("", Vec::new()).await?];
    let accounts = scene.accounts(1).await?;
    let event = Event::new("the-one".to_owned(), accounts[0]);
    let answers = join_all((0..100).map(|nth| scene.deliver(&gateways[nth % 2].url, &event, PATIENCE))).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for answer in &answers {
        *counts.entry(format!("{answer:?}")).or_default() += 1;
    }
    let (queued, duplicate) = (Answer::Taken("queued".to_owned()), Answer::Taken("duplicate".to_owned()));
    let count = |wanted: &Answer| answers.iter().filter(|answer| *answer == wanted).count();
    ensure!((count(&queued), count(&duplicate)) == (1, 99), "{counts:?}");
    ensure!(scene.count("spillway.command").await? == 1, "more than one command");
    Ok(Fired(true))
}

/// Never silently the same.
async fn other_body(scene: &Scene) -> anyhow::Result<Fired> {
    let gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(2).await?;
    let (event, other) =
        (Event::new("the-one".to_owned(), accounts[0]), Event::new("the-one".to_owned(), accounts[1]));
    let first = scene.deliver(&gateway.url, &event, PATIENCE).await;
    ensure!(first == Answer::Taken("queued".to_owned()), "{first:?}");
    let second = scene.deliver(&gateway.url, &other, PATIENCE).await;
    ensure!(second == Answer::Taken("quarantined".to_owned()), "the other body was answered {second:?}");
    ensure!(scene.count("spillway.command").await? == 1, "the other body became a command");
    let again = scene.deliver(&gateway.url, &event, PATIENCE).await;
    ensure!(again == Answer::Taken("duplicate".to_owned()), "the first body again: {again:?}");
    Ok(Fired(true))
}

/// Before the commit nothing is there, after it everything; nobody was told either way.
async fn gateway_dies(scene: &Scene) -> anyhow::Result<Fired> {
    let accounts = scene.accounts(40).await?;
    let events = Event::each(&accounts);
    let mut fired = true;
    for (point, events) in ["gw.before_commit", "gw.after_commit"].into_iter().zip(events.chunks(20)) {
        let mut dying = scene.gateway(&format!("{point}:3"), Vec::new()).await?;
        let patience = Duration::from_secs(5);
        join_all(events.iter().map(|event| scene.deliver(&dying.url, event, patience))).await;
        for event in events {
            if dying.program.ended()?.is_none() {
                scene.deliver(&dying.url, event, patience).await;
            }
        }
        dying.program.dies(BUDGET).await?;
        let gateway = scene.gateway("", Vec::new()).await?;
        scene.deliver_all(&gateway.url, events).await?;
        fired &= scene.has_fired(point);
    }
    Ok(Fired(fired))
}

async fn gateway_is_stopped(scene: &Scene) -> anyhow::Result<Fired> {
    let mut gateway = scene.gateway("", Vec::new()).await?;
    let accounts = scene.accounts(200).await?;
    let events = Event::each(&accounts);
    let deliveries = join_all(events.iter().map(|event| scene.deliver(&gateway.url, event, PATIENCE)));
    let stop = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let answered = scene.history.operations().len();
        gateway.program.signal(Signal::SIGTERM).map(|()| answered)
    };
    let (_, answered) = tokio::join!(deliveries, stop);
    let answered = answered?;
    let status = gateway.program.ends(BUDGET).await?;
    ensure!(status.code() == Some(0), "it ended with {status}");
    let heir = scene.gateway("", Vec::new()).await?;
    scene.deliver_all(&heir.url, &events).await?;
    Ok(Fired(answered < events.len()))
}
