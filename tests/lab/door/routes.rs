//! Which addresses there are, which methods they take, and that each one of the description is there and guarded.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;
use uuid::Uuid;

use super::case::{Case, Need, Probe};
use super::expect::problem;
use super::raw::{Connection, Request};

/// Method and path of every route that callers and senders rely on.
const RELIED_ON: [(&str, &str); 8] = [
    ("post", "/webhooks/snaptrade"),
    ("post", "/webhooks/standard/{source}"),
    ("post", "/webhooks/killbill/{tenant}"),
    ("get", "/v1/commands"),
    ("get", "/v1/commands/{id}"),
    ("post", "/v1/commands/{id}/cancel"),
    ("post", "/v1/snaptrade/accounts/{account_id}/syncs"),
    ("get", "/openapi.json"),
];

/// How long a gateway that has just been started has to become ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("unknown_path", "", "404 not_found", |probe| Box::pin(unknown_path(probe))),
        Case::new("wrong_method", "", "405 method_not_allowed, and Allow names what is taken", |probe| {
            Box::pin(wrong_method(probe))
        }),
        Case::new(
            "head",
            "",
            "the status of GET without a byte of body, and the connection goes on",
            |probe| Box::pin(head(probe)),
        ),
        Case::new(
            "probes_are_inside",
            "",
            "404 for /livez, /readyz and /metrics at the public listener",
            |probe| Box::pin(probes_are_inside(probe)),
        ),
        Case::new(
            "inside_has_probes",
            "",
            "200 for /livez, /readyz and /metrics at the internal listener",
            |probe| Box::pin(inside_has_probes(probe)),
        )
        .needs(Need::Internal),
        Case::new(
            "inside_unknown_path",
            "",
            "404 and 405 as problems at the internal listener too",
            |probe| Box::pin(inside_unknown_path(probe)),
        )
        .needs(Need::Internal),
        Case::new("description", "", "/openapi.json lists every route that others rely on", |probe| {
            Box::pin(description(probe))
        }),
        Case::new(
            "described_and_guarded",
            "",
            "every described route is there and answers 401 without a proof",
            |probe| Box::pin(described_and_guarded(probe)),
        ),
        Case::new(
            "strange_segments",
            "F60",
            "404 or 401 for a segment with NUL, bytes that are no UTF-8, `..`",
            |probe| Box::pin(strange_segments(probe)),
        ),
        Case::new(
            "correlation_id",
            "",
            "a plain id comes back, any other is replaced by one of the gateway's",
            |probe| Box::pin(correlation_id(probe)),
        ),
        Case::new("strange_trace_headers", "F60", "202, whatever traceparent and tracestate hold", |probe| {
            Box::pin(strange_trace_headers(probe))
        }),
    ]
}

async fn unknown_path(probe: &Probe) -> anyhow::Result<()> {
    for path in [
        "/",
        "/nothing",
        "/webhooks",
        "/webhooks/",
        "/webhooks/snaptrade/",
        "/v1",
        "//v1/commands",
        "/V1/commands",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            probe.ask(Request::new(method, path)).await?.refuses(404, "not_found")?;
        }
    }
    Ok(())
}

async fn wrong_method(probe: &Probe) -> anyhow::Result<()> {
    let command = format!("/v1/commands/{}", Uuid::nil());
    for (path, allowed, wrong) in [
        (
            "/webhooks/snaptrade",
            "POST",
            &["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MADEUP"][..],
        ),
        ("/webhooks/standard/any", "POST", &["GET", "PUT"]),
        ("/v1/commands", "GET", &["POST", "PUT", "DELETE"]),
        (command.as_str(), "GET", &["POST", "PUT", "DELETE"]),
        ("/openapi.json", "GET", &["POST", "DELETE"]),
    ] {
        for method in wrong {
            let answer = probe.ask(Request::new(method, path)).await?;
            answer.is(405)?;
            let allow = answer.header("allow").unwrap_or_default();
            ensure!(allow.split(',').any(|word| word.trim() == allowed), "{path}: Allow is `{allow}`");
            if *method != "HEAD" {
                answer.refuses(405, "method_not_allowed")?;
            }
        }
    }
    Ok(())
}

async fn head(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    for (path, status) in [("/openapi.json", 200), ("/nothing", 404), ("/v1/commands", 401)] {
        let mut connection = Connection::open(&probe.target.public).await?;
        let [first, second] = [Request::new("HEAD", path), Request::get("/openapi.json")];
        connection.write(&first.bytes(host)).await.context("sending HEAD")?;
        let answer = connection.answer(true).await?;
        probe.note(format!("HEAD {path}"), answer.as_ref());
        answer.context("no answer to HEAD")?.is(status)?;
        connection.write(&second.bytes(host)).await.context("sending a second request")?;
        let answer = connection.answer(false).await?;
        probe.note("GET /openapi.json on the same connection".to_owned(), answer.as_ref());
        answer.context("no answer to the request behind HEAD")?.is(200)?;
    }
    Ok(())
}

async fn probes_are_inside(probe: &Probe) -> anyhow::Result<()> {
    for path in ["/livez", "/readyz", "/metrics", "/debug/pprof", "/health"] {
        probe.ask(Request::get(path)).await?.refuses(404, "not_found")?;
    }
    Ok(())
}

async fn inside_has_probes(probe: &Probe) -> anyhow::Result<()> {
    ready(probe).await?;
    for (path, holds) in
        [("/livez", "\"live\":true"), ("/readyz", "\"ready\":true"), ("/metrics", "spillway_")]
    {
        let answer = probe.ask_plainly(probe.internal()?, &Request::get(path)).await?;
        let text = String::from_utf8_lossy(&answer.is(200)?.body);
        ensure!(text.contains(holds), "{path} says no `{holds}`");
    }
    Ok(())
}

/// Waits, for so long, until `/readyz` says that it is: a gateway that has just been started has not yet asked its
/// database and says so with 503.
async fn ready(probe: &Probe) -> anyhow::Result<()> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        let answer = probe.ask_plainly(probe.internal()?, &Request::get("/readyz")).await?;
        if answer.status != 503 || Instant::now() > deadline {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn inside_unknown_path(probe: &Probe) -> anyhow::Result<()> {
    for path in ["/nothing", "/webhooks/snaptrade", "/v1/commands", "/openapi.json"] {
        probe.ask_inside(Request::get(path)).await?.refuses(404, "not_found")?;
    }
    probe.ask_inside(Request::get("/webhooks/killbill/main")).await?.refuses(405, "method_not_allowed")
}

async fn description(probe: &Probe) -> anyhow::Result<()> {
    let description = probe.ask(Request::get("/openapi.json")).await?.is(200)?.json()?;
    let version = description["openapi"].as_str().unwrap_or_default();
    ensure!(version.starts_with("3."), "`openapi` is `{version}`");
    for (method, path) in RELIED_ON {
        ensure!(description["paths"][path][method].is_object(), "{method} {path} is not described");
    }
    Ok(())
}

/// What is described and not there would be found by callers only.
async fn described_and_guarded(probe: &Probe) -> anyhow::Result<()> {
    let description = probe.ask(Request::get("/openapi.json")).await?.is(200)?.json()?;
    let paths = description["paths"].as_object().context("no paths are described")?;
    ensure!(!paths.is_empty(), "no path is described");
    for (path, operations) in paths {
        let address = filled(path);
        for method in operations.as_object().into_iter().flatten().map(|(method, _)| method.as_str()) {
            let request = match method {
                "get" => Request::get(&address),
                "post" => Request::post(&address, ""),
                other => anyhow::bail!("{path} is described with the method {other}, which no case knows"),
            };
            let answer = probe.ask(request).await?;
            match path.as_str() {
                "/openapi.json" => _ = answer.is(200)?,
                path if path.starts_with("/webhooks/killbill/") => answer.refuses(404, "not_found")?,
                path => answer.refuses(401, "unauthenticated").with_context(|| format!("{method} {path}"))?,
            }
        }
    }
    Ok(())
}

/// A path with something in place of each variable.
fn filled(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| if segment.starts_with('{') { Uuid::nil().to_string() } else { segment.to_owned() });
    segments.collect::<Vec<_>>().join("/")
}

async fn strange_segments(probe: &Probe) -> anyhow::Result<()> {
    let token = probe.target.secrets.service_token.clone();
    for segment in [
        "%00",
        "%ff",
        "%c3%28",
        "a%00b",
        "..%2f..%2fv1",
        "%2e%2e",
        "%",
        "%zz",
        "a%0d%0ab",
        "%F0%9F%92%A9",
        "'--",
    ] {
        for path in [format!("/v1/commands/{segment}"), format!("/v1/snaptrade/accounts/{segment}")] {
            probe.ask(Request::get(path).bearer(&token)).await?.refuses(404, "not_found")?;
        }
        let cancel = format!("/v1/commands/{segment}/cancel");
        probe.ask(Request::post(cancel, "").bearer(&token)).await?.refuses(404, "not_found")?;
        let create = format!("/v1/snaptrade/accounts/{segment}/syncs");
        let create = Request::post(create, r#"{"work_type":"holdings"}"#).bearer(&token);
        probe.ask(create.header("idempotency-key", Probe::id())).await?.refuses(404, "not_found")?;
        for path in [format!("/webhooks/standard/{segment}"), format!("/webhooks/snaptrade{segment}")] {
            probe.ask(Request::post(path, "{}")).await?.is_one_of(&[401, 404])?;
        }
    }
    Ok(())
}

async fn correlation_id(probe: &Probe) -> anyhow::Result<()> {
    let longest = "x".repeat(64);
    for id in ["order-4711", "a", "A_b.c-1", &longest] {
        probe.ask(Request::get("/nothing").header("x-correlation-id", id)).await?.is(404)?;
    }
    let (longer, longest_header) = ("x".repeat(65), "x".repeat(8000));
    for id in ["", " ", "a b", "<script>", "a/b", "a\"b", "\u{e9}", &longer, &longest_header] {
        let request = Request::get("/nothing").header("x-correlation-id", id);
        let answer = probe.ask_plainly(&probe.target.public, &request).await?;
        let made = answer.header("x-correlation-id").unwrap_or_default();
        ensure!(!made.is_empty() && made != id, "`{id:.20}` is answered with `{made:.20}`");
        let named = problem(&answer)?["correlation_id"].clone();
        ensure!(named == made, "the problem names {named} and the header `{made}`");
    }
    Ok(())
}

async fn strange_trace_headers(probe: &Probe) -> anyhow::Result<()> {
    let long = "a=1,".repeat(1500);
    for (parent, state) in [
        ("", ""),
        ("00-0-0-00", "x"),
        ("00-00000000000000000000000000000000-0000000000000000-00", "a=b"),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=\u{0}b"),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &*long),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=\u{e9}"),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "'\\u0000"),
        ("\u{e9}", "a=\\"),
    ] {
        // A NUL in a header is no header; that is for the case about malformed heads.
        let request = probe.signed(super::snaptrade::event(&Probe::id())).header("traceparent", parent);
        probe.ask(request.header("tracestate", state.replace('\0', ""))).await?.has_outcome("queued")?;
    }
    Ok(())
}
