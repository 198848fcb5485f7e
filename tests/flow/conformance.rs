//! The cases of `lab door` against the gateway, and against servers that are no doors.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::{Json, Router};
use gateway::Options;
use lab::connection::Settings;
use lab::door::{Args, Finding, Report, Verdict, examine};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::platform::{Platform, Running, SOURCE, SOURCE_SECRET, with};

/// 24 bytes of `t` in base64: the secret that replaces the first one.
const NEXT_SECRET: &str = "whsec_dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0";

const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");

/// The platform's settings with short deadlines and two secrets of one sender.
fn settings(platform: &Platform) -> Vec<(String, String)> {
    let own = [
        ("SANMOPIA_INTAKE_HEADER_TIMEOUT_MS", "1000".to_owned()),
        ("SANMOPIA_INTAKE_BODY_TIMEOUT_MS", "2000".to_owned()),
        ("SANMOPIA_INTAKE_IN_FLIGHT", "128".to_owned()),
        ("SANMOPIA_STANDARD_WEBHOOK_SECRETS", format!("{SOURCE}={SOURCE_SECRET},{SOURCE}={NEXT_SECRET}")),
    ];
    with(platform.settings(), own)
}

/// What failed, as `lab door` prints it.
fn failures(report: &Report) -> String {
    report.failed().map(Finding::to_string).collect()
}

#[tokio::test]
async fn the_gateway_passes_every_case() {
    let platform = Platform::with_accounts(0).await;
    let settings = settings(&platform);
    let mut env =
        settings::Env::of_pairs(settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let options = Options::read(&mut env);
    env.finish().expect("right settings");
    let options = options.expect("right settings");
    let gateway = Running::start(&platform.database.url(), |default| *default = options).await;
    let args = Args {
        url: Some(gateway.url.clone()),
        internal_url: Some(gateway.internal_url.clone()),
        ..Args::default()
    };
    let report = examine(&args, &Settings::of(settings)).await.expect("the gateway is there");

    assert_eq!(failures(&report), "");
    assert_eq!(report.of(Verdict::Skipped).count(), 0, "everything that the cases need is there");
    assert!(report.cases.len() >= 90, "{} cases", report.cases.len());
    gateway.stop().await;
}

/// What the cases say of a server that they must not take for a door.
async fn examined(impostor: impl Future<Output = ()> + Send + 'static, url: String) -> Report {
    let server = tokio::spawn(impostor);
    let platform = Platform::with_accounts(0).await;
    let args = Args { url: Some(url.clone()), internal_url: Some(url), ..Args::default() };
    let report = examine(&args, &Settings::of(settings(&platform))).await.expect("the server is there");
    server.abort();
    report
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    (listener, url)
}

fn passed(report: &Report) -> Vec<String> {
    report.of(Verdict::Passed).map(|case| format!("{}/{}", case.topic, case.name)).collect()
}

/// Answers 200 to whatever comes, and once more to whatever looks like the end of a head.
async fn agree(mut client: TcpStream) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let length = client.read(&mut bytes).await?;
        if length == 0 {
            return Ok(());
        }
        let heads = bytes[..length].windows(4).filter(|four| four == b"\r\n\r\n").count();
        for _ in 0..heads.max(1) {
            client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine").await?;
        }
    }
}

#[tokio::test]
async fn a_server_that_answers_200_to_everything_fails_every_case() {
    let (listener, url) = listen().await;
    let impostor = async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(agree(client));
        }
    };
    let report = examined(impostor, url).await;

    assert_eq!(passed(&report), [""; 0]);
    assert_eq!(report.failed().count(), report.cases.len());
}

#[tokio::test]
async fn a_door_that_believes_everybody_and_remembers_nothing_is_found_out() {
    let receipt = json!({ "outcome": "queued", "inbox_id": "00000000-0000-4000-8000-000000000000" });
    let impostor = Router::new().fallback(async move |headers: HeaderMap| {
        let echo = headers.get(CORRELATION_ID).cloned().map(|id| (CORRELATION_ID, id));
        (StatusCode::ACCEPTED, HeaderMap::from_iter(echo), Json(receipt))
    });
    let (listener, url) = listen().await;
    let report = examined(async move { drop(axum::serve(listener, impostor).await) }, url).await;

    // What is left are right deliveries, and the framing that its HTTP library sees to.
    let passed = passed(&report);
    assert!(
        passed.len() * 100 <= report.cases.len() * 15,
        "{} of {}: {passed:?}",
        passed.len(),
        report.cases.len()
    );
    for guarded in [
        "snaptrade/wrong_signature",
        "snaptrade/duplicate",
        "standard/skew",
        "killbill/wrong_token",
        "commands/no_token",
        "crowd/equal_deliveries_together",
    ] {
        assert!(!passed.iter().any(|name| name == guarded), "{guarded}");
    }
}

#[tokio::test]
async fn clients_that_stand_still_do_not_hold_a_stop_back() {
    let platform = Platform::with_accounts(0).await;
    let gateway = Running::pooled(&platform.database, |options| {
        // Only the stop's own deadline may end them.
        options.header_timeout = Duration::from_mins(10);
        options.intake.body_timeout = Duration::from_mins(10);
    })
    .await;
    let mut clients = Vec::new();
    for said in [
        &b""[..],
        b"POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\nsign",
        b"POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
        b"POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"PRI * HTTP/2.0\r\n\r\nS",
    ] {
        let mut client = TcpStream::connect(gateway.url.trim_start_matches("http://")).await.unwrap();
        client.write_all(said).await.unwrap();
        clients.push(client);
    }
    // One that was answered and stays.
    let mut answered = TcpStream::connect(gateway.url.trim_start_matches("http://")).await.unwrap();
    answered.write_all(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    answered.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");

    gateway.stop().await;
    drop(clients);
}
