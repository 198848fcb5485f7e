//! A gateway on a real database: whatever is sent to it, the answer is never our own failure, and what is authentic
//! is always taken in.

use std::time::Duration;

use gateway::{Gateway, Options};
use intake::Services;
use reqwest::{Client, Response};
use secrecy::SecretString;
use serde_json::Value;
use testkit::Database;
use testkit::database::Watcher;
use testkit::sandbox::snaptrade::webhook::signature;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;
use webhook::killbill::Admission;
use webhook::snaptrade::Verifier;
use webhook::standard::Sources;

use crate::harness::{Case, Cases};
use crate::webhooks::{killbill_events, snaptrade_events};

const KEY: &str = "consumer-key-of-the-fuzz";
const TOKEN: &str = "service-token-of-the-fuzz";

struct Door {
    url: String,
    internal_url: String,
    http: Client,
    look: Watcher,
    _database: Database,
}

impl Door {
    async fn open() -> Self {
        // The first one decides; all of ours decide the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let database = Database::fresh().await;
        database
            .execute(&format!(
                "insert into spillway.snaptrade_user values ('user-é', '');
                 insert into spillway.snaptrade_account (account_id, user_id) values ('{}', 'user-é')",
                Uuid::from_u128(7)
            ))
            .await;
        let local = "127.0.0.1:0".parse().unwrap();
        let secret = |text: &str| SecretString::from(text);
        let options = Options {
            listen: local,
            internal_listen: local,
            header_timeout: Duration::from_secs(5),
            store: store::Options::of_url(database.url_as("spillway_gateway"), 4),
            intake: intake::Options {
                in_flight: 64,
                reads_in_flight: 64,
                body_timeout: Duration::from_secs(5),
                webhook_body: 256 * 1024,
                command_body: 256 * 1024,
                longest_wait: Duration::ZERO,
                snaptrade: Verifier::new(secret(KEY), secret("webhook-secret-of-the-fuzz")),
                killbill: Admission::new(secret(TOKEN)),
                killbill_window: Duration::from_mins(1),
                standard: Sources::of([("shop", secret("whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz"))]).unwrap(),
                services: Services::new(secret(TOKEN), Vec::new()),
                users: None,
            },
        };
        let gateway = Gateway::bind(options).await.unwrap();
        let url = format!("http://{}", gateway.address().unwrap());
        let internal_url = format!("http://{}", gateway.internal_address().unwrap());
        // It serves for as long as the test lasts.
        tokio::spawn(
            async move { gateway.serve(&process::Options::brief(), CancellationToken::new()).await },
        );
        Self { url, internal_url, http: Client::new(), look: database.watcher().await, _database: database }
    }

    async fn send_snaptrade(&self, body: &[u8]) -> Response {
        self.http
            .post(format!("{}/webhooks/snaptrade", self.url))
            .header("signature", signature(KEY, body))
            .body(body.to_vec())
            .send()
            .await
            .unwrap()
    }

    async fn send_killbill(&self, body: &[u8]) -> Response {
        self.http
            .post(format!("{}/webhooks/killbill/main", self.internal_url))
            .header("x-callback-admission", TOKEN)
            .body(body.to_vec())
            .send()
            .await
            .unwrap()
    }

    /// An authentic delivery is promised, and the promise is a row.
    async fn assert_taken_in(&mut self, case: &Case, answer: Response) {
        let (status, body) = (answer.status(), answer.bytes().await.unwrap());
        assert_eq!(status, 202, "{}", String::from_utf8_lossy(&body));
        let answer: Value = serde_json::from_slice(&body).unwrap();
        let outcome = answer["outcome"].as_str().unwrap();
        assert!(["queued", "coalesced", "duplicate", "quarantined"].contains(&outcome), "{answer}");
        let hex: String = case.input.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect();
        let kept = format!("select id::text from spillway.webhook_inbox where body = '\\x{hex}'");
        // A repetition that differs only in its form is not kept.
        assert!(outcome == "duplicate" || !self.look.texts(&kept).await.is_empty(), "{answer}");
    }
}

fn digit(nibble: u8) -> char {
    char::from_digit(nibble.into(), 16).unwrap()
}

#[tokio::test]
async fn an_authentic_webhook_is_taken_in_whatever_it_holds() {
    let mut door = Door::open().await;
    let (snaptrade, killbill) = (snaptrade_events(), killbill_events());
    let of_snaptrade = snaptrade.len();
    Cases::new("authentic webhooks", snaptrade.into_iter().chain(killbill))
        .check_async(async |case| {
            if case.input.is_empty() {
                return;
            }
            let answer = if case.example < of_snaptrade {
                door.send_snaptrade(&case.input).await
            } else {
                door.send_killbill(&case.input).await
            };
            door.assert_taken_in(case, answer).await;
        })
        .await;
}

#[tokio::test]
async fn a_request_is_answered_whatever_it_asks() {
    let door = Door::open().await;
    let account = Uuid::from_u128(7);
    let examples = [
        "status=queued&limit=50&workload=snaptrade-account-sync".to_owned(),
        format!("cursor={account}"),
        "wait=20s".to_owned(),
        account.to_string(),
        r#"{"work_type":"holdings","not_before":"2026-05-01T00:00:00Z"}"#.to_owned(),
    ];
    Cases::new("requests", examples)
        .check_async(async |case| {
            let raw: String = byte_serialize(&case.input).collect();
            let query: String = raw.replace("%3D", "=").replace("%26", "&");
            let segment = raw.replace('+', "%20");
            let commands = format!("{}/v1/commands", door.url);
            let syncs = format!("{}/v1/snaptrade/accounts/{account}/syncs", door.url);
            let requests = [
                door.http.get(format!("{commands}?{query}")),
                door.http.get(format!("{commands}/{segment}")),
                door.http.get(format!("{commands}/{account}?{query}")),
                door.http.post(format!("{commands}/{segment}/cancel")),
                door.http.post(syncs).header("idempotency-key", raw).body(case.input.clone()),
            ];
            for request in requests {
                let request = request.header("traceparent", segment.clone()).bearer_auth(TOKEN);
                let answer = request.send().await.unwrap();
                assert!(!answer.status().is_server_error(), "{}: {}", answer.url().clone(), answer.status());
            }
        })
        .await;
}
