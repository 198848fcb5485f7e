use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use secrecy::SecretString;
use serde_json::Value;
use store::Pool;
use telemetry::Metrics;
use tower::ServiceExt;
use webhook::killbill::Admission;
use webhook::snaptrade::Verifier;
use webhook::standard::Sources;

use super::*;
use crate::{Options, Services};

/// A door in front of no database: a route that asks for a row before it asks for a proof can't answer 401.
fn door() -> Arc<Door> {
    let secret = || SecretString::from("a-secret-that-no-request-here-knows");
    let options = Options {
        in_flight: 8,
        reads_in_flight: 8,
        body_timeout: Duration::from_secs(1),
        webhook_body: 1024,
        command_body: 1024,
        longest_wait: Duration::from_secs(1),
        snaptrade: Verifier::new(secret(), secret()),
        killbill: Admission::new(secret()),
        killbill_window: Duration::from_mins(1),
        standard: Sources::of([("shop", SecretString::from("whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz"))])
            .expect("24 bytes"),
        services: Services::new(secret(), Vec::new()),
        users: None,
    };
    let nowhere = store::Options::of_url("postgres://nobody@127.0.0.1:1/nothing", 1);
    let pool = Pool::prepare(&nowhere, "test", 1).expect("a URL");
    let metrics = Arc::new(Metrics::new("test", "0"));
    Arc::new(Door::new(options, pool.clone(), pool, metrics))
}

/// Status and code of the answer to a request that brings a body and what else is given, on one listener.
async fn answer(
    router: Router,
    method: &Method,
    path: &str,
    header: Option<(&str, &str)>,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path.replace(['{', '}'], ""));
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let request = request.body(Body::from("{}")).expect("a request");
    let response = router.oneshot(request).await.expect("routers never fail");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, body["code"].clone())
}

fn served(door: &Arc<Door>, listener: Listener) -> Router {
    match listener {
        Listener::Public => public(door),
        Listener::Internal => internal(door),
    }
}

#[tokio::test]
async fn every_route_keeps_to_its_policy() {
    let door = door();
    for Route { method, path, listener, policy, .. } in table() {
        let ask = |header| answer(served(&door, listener), &method, path, header);
        let wrong = match policy {
            Policy::Everybody => {
                assert_eq!(ask(None).await.0, StatusCode::OK, "{method} {path}");
                continue;
            }
            Policy::Caller => {
                [("authorization", "Bearer wrong"), ("authorization", "wrong"), ("x-scope", "system")]
            }
            Policy::Sender => [
                ("signature", "wrong"),
                ("webhook-signature", "v1,wrong"),
                (webhook::killbill::ADMISSION_HEADER, "wrong"),
            ],
        };
        for header in [None].into_iter().chain(wrong.map(Some)) {
            let refused = (StatusCode::UNAUTHORIZED, "unauthenticated".into());
            assert_eq!(ask(header).await, refused, "{method} {path} with {header:?}");
        }
    }
}

#[tokio::test]
async fn every_route_is_served_by_its_own_listener_only() {
    let door = door();
    for Route { method, path, listener, .. } in table() {
        let other = match listener {
            Listener::Public => Listener::Internal,
            Listener::Internal => Listener::Public,
        };
        let (status, _) = answer(served(&door, other), &method, path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
    }
}

#[test]
fn the_description_lists_exactly_the_routes_of_the_table() {
    let table: Vec<String> = table()
        .iter()
        .map(|route| format!("{} {}", route.method.as_str().to_lowercase(), route.path))
        .collect();
    let document = openapi::document();
    let paths = document["paths"].as_object().expect("an object");
    let described: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().into_iter().flatten().map(move |(method, _)| format!("{method} {path}"))
        })
        .collect();

    assert_eq!(described, table.iter().cloned().collect());
    assert_eq!(described.len(), table.len(), "a method and path stand once in the table");
}

#[test]
fn the_description_asks_for_a_token_where_the_policy_does() {
    let document = openapi::document();
    for Route { method, path, policy, .. } in table() {
        let operation = &document["paths"][path][method.as_str().to_lowercase()];
        assert_eq!(operation["security"].is_array(), policy == Policy::Caller, "{method} {path}");
    }
}
