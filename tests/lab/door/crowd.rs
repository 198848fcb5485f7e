//! Many at a time: equal deliveries, strangers, clients that leave, more requests than there are permits.

use anyhow::{Context, ensure};
use futures_util::future::{join_all, try_join_all};

use super::case::{Case, Probe};
use super::expect::{Receipt, comes_back, problem};
use super::raw::{Connection, Request};

/// Equal deliveries that arrive together.
const TOGETHER: usize = 64;

/// Clients that leave before their answer.
const LEAVERS: usize = 100;

/// Deliveries that prove nothing.
const STRANGERS: usize = 200;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "equal_deliveries_together",
            "F55 F58",
            "one queued, all others duplicate, one inbox_id",
            |probe| Box::pin(equal_deliveries_together(probe)),
        ),
        Case::new(
            "other_bodies_together",
            "F56",
            "one queued, the others quarantined, never duplicate",
            |probe| Box::pin(other_bodies_together(probe)),
        ),
        Case::new(
            "clients_that_leave",
            "F25 F24",
            "each of their events is there once, or not at all",
            |probe| Box::pin(clients_that_leave(probe)),
        ),
        Case::new(
            "lost_answer",
            "F23",
            "the next try is answered, and every later one is a duplicate of it",
            |probe| Box::pin(lost_answer(probe)),
        ),
        Case::new(
            "strangers",
            "",
            "401 for all of them, and the sender that they name is still heard",
            |probe| Box::pin(strangers(probe)),
        ),
        Case::new("full", "F62", "503 busy with Retry-After, status reads go on, and it passes", |probe| {
            Box::pin(full(probe))
        })
        .alone(),
    ]
}

/// Delivers all bodies on connections of their own that each wait for their last byte until every one is there.
async fn deliver_together(probe: &Probe, bodies: &[String]) -> anyhow::Result<Vec<Receipt>> {
    let mut waiting = Vec::new();
    for body in bodies {
        let bytes = probe.signed(body.as_str()).bytes(probe.target.public.host());
        let (most, last) = bytes.split_at(bytes.len() - 1);
        let mut connection = Connection::open(&probe.target.public).await?;
        connection.write(most).await.context("sending all but the last byte")?;
        waiting.push((connection, last.to_vec()));
    }
    let answers = waiting.iter_mut().map(|(connection, last)| async {
        connection.write(last).await.context("sending the last byte")?;
        connection.answer(false).await?.context("closed without an answer")
    });
    let answers = try_join_all(answers).await?;
    for answer in &answers {
        probe.note("a delivery whose last byte came together with the others'".to_owned(), Some(answer));
    }
    answers.iter().map(super::raw::Answer::receipt).collect()
}

fn count(receipts: &[Receipt], outcome: &str) -> usize {
    receipts.iter().filter(|receipt| receipt.outcome == outcome).count()
}

async fn equal_deliveries_together(probe: &Probe) -> anyhow::Result<()> {
    let receipts = deliver_together(probe, &vec![super::snaptrade::event(&Probe::id()); TOGETHER]).await?;
    let (queued, duplicate) = (count(&receipts, "queued"), count(&receipts, "duplicate"));
    ensure!(
        (queued, duplicate) == (1, TOGETHER - 1),
        "{queued} queued and {duplicate} duplicate of {TOGETHER}"
    );
    ensure!(
        receipts.iter().all(|receipt| receipt.inbox_id == receipts[0].inbox_id),
        "several rows for one event"
    );
    Ok(())
}

async fn other_bodies_together(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    let bodies: Vec<String> = (0..TOGETHER / 4)
        .map(|i| super::snaptrade::event(&id).replace("door", &format!("door-{i}")))
        .collect();
    let receipts = deliver_together(probe, &bodies).await?;
    let (queued, aside) = (count(&receipts, "queued"), count(&receipts, "quarantined"));
    ensure!(
        (queued, aside) == (1, bodies.len() - 1),
        "{queued} queued and {aside} quarantined of {}",
        bodies.len()
    );
    Ok(())
}

async fn clients_that_leave(probe: &Probe) -> anyhow::Result<()> {
    let bodies: Vec<String> = (0..LEAVERS).map(|_| super::snaptrade::event(&Probe::id())).collect();
    let host = probe.target.public.host();
    let leavers = bodies.iter().enumerate().map(|(i, body)| async move {
        let bytes = probe.signed(body.as_str()).bytes(host);
        // Some leave in the middle of the body, the others at some point of the work on it.
        let said = if i % 5 == 0 { &bytes[..bytes.len() - 1] } else { &bytes[..] };
        let mut connection = Connection::open(&probe.target.public).await?;
        connection.write(said).await.context("sending a delivery")?;
        for _ in 0..i {
            tokio::task::yield_now().await;
        }
        Ok::<_, anyhow::Error>(())
    });
    try_join_all(leavers).await?;
    for body in &bodies {
        let first = probe.ask(probe.signed(body.as_str())).await?.receipt()?;
        ensure!(
            ["queued", "duplicate"].contains(&first.outcome.as_str()),
            "{first:?} for an event that was right"
        );
        let again = probe.ask(probe.signed(body.as_str())).await?.has_outcome("duplicate")?;
        ensure!(again.inbox_id == first.inbox_id, "two rows for one event");
    }
    Ok(())
}

async fn lost_answer(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    let mut connection = Connection::open(&probe.target.public).await?;
    connection
        .write(&probe.signed(body.as_str()).bytes(probe.target.public.host()))
        .await
        .context("sending")?;
    drop(connection);
    let first = probe.ask(probe.signed(body.as_str())).await?.receipt()?;
    for _ in 0..3 {
        let again = probe.ask(probe.signed(body.as_str())).await?.has_outcome("duplicate")?;
        ensure!(again.inbox_id == first.inbox_id, "inbox_id {} and not {}", again.inbox_id, first.inbox_id);
    }
    Ok(())
}

async fn strangers(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    for _ in 0..STRANGERS / 20 {
        let requests = (0..20).map(|_| {
            probe.ask(Request::post("/webhooks/snaptrade", body.as_str()).header("signature", "bm8="))
        });
        for answer in join_all(requests).await {
            answer?.refuses(401, "unauthenticated")?;
        }
    }
    probe.ask(probe.signed(body)).await?.has_outcome("queued")?;
    Ok(())
}

/// Takes every permit by bodies that don't come, and one more.
async fn full(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    let body = super::snaptrade::event(&Probe::id());
    let request = probe.signed(body.as_str());
    let head = request.head(host);
    let mut holding = Vec::new();
    for _ in 0..probe.target.limits.in_flight {
        let mut connection = Connection::open(&probe.target.public).await?;
        connection.write(&head).await.context("sending a head")?;
        holding.push(connection);
    }
    // Heads are read in their own time: one of the next requests finds no permit.
    let refused = loop {
        let answer = probe.ask(probe.signed("[]")).await?;
        if answer.status == 503 {
            break answer;
        }
        answer.is(202).context("while the permits run out")?;
        ensure!(
            holding.len() < probe.target.limits.in_flight * 2,
            "more are in work than the settings allow"
        );
        let mut connection = Connection::open(&probe.target.public).await?;
        connection.write(&head).await.context("sending a head")?;
        holding.push(connection);
    };
    refused.refuses(503, "busy")?;
    comes_back(&refused)?;
    problem(&refused)?;
    let token = &probe.target.secrets.service_token;
    probe
        .ask(Request::get("/v1/commands").bearer(token))
        .await?
        .is(200)
        .context("a status read meanwhile")?;
    drop(holding);
    let bound = probe.target.body_bound();
    let again = async {
        loop {
            let answer = probe.ask(probe.signed(body.as_str())).await?;
            if answer.status != 503 {
                return answer.has_outcome("queued");
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(bound, again).await.context("still busy after everybody has left")??;
    Ok(())
}
