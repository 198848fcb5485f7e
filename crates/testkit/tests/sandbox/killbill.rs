//! Kill Bill's notifications, as whoever is notified meets them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use serde_json::Value;
use testkit::eventually;
use testkit::sandbox::killbill::{Callback, FACTS_OF_TEN, Habits, payments, push};
use testkit::sandbox::{Config, Sandbox};
use tokio::net::TcpListener;

use crate::client::{Reply, send, start};

const TOKEN: &str = "admission-token-of-the-tests";
const BUDGET: Duration = Duration::from_secs(20);

/// A callback that refuses the first so many tries of every notification.
#[derive(Default)]
struct Ear {
    refuses: usize,
    heard: Mutex<Vec<(HeaderMap, String)>>,
}

impl Ear {
    /// Refuses so many times, and listens at the address of the answer.
    async fn open(refuses: usize) -> (Arc<Self>, Callback) {
        let ear = Arc::new(Self { refuses, ..Self::default() });
        let router = Router::new().route("/webhooks/killbill/main", post(hear)).with_state(Arc::clone(&ear));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        let url = format!("http://{address}/webhooks/killbill/main");
        (ear, Callback { url, admission: TOKEN.to_owned() })
    }

    fn bodies(&self) -> Vec<String> {
        self.heard.lock().expect("no test panics in it").iter().map(|(_, body)| body.clone()).collect()
    }
}

async fn hear(State(ear): State<Arc<Ear>>, headers: HeaderMap, body: String) -> StatusCode {
    let mut heard = ear.heard.lock().expect("no test panics in it");
    heard.push((headers, body.clone()));
    let tries = heard.iter().filter(|(_, known)| *known == body).count();
    if tries > ear.refuses { StatusCode::ACCEPTED } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn play(sandbox: &Sandbox) -> Reply {
    let target = "/sandbox/killbill/payments";
    send(sandbox, "POST", target, "", r#"{"payments":10}"#).await.expect("an answer")
}

fn told(n: usize) -> Vec<String> {
    payments(1, n).into_iter().flat_map(|payment| payment.notifications).collect()
}

/// Quick enough for a test: a day is less than a tenth of a second.
fn quick() -> Habits {
    Habits { pace: 1e-6, ..Habits::default() }
}

#[tokio::test]
async fn notifications_come_as_the_original_sends_them() {
    let (ear, callback) = Ear::open(0).await;
    let bodies = told(10);
    let pushed = push(&callback, &bodies, &quick(), 1).await;

    assert_eq!((pushed.notifications, pushed.requests, pushed.given_up), (FACTS_OF_TEN, FACTS_OF_TEN, 0));
    assert_eq!(ear.bodies(), bodies);
    let heard = ear.heard.lock().expect("no test panics in it");
    for (headers, body) in heard.iter() {
        assert_eq!(headers[header::USER_AGENT], "KillBill/1.0");
        assert_eq!(headers[header::CONTENT_TYPE], "application/json; charset=UTF-8");
        assert_eq!(headers["x-callback-admission"], TOKEN);
        let body: BTreeMap<String, Value> = serde_json::from_str(body).expect("an object");
        let keys: Vec<&str> = body.keys().map(String::as_str).collect();
        assert_eq!(keys, ["accountId", "eventType", "metaData", "objectId", "objectType"]);
        let metadata: Value =
            serde_json::from_str(body["metaData"].as_str().expect("a text")).expect("JSON in a text");
        let processed = ["SUCCESS", "PENDING"].iter().any(|status| metadata["status"] == **status);
        assert_eq!(body["eventType"] == "PAYMENT_SUCCESS", processed);
        assert_eq!(metadata["amount"] != 0, processed);
    }
    assert_eq!(heard[0].0[header::UPGRADE], "h2c");
    assert!(!heard[1].0.contains_key(header::UPGRADE), "a connection is used again");
}

#[tokio::test]
async fn a_failed_notification_comes_again_five_times_and_never_after() {
    let bodies = told(2);
    let (ear, callback) = Ear::open(5).await;
    let pushed = push(&callback, &bodies, &quick(), 1).await;
    assert_eq!((pushed.requests, pushed.given_up), (6 * bodies.len(), 0));
    assert_eq!(ear.bodies().len(), 6 * bodies.len());

    let (ear, callback) = Ear::open(6).await;
    let pushed = push(&callback, &bodies, &quick(), 1).await;
    assert_eq!((pushed.requests, pushed.given_up), (6 * bodies.len(), bodies.len()));
    assert_eq!(ear.bodies().len(), 6 * bodies.len());
}

#[tokio::test]
async fn an_answer_that_comes_too_late_makes_a_repetition() {
    let bodies = told(10);
    let (ear, callback) = Ear::open(0).await;
    let habits = Habits { late_answers: 0.5, at_once: 4, ..quick() };
    let pushed = push(&callback, &bodies, &habits, 1).await;

    assert!(pushed.requests > bodies.len() + 10, "{pushed:?}");
    assert_eq!(ear.bodies().len(), pushed.requests);
}

#[tokio::test]
async fn payments_happen_on_demand_and_no_two_of_them_are_the_same() {
    let (ear, callback) = Ear::open(0).await;
    let sandbox = start(Config { killbill: Some((callback, quick())), ..Config::default() }).await;
    for _ in 0..2 {
        let reply = play(&sandbox).await;
        assert_eq!((reply.status, reply.json()["notifications"].as_u64()), (202, Some(50)));
    }
    let bodies = eventually("all are told", BUDGET, async || {
        Some(ear.bodies()).filter(|bodies| bodies.len() == 2 * FACTS_OF_TEN)
    })
    .await;
    let distinct: BTreeSet<&String> = bodies.iter().collect();

    assert_eq!(distinct.len(), bodies.len());
    assert_eq!(play(&start(Config::default()).await).await.status, 404, "nobody has registered");
}
