//! What the gateway answers to whom, and what it has stored by then.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use serde_json::{Value, json};
use testkit::proxy::Mode;
use testkit::sandbox::snaptrade::webhook::signature;
use testkit::{Proxy, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

use crate::platform::{
    BUDGET, CONSUMER_KEY, Platform, QUEUE, Running, SERVICE_TOKEN, WEBHOOK_SECRET, client, deliver, object,
    send,
};

#[tokio::test]
async fn a_signed_event_is_queued_and_its_command_can_be_read() {
    let platform = Platform::with_accounts(1).await;
    let answer = platform.deliver(&platform.holdings_event("evt-1", 0)).await;

    assert_eq!(answer["outcome"], "queued");
    let command = platform.command(answer["command_id"].as_str().unwrap()).await;
    assert_eq!(
        (&command["status"], &command["workload"]),
        (&json!("queued"), &json!("snaptrade-account-sync"))
    );
    assert_eq!(
        (&command["attempts"], &command["blocked"], &command["failure"]),
        (&json!(0), &Value::Null, &Value::Null)
    );
    assert!(
        command["accepted_at"].is_string()
            && command["started_at"].is_null()
            && command["finished_at"].is_null()
    );
    assert_eq!(command["trace_id"].as_str().map(str::len), Some(32));
}

#[tokio::test]
async fn a_webhook_that_proves_nothing_is_answered_401_and_leaves_no_row() {
    let platform = Platform::with_accounts(1).await;
    let body = platform.holdings_event("evt-1", 0);
    let gateway = &platform.gateways[0].url;
    let right = signature(CONSUMER_KEY, body.as_bytes());
    for wrong in
        [None, Some(""), Some("x"), Some(&right[1..]), Some(&*signature("another-key", body.as_bytes()))]
    {
        let response = send(&platform.http, gateway, &body, wrong).await;
        assert_eq!(response.status(), 401, "{wrong:?}");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let problem = object(response).await;
        assert_eq!(problem["code"], "unauthenticated");
        assert!(problem["correlation_id"].as_str().is_some_and(|id| !id.is_empty()), "{problem}");
    }
    let twice = platform
        .http
        .post(format!("{gateway}/webhooks/snaptrade"))
        .header("signature", &right)
        .header("signature", &right);
    assert_eq!(twice.body(body.clone()).send().await.unwrap().status(), 401);
    let unsigned =
        json!({ "webhookId": "evt-2", "webhookSecret": "not-the-secret-of-the-tests" }).to_string();
    assert_eq!(send(&platform.http, gateway, &unsigned, None).await.status(), 401);

    assert_eq!(platform.count("spillway.webhook_inbox").await, 0);
}

#[tokio::test]
async fn the_older_secret_and_the_misspelt_id_still_work() {
    let platform = Platform::with_accounts(1).await;
    let body = json!({
        "webookId": "old-1", "eventType": "ACCOUNT_HOLDINGS_UPDATED", "accountId": platform.accounts[0],
        "webhookSecret": WEBHOOK_SECRET,
    })
    .to_string();
    let first = send(&platform.http, &platform.gateways[0].url, &body, None).await;
    let second = send(&platform.http, &platform.gateways[0].url, &body, None).await;

    assert_eq!(object(first).await["outcome"], "queued");
    assert_eq!(object(second).await["outcome"], "duplicate");
    assert_eq!(platform.count("spillway.webhook_inbox where identity = 'old-1'").await, 1);
}

#[tokio::test]
async fn one_id_from_sixty_four_clients_over_two_gateways_is_queued_once() {
    let platform = Platform::with(2, 1).await;
    let body = Arc::new(platform.holdings_event("evt-1", 0));
    let start = Arc::new(Barrier::new(64));
    let clients: Vec<_> = (0..64)
        .map(|i| {
            let (body, start) = (body.clone(), start.clone());
            let (http, gateway) = (client(), platform.gateways[i % 2].url.clone());
            tokio::spawn(async move {
                start.wait().await;
                deliver(&http, &gateway, &body).await
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for client in clients {
        outcomes.push(client.await.unwrap());
    }
    let count = |word: &str| outcomes.iter().filter(|answer| answer["outcome"] == word).count();

    assert_eq!((count("queued"), count("duplicate")), (1, 63));
    assert!(outcomes.iter().all(|answer| answer["command_id"] == outcomes[0]["command_id"]));
    assert_eq!(platform.count("spillway.webhook_inbox").await, 1);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn the_same_id_with_another_body_is_quarantined_every_time_and_both_hashes_are_kept() {
    let platform = Platform::with_accounts(2).await;
    platform.deliver(&platform.holdings_event("evt-1", 0)).await;
    let other = platform.holdings_event("evt-1", 1);
    let (first, second) = (platform.deliver(&other).await, platform.deliver(&other).await);

    assert_eq!(first["outcome"], "quarantined");
    assert_eq!(first, second);
    assert_eq!(platform.count("spillway.webhook_inbox").await, 2);
    assert_eq!(
        platform.database.number("select count(distinct body_sha256) from spillway.webhook_inbox").await,
        2
    );
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn authentic_but_broken_webhooks_are_quarantined_and_never_refused() {
    let platform = Platform::with_accounts(1).await;
    for (body, reason) in [
        ("{", "not_json"),
        ("", "not_json"),
        ("[]", "not_json"),
        (r#"{"webhookId":"a","eventType":"USER_DANCED"}"#, "unknown_event"),
        (r#"{"eventType":"USER_REGISTERED"}"#, "identity_missing"),
        (r#"{"webhookId":"b","eventType":"ACCOUNT_HOLDINGS_UPDATED"}"#, "account_missing"),
        (
            r#"{"webhookId":"c","eventType":"ACCOUNT_HOLDINGS_UPDATED","accountId":"00000000-0000-4000-8000-000000000000"}"#,
            "unknown_account",
        ),
    ] {
        if body.is_empty() {
            // Nobody can sign nothing: an empty body proves no sender.
            let response =
                send(&platform.http, &platform.gateways[0].url, body, Some(&signature(CONSUMER_KEY, b"")))
                    .await;
            assert_eq!(response.status(), 401);
            continue;
        }
        let (first, again) = (platform.deliver(body).await, platform.deliver(body).await);
        assert_eq!(
            (&first["outcome"], &first["command_id"]),
            (&json!("quarantined"), &Value::Null),
            "{body}"
        );
        assert_eq!(first, again, "the same delivery gets the same answer");
        let rows = format!(
            "spillway.webhook_inbox where id = '{}' and reason = '{reason}'",
            first["inbox_id"].as_str().unwrap()
        );
        assert_eq!(platform.count(&rows).await, 1, "{body}");
    }
    assert_eq!(platform.count("spillway.command").await, 0);
}

#[tokio::test]
async fn an_event_without_work_is_kept() {
    let platform = Platform::with_accounts(1).await;
    let answer = platform.deliver(r#"{"eventType":"USER_REGISTERED","userId":"u","webhookId":"w"}"#).await;

    assert_eq!((&answer["outcome"], &answer["command_id"]), (&json!("queued"), &Value::Null));
    assert_eq!(
        platform.count("spillway.webhook_inbox where state = 'accepted' and finished_at is not null").await,
        1
    );
}

#[tokio::test]
async fn a_trace_and_a_correlation_id_go_from_the_request_into_ledger_and_message() {
    let platform = Platform::with_accounts(1).await;
    let body = platform.holdings_event("evt-1", 0);
    let response = platform
        .http
        .post(format!("{}/webhooks/snaptrade", platform.gateways[0].url))
        .header("signature", signature(CONSUMER_KEY, body.as_bytes()))
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .header("tracestate", "vendor=1")
        .header("x-correlation-id", "order-4711")
        .body(body)
        .send()
        .await
        .unwrap();

    assert_eq!(response.headers()["x-correlation-id"], "order-4711");
    let answer = object(response).await;
    assert_eq!(
        platform.command(answer["command_id"].as_str().unwrap()).await["trace_id"],
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    let headers =
        platform.database.texts(&format!("select headers::text from pgmq.q_{QUEUE}")).await.remove(0);
    let headers: Value = serde_json::from_str(&headers).unwrap();
    assert!(
        headers["traceparent"].as_str().unwrap().starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{headers}"
    );
    assert_eq!(
        (&headers["tracestate"], &headers["x-correlation-id"]),
        (&json!("vendor=1"), &json!("order-4711"))
    );
}

#[tokio::test]
async fn a_body_fits_up_to_its_limit_also_without_an_announced_length() {
    let platform = Platform::with_accounts(1).await;
    let gateway = Running::pooled(&platform.database, |options| {
        options.intake.webhook_body = 2048;
    })
    .await;
    let padded = |length: usize| {
        let start = r#"{"eventType":"USER_REGISTERED","webhookId":"w","x":""#;
        format!("{start}{}\"}}", "x".repeat(length - start.len() - 2))
    };
    for (length, status) in [(2047, 202), (2048, 202), (2049, 413), (1_000_000, 413)] {
        let body = padded(length);
        let sign = signature(CONSUMER_KEY, body.as_bytes());
        assert_eq!(send(&platform.http, &gateway.url, &body, Some(&sign)).await.status(), status, "{length}");
        let half = body.len() / 2;
        let raw = format!(
            "POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\nsignature: {sign}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
             {half:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            &body[..half],
            body.len() - half,
            &body[half..]
        );
        let answer = speak(&gateway, raw.as_bytes()).await;
        // A refusal may reach us while we still write; then the connection's end is all we see.
        let expected = format!("HTTP/1.1 {status}");
        assert!(
            answer.starts_with(&expected) || (status == 413 && answer.is_empty()),
            "{length}: {answer:.60}"
        );
    }
    gateway.stop().await;
}

/// Sends bytes to a gateway and reads until it closes the connection.
async fn speak(gateway: &Running, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(gateway.url.trim_start_matches("http://")).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(BUDGET, stream.read_to_end(&mut answer)).await.expect("the gateway closes");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_client_that_stops_in_mid_header_or_mid_body_is_let_go() {
    let platform = Platform::with_accounts(1).await;
    let gateway = Running::pooled(&platform.database, |options| {
        options.header_timeout = Duration::from_millis(300);
        options.intake.body_timeout = Duration::from_millis(300);
    })
    .await;

    let half_header = speak(&gateway, b"POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\nsign").await;
    assert!(half_header.is_empty() || half_header.starts_with("HTTP/1.1 408"), "{half_header}");
    assert_eq!(speak(&gateway, b"").await, "", "a silent client");
    let other_protocol = speak(&gateway, b"PRI * HTTP/2.0\r\n\r\nS").await;
    assert!(!other_protocol.contains("200 OK"), "{other_protocol}");
    let half_body = speak(
        &gateway,
        b"POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{\"a\"",
    )
    .await;
    assert!(half_body.starts_with("HTTP/1.1 408"), "{half_body}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_compressed_body_is_refused_unread() {
    let platform = Platform::with_accounts(1).await;
    let request = platform.http.post(format!("{}/webhooks/snaptrade", platform.gateways[0].url));
    let response = request.header(CONTENT_ENCODING, "gzip").body("x").send().await.unwrap();

    assert_eq!(response.status(), 415);
    assert_eq!(object(response).await["code"], "encoding_not_supported");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_as_problems() {
    let platform = Platform::with_accounts(1).await;
    let gateway = &platform.gateways[0].url;
    for (method, path, status, code) in [
        ("GET", "/", 404, "not_found"),
        ("GET", "/metrics", 404, "not_found"),
        ("GET", "/readyz", 404, "not_found"),
        ("GET", "/webhooks/snaptrade", 405, "method_not_allowed"),
        ("TRACE", "/webhooks/snaptrade", 405, "method_not_allowed"),
        ("DELETE", "/v1/commands/1", 405, "method_not_allowed"),
        ("POST", "/webhooks/snaptrade/..%2f", 404, "not_found"),
    ] {
        let request = platform.http.request(method.parse().unwrap(), format!("{gateway}{path}"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{method} {path}");
        assert_eq!(object(response).await["code"], code, "{method} {path}");
    }
}

#[tokio::test]
async fn a_status_is_for_the_holder_of_the_token_only() {
    let platform = Platform::with_accounts(1).await;
    let answer = platform.deliver(&platform.holdings_event("evt-1", 0)).await;
    let url = format!("{}/v1/commands/{}", platform.gateways[0].url, answer["command_id"].as_str().unwrap());
    let bearer = |token: &str| format!("Bearer {token}");
    let longer = bearer(&format!("{SERVICE_TOKEN}x"));
    for wrong in [
        None,
        Some(""),
        Some("Bearer "),
        Some(SERVICE_TOKEN),
        Some(&*bearer("wrong-token-wrong-token")),
        Some(&*longer),
    ] {
        let mut request = platform.http.get(&url);
        if let Some(value) = wrong {
            request = request.header("authorization", value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401, "{wrong:?}");
        assert_eq!(object(response).await["code"], "unauthenticated");
    }
    for unknown in ["00000000-0000-4000-8000-000000000000", "1", "..%2f..%2fetc"] {
        let other = format!("{}/v1/commands/{unknown}", platform.gateways[0].url);
        assert_eq!(platform.http.get(other).bearer_auth(SERVICE_TOKEN).send().await.unwrap().status(), 404);
    }
    assert_eq!(platform.http.get(&url).bearer_auth(SERVICE_TOKEN).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn more_requests_than_permits_are_answered_503_at_once() {
    let platform = Platform::with_accounts(1).await;
    let gateway = Running::pooled(&platform.database, |options| options.intake.in_flight = 1).await;
    // Holds the only permit: its body never comes.
    let mut slow = TcpStream::connect(gateway.url.trim_start_matches("http://")).await.unwrap();
    slow.write_all(b"POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n")
        .await
        .unwrap();
    let body = platform.holdings_event("evt-1", 0);
    let sign = signature(CONSUMER_KEY, body.as_bytes());
    let refused = eventually("the permit is taken", BUDGET, async || {
        let response = send(&platform.http, &gateway.url, &body, Some(&sign)).await;
        (response.status() == 503).then_some(response)
    })
    .await;

    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    assert_eq!(object(refused).await["code"], "busy");
    drop(slow);
    eventually("the permit is free again", BUDGET, async || {
        (send(&platform.http, &gateway.url, &body, Some(&sign)).await.status() == 202).then_some(())
    })
    .await;
    gateway.stop().await;
}

#[tokio::test]
async fn while_the_database_is_silent_nothing_is_promised_and_afterwards_nothing_is_lost() {
    let platform = Platform::with_accounts(1).await;
    let (proxy, url) = behind_a_proxy(&platform).await;
    let gateway = Running::start(&url, |options| {
        options.store = store::Options::of_url(url.as_str(), 4).with_deadline(Duration::from_millis(500));
    })
    .await;
    let body = platform.holdings_event("evt-1", 0);
    let sign = signature(CONSUMER_KEY, body.as_bytes());
    assert_eq!(
        send(&platform.http, &gateway.url, &platform.holdings_event("evt-0", 0), None).await.status(),
        401
    );
    proxy.set(Mode::HoldAnswers);
    let response = send(&platform.http, &gateway.url, &body, Some(&sign)).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "5");
    assert_eq!(object(response).await["code"], "unavailable");
    proxy.set(Mode::Pass);
    // The sender's next try is taken in, or is a duplicate of what the first one had committed.
    eventually("the event is taken in", BUDGET, async || {
        (send(&platform.http, &gateway.url, &body, Some(&sign)).await.status() == 202).then_some(())
    })
    .await;

    assert_eq!(platform.count("spillway.webhook_inbox where identity = 'evt-1'").await, 1);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 1);
    gateway.stop().await;
}

#[tokio::test]
async fn clients_that_leave_early_cost_no_connection_and_no_pair() {
    let platform = Platform::with(0, 217).await;
    // Its connections are sessions of the server, which can be told apart.
    let gateway = Running::start(&platform.database.url_as("spillway_gateway"), |_| ()).await;
    // All connections of the pool, opened by as many requests at a time.
    let warm: Vec<String> = (0..16).map(|i| platform.holdings_event(&format!("warm-{i}"), i)).collect();
    futures_util::future::join_all(warm.iter().map(|body| deliver(&platform.http, &gateway.url, body))).await;
    let backends = || {
        platform.database.texts(
            "select pid::text from pg_stat_activity where datname = current_database()
               and application_name = 'spillway gateway intake' order by 1",
        )
    };
    let before = backends().await;
    let address = gateway.url.trim_start_matches("http://").to_owned();
    let leavers: Vec<_> = (0..200)
        .map(|i| {
            let (address, body) = (address.clone(), platform.holdings_event(&format!("evt-{i}"), 16 + i));
            tokio::spawn(async move {
                let sign = signature(CONSUMER_KEY, body.as_bytes());
                let mut stream = TcpStream::connect(address).await.unwrap();
                let head = format!("POST /webhooks/snaptrade HTTP/1.1\r\nhost: x\r\nsignature: {sign}\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(body.as_bytes()).await.unwrap();
                // Some leave at once, some a little later: at every await point of the handler.
                for _ in 0..i % 40 {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for leaver in leavers {
        leaver.await.unwrap();
    }
    let answer = deliver(&platform.http, &gateway.url, &platform.holdings_event("evt-last", 216)).await;

    assert_eq!(answer["outcome"], "queued");
    eventually("what was begun is finished", BUDGET, async || {
        let (rows, messages) = (
            platform.count("spillway.webhook_inbox").await,
            platform.count(&format!("pgmq.q_{QUEUE}")).await,
        );
        let idle =
            "pg_stat_activity where datname = current_database() and state like 'idle in transaction%'";
        (rows == messages && platform.count(idle).await == 0).then_some(())
    })
    .await;
    let after = backends().await;
    assert!(before.iter().all(|backend| after.contains(backend)), "no connection was lost");
}

#[tokio::test]
async fn a_stop_answers_what_is_in_work_and_says_so_before() {
    let platform = Platform::with_accounts(1).await;
    let (proxy, url) = behind_a_proxy(&platform).await;
    let gateway = Running::start(&url, |_| ()).await;
    let internal = gateway.internal_url.clone();
    let get = async |path: &str| {
        let response = platform.http.get(format!("{internal}{path}")).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    eventually("the gateway is ready", BUDGET, async || (get("/readyz").await.0 == 200).then_some(())).await;
    let (_, metrics) = get("/metrics").await;
    assert!(metrics.contains("spillway_build_info{service=\"gateway\""), "{metrics}");

    proxy.set(Mode::HoldAnswers);
    let (http, public, body) = (client(), gateway.url.clone(), platform.holdings_event("evt-1", 0));
    let in_work = tokio::spawn(async move { deliver(&http, &public, &body).await });
    eventually("the request is in work", BUDGET, async || {
        get("/metrics").await.1.contains("spillway_http_in_flight{listener=\"public\"} 1").then_some(())
    })
    .await;
    // Neither an idle nor a half-open client holds the stop back.
    let _idle = TcpStream::connect(gateway.url.trim_start_matches("http://")).await.unwrap();
    let stopping = tokio::spawn(gateway.stop());
    eventually("the gateway says that it stops", BUDGET, async || {
        let (status, said) = get("/readyz").await;
        (status == 503 && said.contains("stopping")).then_some(())
    })
    .await;
    proxy.set(Mode::Pass);

    assert_eq!(in_work.await.unwrap()["outcome"], "queued");
    stopping.await.unwrap();
}

/// A way to the platform's database that can withhold its answers.
async fn behind_a_proxy(platform: &Platform) -> (Proxy, String) {
    let mut url = url::Url::parse(&platform.database.url_as("spillway_gateway")).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap()).parse().unwrap();
    let proxy = Proxy::start(server).await;
    url.set_port(Some(proxy.address().port())).unwrap();
    (proxy, url.to_string())
}
