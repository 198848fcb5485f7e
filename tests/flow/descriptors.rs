//! A gateway that runs out of file descriptors.

use std::time::Duration;

use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::platform::{BUDGET, Platform, client, deliver, with};
use crate::program::{Program, free_address};

/// More than a gateway has for itself, and less than callers can use up.
const DESCRIPTORS: usize = 64;

#[tokio::test]
async fn without_a_free_descriptor_a_gateway_serves_who_is_there_and_the_others_as_soon_as_it_can() {
    let platform = Platform::with(0, 1).await;
    let (public, internal) = (free_address(), free_address());
    let own = [
        ("SANMOPIA_GATEWAY_LISTEN", public.clone()),
        ("SANMOPIA_GATEWAY_INTERNAL_LISTEN", internal.clone()),
        // Nobody of the crowd is sent away.
        ("SANMOPIA_INTAKE_HEADER_TIMEOUT_MS", Duration::from_mins(10).as_millis().to_string()),
    ];
    let settings = with(platform.settings(), own);
    let gateway = Program::start_with_descriptors("gateway", &settings, DESCRIPTORS);
    eventually("the gateway is ready", BUDGET, async || {
        let answer = platform.http.get(format!("http://{internal}/readyz")).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let url = format!("http://{public}");
    // On a connection that stays.
    deliver(&platform.http, &url, &platform.holdings_event("evt-1", 0)).await;

    let mut crowd = Vec::new();
    for _ in 0..DESCRIPTORS {
        crowd.push(TcpStream::connect(&public).await.unwrap());
    }
    eventually("no descriptor is free", BUDGET, async || gateway.has_all(DESCRIPTORS).then_some(())).await;
    let mut late = TcpStream::connect(&public).await.unwrap();
    let request = format!("GET /openapi.json HTTP/1.1\r\nhost: {public}\r\nconnection: close\r\n\r\n");
    late.write_all(request.as_bytes()).await.unwrap();
    deliver(&platform.http, &url, &platform.holdings_event("evt-2", 0)).await;

    drop(crowd);
    let mut answer = String::new();
    tokio::time::timeout(BUDGET, late.read_to_string(&mut answer)).await.expect("an answer").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    deliver(&client(), &url, &platform.holdings_event("evt-3", 0)).await;
    assert_eq!(platform.count("spillway.webhook_inbox").await, 3);
    assert_eq!(gateway.terminate().await, Some(0));
}
