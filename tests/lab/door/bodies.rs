//! Bodies by their size and their way: at the limit, over it, compressed, half, in pieces.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::timeout;

use super::case::{Case, Probe};
use super::expect::refused_or_closed;
use super::raw::{Answer, Connection, Request};

/// A refusal in the middle of a body may be lost with the connection; so often it is asked for.
const TRIES: usize = 10;

/// A number that is a length to nobody.
const NO_LENGTH: u64 = u64::MAX - 1;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "at_the_limit",
            "F59",
            "202 for a body of exactly the limit, announced and chunked",
            |probe| Box::pin(at_the_limit(probe)),
        ),
        Case::new("announced_over_the_limit", "F59", "413 before a byte of the body is sent", |probe| {
            Box::pin(announced_over_the_limit(probe))
        }),
        Case::new(
            "chunked_over_the_limit",
            "F59",
            "413 for one byte more than the limit, and no row",
            |probe| Box::pin(chunked_over_the_limit(probe)),
        ),
        Case::new(
            "much_over_the_limit",
            "F59",
            "413 or a closed connection for 16 MB, announced or chunked",
            |probe| Box::pin(much_over_the_limit(probe)),
        ),
        Case::new("compressed", "", "415 for every encoding but identity", |probe| {
            Box::pin(compressed(probe))
        }),
        Case::new("stops_half_way", "F62", "408 or a closed connection in time, and no row", |probe| {
            Box::pin(stops_half_way(probe))
        }),
        Case::new(
            "shorter_than_announced",
            "F59",
            "no 2xx and no row for a body whose sender leaves",
            |probe| Box::pin(shorter_than_announced(probe)),
        ),
        Case::new(
            "byte_by_byte",
            "F62",
            "a body that comes in drops is cut off by the deadline all the same",
            |probe| Box::pin(byte_by_byte(probe)),
        ),
        Case::new("in_pieces", "F59", "202 for chunks with extensions and trailers", |probe| {
            Box::pin(in_pieces(probe))
        }),
        Case::new(
            "broken_chunks",
            "F59",
            "400 or a closed connection for sizes that are none, and no row",
            |probe| Box::pin(broken_chunks(probe)),
        ),
        Case::new("expect_continue", "", "100 and then 202; a refusal comes without a 100", |probe| {
            Box::pin(expect_continue(probe))
        }),
    ]
}

/// A rightly formed event of exactly this length.
fn padded(length: usize) -> String {
    let event = super::snaptrade::event(&Probe::id());
    let start = event.trim_end_matches('}');
    let room = length.saturating_sub(start.len() + r#","x":""}"#.len());
    format!(r#"{start},"x":"{}"}}"#, "x".repeat(room))
}

/// That a body has left no row: its proper delivery is new.
async fn left_no_row(probe: &Probe, body: &str) -> anyhow::Result<()> {
    let receipt = probe.ask(probe.signed(body)).await?.receipt()?;
    ensure!(receipt.outcome == "queued", "a delivery that was not accepted has left a row: {receipt:?}");
    Ok(())
}

async fn at_the_limit(probe: &Probe) -> anyhow::Result<()> {
    let limit = probe.target.limits.webhook_body;
    for length in [limit - 1, limit] {
        let body = padded(length);
        ensure!(body.len() == length, "the case made {} bytes and not {length}", body.len());
        probe.ask(probe.signed(body.as_str())).await?.has_outcome("queued")?;
        probe.ask(probe.signed(body).chunked()).await?.has_outcome("duplicate")?;
    }
    Ok(())
}

async fn announced_over_the_limit(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    for length in [probe.target.limits.webhook_body as u64 + 1, 100 << 20, 1 << 40, NO_LENGTH] {
        let head =
            format!("POST /webhooks/snaptrade HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n");
        let mut connection = Connection::open(&probe.target.public).await?;
        connection.write(head.as_bytes()).await.context("sending a head")?;
        let answer = timeout(probe.target.body_bound(), connection.answer(false))
            .await
            .context("no answer in time")??;
        probe.note(format!("a head that announces {length} bytes"), answer.as_ref());
        let answer = answer.context("no answer")?;
        // The largest number is a length to nobody: then the head itself is refused.
        match length {
            NO_LENGTH => _ = answer.is_one_of(&[400, 413, 431])?,
            _ => answer.refuses(413, "body_too_large")?,
        }
    }
    Ok(())
}

async fn chunked_over_the_limit(probe: &Probe) -> anyhow::Result<()> {
    let body = padded(probe.target.limits.webhook_body + 1);
    let request = probe.signed(body).chunked();
    for _ in 0..TRIES {
        if let Some(answer) = refusal(probe, &request).await? {
            return answer.refuses(413, "body_too_large");
        }
    }
    anyhow::bail!("{TRIES} connections ended without an answer")
}

/// What comes of a request whose body may be refused while it is still sent.
async fn refusal(probe: &Probe, request: &Request) -> anyhow::Result<Option<Answer>> {
    let mut connection = Connection::open(&probe.target.public).await?;
    let bytes = request.bytes(probe.target.public.host());
    let answer = async {
        let _ = connection.write(&bytes).await;
        connection.answer(false).await
    };
    let answer =
        timeout(probe.target.body_bound(), answer).await.context("neither answered nor closed")??;
    probe.note(super::case::describe(request), answer.as_ref());
    Ok(answer)
}

async fn much_over_the_limit(probe: &Probe) -> anyhow::Result<()> {
    let limit = probe.target.limits.webhook_body;
    let request = probe.signed(padded(limit + (16 << 20)));
    for request in [request.clone(), request.chunked()] {
        if let Some(answer) = refusal(probe, &request).await? {
            answer.refuses(413, "body_too_large")?;
        }
    }
    Ok(())
}

async fn compressed(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    for encoding in [
        "gzip",
        "GZIP",
        "x-gzip",
        "br",
        "deflate",
        "zstd",
        "compress",
        "identity, gzip",
        "gzip, identity",
        "x",
        "",
    ] {
        let request = probe.signed(body.as_str()).header("content-encoding", encoding);
        probe
            .ask(request)
            .await?
            .refuses(415, "encoding_not_supported")
            .with_context(|| encoding.to_owned())?;
    }
    let twice =
        probe.signed(body.as_str()).header("content-encoding", "identity").header("content-encoding", "gzip");
    probe.ask(twice).await?.refuses(415, "encoding_not_supported")?;
    let plain = probe.signed(body).header("content-encoding", "identity");
    probe.ask(plain).await?.has_outcome("queued")?;
    Ok(())
}

/// A request's bytes up to the middle of its body.
fn half(probe: &Probe, request: &Request) -> Vec<u8> {
    let mut bytes = request.bytes(probe.target.public.host());
    bytes.truncate(bytes.len() - request.body.len() / 2);
    bytes
}

async fn stops_half_way(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    for request in [probe.signed(body.as_str()), probe.signed(body.as_str()).chunked()] {
        let answers =
            probe.converse("half a body", &half(probe, &request), probe.target.body_bound()).await?;
        refused_or_closed(&answers)?;
        if let Some(answer) = answers.first() {
            answer.refuses(408, "body_timeout")?;
        }
    }
    left_no_row(probe, &body).await
}

async fn shorter_than_announced(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    for request in [probe.signed(body.as_str()), probe.signed(body.as_str()).chunked()] {
        let mut connection = Connection::open(&probe.target.public).await?;
        connection.write(&half(probe, &request)).await.context("sending half a body")?;
        connection.finish().await.context("closing our half")?;
        let answers =
            probe.listen(&mut connection, "half a body, and the end", probe.target.body_bound()).await?;
        refused_or_closed(&answers)?;
    }
    left_no_row(probe, &body).await
}

async fn byte_by_byte(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    let request = probe.signed(body.as_str());
    let bytes = request.bytes(probe.target.public.host());
    let (head, drops) = bytes.split_at(bytes.len() - body.len());
    let mut connection = Connection::open(&probe.target.public).await?;
    connection.write(head).await.context("sending a head")?;
    // So slow that the body would take four times as long as it may.
    let pause = probe.target.limits.body_timeout * 4 / u32::try_from(drops.len()).unwrap_or(u32::MAX);
    drip(&mut connection, drops, pause).await;
    let answers = probe.listen(&mut connection, "a body in drops", probe.target.body_bound()).await?;
    refused_or_closed(&answers)?;
    left_no_row(probe, &body).await
}

/// Sends one byte after another until the other side wants no more of them.
pub(super) async fn drip(connection: &mut Connection, bytes: &[u8], pause: Duration) {
    for byte in bytes {
        if connection.write(&[*byte]).await.is_err() || connection.has_said_something() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

async fn in_pieces(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    let head =
        String::from_utf8_lossy(&probe.signed(body.as_str()).chunked().head(probe.target.public.host()))
            .into_owned();
    let mut bytes = head.into_bytes();
    for byte in body.bytes() {
        bytes.extend_from_slice(format!("1;name=\"value\"\r\n{}\r\n", char::from(byte)).as_bytes());
    }
    bytes.extend_from_slice(b"0\r\nx-trailer: 1\r\nsignature: x\r\n\r\n");
    let mut answers =
        probe.converse("a body in chunks of one byte", &bytes, probe.target.body_bound()).await?;
    ensure!(answers.len() == 1, "{} answers to one request", answers.len());
    answers.remove(0).has_outcome("queued")?;
    probe.ask(probe.signed(body)).await?.has_outcome("duplicate")?;
    Ok(())
}

async fn broken_chunks(probe: &Probe) -> anyhow::Result<()> {
    let body = super::snaptrade::event(&Probe::id());
    let head = probe.signed(body.as_str()).chunked().head(probe.target.public.host());
    let (length, long) = (body.len(), "x".repeat(100_000));
    for chunks in [
        format!("{length}g\r\n{body}\r\n0\r\n\r\n"),
        format!("-{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("ffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x};{long}\r\n{body}\r\n0\r\n\r\n"),
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", length - 1),
        format!("\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x}\n{body}\n0\n\n"),
    ] {
        let said = format!("chunks that begin with `{:.20}`", chunks.escape_debug());
        let bytes = [head.as_slice(), chunks.as_bytes()].concat();
        refused_or_closed(&probe.converse(&said, &bytes, probe.target.body_bound()).await?).context(said)?;
    }
    left_no_row(probe, &body).await
}

async fn expect_continue(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    let body = super::snaptrade::event(&Probe::id());
    let request = probe.signed(body.as_str()).header("expect", "100-continue");
    let mut connection = Connection::open(&probe.target.public).await?;
    connection.write(&request.head(host)).await.context("sending a head")?;
    let interim =
        timeout(probe.target.body_bound(), connection.answer(false)).await.context("no 100 in time")??;
    probe.note("a head with Expect: 100-continue".to_owned(), interim.as_ref());
    interim.context("no answer")?.is(100)?;
    connection.write(body.as_bytes()).await.context("sending the body")?;
    let answer = connection.answer(false).await?;
    probe.note("its body".to_owned(), answer.as_ref());
    answer.context("no answer to the body")?.has_outcome("queued")?;

    let large = Request::post("/webhooks/snaptrade", vec![b'x'; probe.target.limits.webhook_body + 1]);
    let mut connection = Connection::open(&probe.target.public).await?;
    connection.write(&large.header("expect", "100-continue").head(host)).await.context("sending a head")?;
    let answer = connection.answer(false).await?;
    probe.note("a head that announces too much, with Expect: 100-continue".to_owned(), answer.as_ref());
    answer.context("no answer")?.refuses(413, "body_too_large")?;
    for other in ["200-ok", "x", ""] {
        let answer =
            probe.ask(probe.signed(super::snaptrade::event(&Probe::id())).header("expect", other)).await?;
        answer.is_one_of(&[202, 417])?;
    }
    Ok(())
}
