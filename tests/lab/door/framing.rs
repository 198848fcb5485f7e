//! Requests whose beginning or end two servers could see at different places, and bytes that are none.

use anyhow::{Context, ensure};

use super::case::{Case, Probe};
use super::expect::refused_or_closed;
use super::raw::{Answer, Request};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("pipelined", "", "as many answers as requests, in their order", |probe| {
            Box::pin(pipelined(probe))
        }),
        Case::new(
            "length_and_chunks",
            "",
            "refused, or answered once and closed: what is hidden is never answered",
            |probe| Box::pin(length_and_chunks(probe)),
        ),
        Case::new("two_lengths", "", "400 for lengths that differ or are none", |probe| {
            Box::pin(two_lengths(probe))
        }),
        Case::new(
            "other_transfer_encodings",
            "",
            "refused, or read as chunks: what is hidden is never answered",
            |probe| Box::pin(other_transfer_encodings(probe)),
        ),
        Case::new("unread_body", "", "the body of a refused request is never read as a request", |probe| {
            Box::pin(unread_body(probe))
        }),
        Case::new("malformed_heads", "F60", "400 or a closed connection, never 2xx or 5xx", |probe| {
            Box::pin(malformed_heads(probe))
        }),
        Case::new("huge_head", "F60", "431, 414, 400 or a closed connection, never 2xx or 5xx", |probe| {
            Box::pin(huge_head(probe))
        }),
        Case::new("absolute_target", "", "the same answer as for the path alone", |probe| {
            Box::pin(absolute_target(probe))
        }),
        Case::new(
            "raw_target_bytes",
            "F60",
            "4xx or a closed connection for targets that are no URI",
            |probe| Box::pin(raw_target_bytes(probe)),
        ),
        Case::new("older_protocol", "", "one answer in HTTP/1.0, and the connection is closed", |probe| {
            Box::pin(older_protocol(probe))
        }),
    ]
}

/// A request that must never be answered where it is hidden in another one's body.
fn hidden(probe: &Probe) -> String {
    format!(
        "GET /openapi.json HTTP/1.1\r\nhost: {}\r\nx-correlation-id: hidden\r\n\r\n",
        probe.target.public.host()
    )
}

/// The hidden request was read as part of a body, or not at all.
fn hidden_stays_hidden(answers: &[Answer]) -> anyhow::Result<()> {
    let found = answers.iter().find(|answer| answer.header("x-correlation-id") == Some("hidden"));
    ensure!(found.is_none(), "the request that was hidden in a body was answered");
    ensure!(answers.len() <= 1, "{} answers to one request", answers.len());
    for answer in answers {
        ensure!(answer.status < 500, "{} is a failure of the gateway's own", answer.status);
    }
    Ok(())
}

/// The head of a POST with these header lines.
fn head(probe: &Probe, lines: &str) -> String {
    format!("POST /webhooks/snaptrade HTTP/1.1\r\nhost: {}\r\n{lines}\r\n", probe.target.public.host())
}

async fn pipelined(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    let requests = [
        Request::get("/openapi.json"),
        probe.signed(super::snaptrade::event(&Probe::id())),
        Request::get("/nothing"),
        probe.signed(super::snaptrade::event(&Probe::id())),
        Request::get("/v1/commands").header("connection", "close"),
    ];
    let numbered = requests.into_iter().enumerate();
    let bytes: Vec<u8> = numbered
        .flat_map(|(i, request)| request.header("x-correlation-id", format!("n-{i}")).bytes(host))
        .collect();
    let answers = probe.converse("five requests at once", &bytes, probe.target.header_bound()).await?;
    let seen: Vec<(u16, &str)> = answers
        .iter()
        .map(|answer| (answer.status, answer.header("x-correlation-id").unwrap_or_default()))
        .collect();
    ensure!(
        seen == [(200, "n-0"), (202, "n-1"), (404, "n-2"), (202, "n-3"), (401, "n-4")],
        "the answers are {seen:?}"
    );
    Ok(())
}

async fn length_and_chunks(probe: &Probe) -> anyhow::Result<()> {
    let hidden = hidden(probe);
    let body = format!("0\r\n\r\n{hidden}");
    let length = body.len();
    for lines in [
        format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"),
        format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n"),
        format!("Transfer-Encoding: Chunked\r\nContent-Length: {length}\r\n"),
        format!("content-length: {length}\r\ntransfer-encoding: identity, chunked\r\n"),
    ] {
        let bytes = head(probe, &lines) + &body;
        let answers = probe.converse(&lines, bytes.as_bytes(), probe.target.body_bound()).await?;
        hidden_stays_hidden(&answers).context(lines)?;
    }
    Ok(())
}

async fn two_lengths(probe: &Probe) -> anyhow::Result<()> {
    let hidden = hidden(probe);
    let length = hidden.len();
    for lines in [
        format!("content-length: 0\r\ncontent-length: {length}\r\n"),
        format!("content-length: {length}\r\ncontent-length: 0\r\n"),
        format!("content-length: 0, {length}\r\n"),
        format!("content-length: +{length}\r\n"),
        "content-length: -1\r\n".to_owned(),
        format!("content-length: 0x{length:x}\r\n"),
        "content-length: 1e2\r\n".to_owned(),
        "content-length: 99999999999999999999999\r\n".to_owned(),
        "content-length: \r\n".to_owned(),
        "content-length: 0 0\r\n".to_owned(),
    ] {
        let bytes = head(probe, &lines) + &hidden;
        let answers = probe.converse(&lines, bytes.as_bytes(), probe.target.body_bound()).await?;
        hidden_stays_hidden(&answers).and_then(|()| refused_or_closed(&answers)).context(lines)?;
    }
    Ok(())
}

async fn other_transfer_encodings(probe: &Probe) -> anyhow::Result<()> {
    let hidden = hidden(probe);
    let body = format!("0\r\n\r\n{hidden}");
    let length = body.len();
    for lines in [
        "transfer-encoding: xchunked\r\n".to_owned(),
        "transfer-encoding: chunked, identity\r\n".to_owned(),
        "transfer-encoding: gzip\r\n".to_owned(),
        "transfer-encoding: chunked\r\ntransfer-encoding: x\r\n".to_owned(),
        format!("content-length: {length}\r\ntransfer-encoding: \x0bchunked\r\n"),
        format!("content-length: {length}\r\ntransfer-encoding : chunked\r\n"),
        format!("content-length: {length}\r\n transfer-encoding: chunked\r\n"),
        format!("content-length: {length}\r\nx: y\r\n\ttransfer-encoding: chunked\r\n"),
        format!("content-length: {length}\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n"),
    ] {
        let bytes = head(probe, &lines) + &body;
        let answers = probe.converse(&lines, bytes.as_bytes(), probe.target.body_bound()).await?;
        hidden_stays_hidden(&answers).context(lines)?;
    }
    Ok(())
}

async fn unread_body(probe: &Probe) -> anyhow::Result<()> {
    let hidden = hidden(probe);
    let filler = "x".repeat(100_000);
    for request in [
        Request::post("/nothing", hidden.as_str()),
        Request::post("/webhooks/snaptrade", hidden.as_str()).header("content-encoding", "gzip"),
        Request::new("PUT", "/webhooks/snaptrade").with_body(hidden.as_str()),
        Request::post("/v1/commands/1/cancel", hidden.as_str()),
        Request::post("/webhooks/snaptrade", format!("{hidden}{filler}")),
        Request::post("/nothing", format!("{filler}{hidden}")),
        Request::post("/nothing", hidden.as_str()).chunked(),
    ] {
        let bytes = request.bytes(probe.target.public.host());
        let said = super::case::describe(&request);
        let answers = probe.converse(&said, &bytes, probe.target.body_bound()).await?;
        hidden_stays_hidden(&answers).context(said)?;
    }
    let over = format!("{}{hidden}", "x".repeat(probe.target.limits.webhook_body + 1));
    let bytes = Request::post("/webhooks/snaptrade", over).bytes(probe.target.public.host());
    let answers =
        probe.converse("a request in a body over the limit", &bytes, probe.target.body_bound()).await?;
    hidden_stays_hidden(&answers)
}

async fn malformed_heads(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    for head in [
        "\r\n\r\n\r\nGARBAGE\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /openapi.json\r\n\r\n".to_owned(),
        format!("GET /openapi.json HTTP/9.9\r\nhost: {host}\r\n\r\n"),
        format!("GET /openapi.json HTTP/2.0\r\nhost: {host}\r\n\r\n"),
        format!("GET /openapi.json http/1.1\r\nhost: {host}\r\n\r\n"),
        format!("G\u{e9}T /openapi.json HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!("G(T /openapi.json HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!("GET  HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\nno colon\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\n: no name\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\na b: space\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\nx: a\0b\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\nx\0: a\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\nx: a\rb\r\n\r\n"),
        format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\n\tfolded\r\n\r\n"),
        "\0\0\0\0\r\n\r\n".to_owned(),
        "<?xml version=\"1.0\"?>\r\n\r\n".to_owned(),
        "SSH-2.0-OpenSSH_9.0\r\n".to_owned(),
        "{\"webhookId\":1}\r\n\r\n".to_owned(),
    ] {
        let said = head.escape_debug().to_string();
        let answers = probe.converse(&said, head.as_bytes(), probe.target.header_bound()).await?;
        refused_or_closed(&answers).context(said)?;
    }
    Ok(())
}

async fn huge_head(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    let (large, many) = ("x".repeat(2 << 20), "x: y\r\n".repeat(5000));
    for (said, head) in [
        ("a header of 2 MB", format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\nx: {large}\r\n\r\n")),
        (
            "a header's name of 2 MB",
            format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\n{large}: y\r\n\r\n"),
        ),
        ("5000 headers", format!("GET /openapi.json HTTP/1.1\r\nhost: {host}\r\n{many}\r\n")),
        ("a path of 2 MB", format!("GET /{large} HTTP/1.1\r\nhost: {host}\r\n\r\n")),
        ("a method of 2 MB", format!("{large} / HTTP/1.1\r\nhost: {host}\r\n\r\n")),
        ("2 MB without an end of a line", large.clone()),
        ("2 MB of empty lines", "\r\n".repeat(1 << 20)),
    ] {
        let answers = probe.converse(said, head.as_bytes(), probe.target.header_bound()).await?;
        refused_or_closed(&answers).context(said)?;
    }
    Ok(())
}

async fn absolute_target(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    for authority in [host, "elsewhere.example", "user:secret@elsewhere.example:1"] {
        probe.ask(Request::get(format!("http://{authority}/openapi.json"))).await?.is(200)?;
        probe.ask(Request::get(format!("http://{authority}/metrics"))).await?.refuses(404, "not_found")?;
        let mut request = probe.signed(super::snaptrade::event(&Probe::id()));
        request.target = format!("http://{authority}/webhooks/snaptrade");
        probe.ask(request).await?.has_outcome("queued")?;
    }
    Ok(())
}

async fn raw_target_bytes(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    for target in [
        b"/v1/commands/\xff".as_slice(),
        b"/webhooks/standard/\xc3\x28",
        b"/\0",
        b"/a\x7fb",
        b"*",
        b"openapi.json",
        b"/../openapi.json",
        b"/webhooks/../openapi.json",
        b"//openapi.json",
        b"/openapi.json\\",
        b"/openapi.json;x=1",
        b"\\openapi.json",
        b"http://",
        b"host:80",
        b"/v1/commands/\"<>",
        b"/#/openapi.json",
    ] {
        let start = [b"GET ".as_slice(), target].concat();
        let rest = format!(" HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let said = String::from_utf8_lossy(target).escape_debug().to_string();
        let answers =
            probe.converse(&said, &[&start, rest.as_bytes()].concat(), probe.target.header_bound()).await?;
        refused_or_closed(&answers).context(said)?;
    }
    Ok(())
}

async fn older_protocol(probe: &Probe) -> anyhow::Result<()> {
    let answers = probe
        .converse(
            "GET /openapi.json HTTP/1.0",
            b"GET /openapi.json HTTP/1.0\r\n\r\n",
            probe.target.header_bound(),
        )
        .await?;
    ensure!(answers.len() == 1, "{} answers", answers.len());
    answers[0].is(200)?;
    Ok(())
}
