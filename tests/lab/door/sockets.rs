//! Connections that say nothing, too little, too slowly, or something else than HTTP/1.

use anyhow::{Context, ensure};

use super::bodies::drip;
use super::case::{Case, Probe};
use super::expect::refused_or_closed;
use super::raw::{Connection, Request};

/// Sockets that only sit there: more than a listener's backlog would hide.
const IDLE: usize = 200;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("silent", "F62", "closed in time", |probe| Box::pin(silent(probe))),
        Case::new("half_a_header", "F62", "closed or 408 in time", |probe| Box::pin(half_a_header(probe))),
        Case::new("slow_header", "F62", "closed or 408 in time, also while bytes still come", |probe| {
            Box::pin(slow_header(probe))
        }),
        Case::new("silent_after_an_answer", "F62", "answered, then closed in time", |probe| {
            Box::pin(silent_after_an_answer(probe))
        }),
        Case::new("http2_preface", "", "closed or refused, whole and half", |probe| {
            Box::pin(http2_preface(probe))
        }),
        Case::new("tls_hello", "", "closed or refused", |probe| Box::pin(tls_hello(probe))),
        Case::new(
            "half_closed",
            "F63",
            "answered or not, the event of a client that closed its half is there once",
            |probe| Box::pin(half_closed(probe)),
        ),
        Case::new("idle_crowd", "F62", "200 silent sockets and the next caller is answered", |probe| {
            Box::pin(idle_crowd(probe))
        }),
    ]
}

async fn silent(probe: &Probe) -> anyhow::Result<()> {
    let answers = probe.converse("nothing", b"", probe.target.header_bound()).await?;
    refused_or_closed(&answers)
}

async fn half_a_header(probe: &Probe) -> anyhow::Result<()> {
    for half in
        ["P", "POST /webhooks/snaptrade HTTP/1.1\r\n", "POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\nsign"]
    {
        let answers = probe.converse(half, half.as_bytes(), probe.target.header_bound()).await?;
        refused_or_closed(&answers)?;
    }
    Ok(())
}

async fn slow_header(probe: &Probe) -> anyhow::Result<()> {
    let head = Request::get("/openapi.json").header("x", "y".repeat(40)).head(probe.target.public.host());
    let pause = probe.target.limits.header_timeout * 4 / u32::try_from(head.len()).unwrap_or(u32::MAX);
    let mut connection = Connection::open(&probe.target.public).await?;
    drip(&mut connection, &head, pause).await;
    let answers = probe.listen(&mut connection, "a header in drops", probe.target.header_bound()).await?;
    refused_or_closed(&answers)
}

async fn silent_after_an_answer(probe: &Probe) -> anyhow::Result<()> {
    let bytes = Request::get("/openapi.json").bytes(probe.target.public.host());
    let answers = probe.converse("one request, then nothing", &bytes, probe.target.header_bound()).await?;
    ensure!(answers.len() == 1, "{} answers to one request", answers.len());
    answers[0].is(200)?;
    Ok(())
}

async fn http2_preface(probe: &Probe) -> anyhow::Result<()> {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    for (said, bytes) in [
        ("an HTTP/2 preface", [preface.as_slice(), &settings].concat()),
        ("half an HTTP/2 preface", preface[..12].to_vec()),
        ("an HTTP/2 preface without its end", preface[..20].to_vec()),
    ] {
        let answers = probe.converse(said, &bytes, probe.target.header_bound()).await?;
        refused_or_closed(&answers).context(said)?;
    }
    Ok(())
}

async fn tls_hello(probe: &Probe) -> anyhow::Result<()> {
    let hello =
        [&[0x16, 0x03, 0x01, 0x00, 0xf0, 0x01, 0x00, 0x00, 0xec, 0x03, 0x03][..], &[0x5a; 234]].concat();
    let answers = probe.converse("a TLS hello", &hello, probe.target.header_bound()).await?;
    refused_or_closed(&answers)
}

async fn half_closed(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    let mut connection = Connection::open(&probe.target.public).await?;
    connection
        .write(&probe.signed(body.as_str()).bytes(probe.target.public.host()))
        .await
        .context("sending")?;
    connection.finish().await.context("closing our half")?;
    let answers =
        probe.listen(&mut connection, "a delivery, and the end", probe.target.header_bound()).await?;
    ensure!(answers.len() <= 1, "{} answers to one request", answers.len());
    if let Some(answer) = answers.first() {
        answer.has_outcome("queued")?;
    }
    let first = probe.ask(probe.signed(body.as_str())).await?.receipt()?;
    let again = probe.ask(probe.signed(body)).await?.has_outcome("duplicate")?;
    ensure!(again.inbox_id == first.inbox_id, "two rows for one event");
    Ok(())
}

async fn idle_crowd(probe: &Probe) -> anyhow::Result<()> {
    let mut crowd = Vec::new();
    for _ in 0..IDLE {
        crowd.push(Connection::open(&probe.target.public).await?);
    }
    for _ in 0..3 {
        probe.ask(Request::get("/openapi.json")).await?.is(200)?;
        probe.ask(probe.signed(super::snaptrade::event(&Probe::id()))).await?.has_outcome("queued")?;
    }
    drop(crowd);
    Ok(())
}
