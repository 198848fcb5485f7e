//! Who calls `/v1`: users with tokens of Supabase, and services that speak for somebody.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use intake::Services;
use providers::supabase;
use reqwest::RequestBuilder;
use reqwest::header::RETRY_AFTER;
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::supabase::{Answer, Publisher, SigningKey, hs256_token, message};

use crate::commands::{refusal, sync_request};
use crate::platform::{Platform, Running, SERVICE_TOKEN, USER, client, object};

const ISSUER: &str = "https://ref.supabase.co/auth/v1";
const AUDIENCE: &str = "authenticated";
const HOLDINGS: &str = r#"{"work_type":"holdings"}"#;
const BILLING_TOKEN: &str = "billing-token-of-the-tests";

/// A gateway that believes tokens which are signed by the published keys.
async fn gateway(platform: &Platform, publisher: &Publisher) -> Running {
    Running::pooled(&platform.database, |options| {
        let further = vec![("billing".to_owned(), SecretString::from(BILLING_TOKEN))];
        options.intake.services = Services::new(SecretString::from(SERVICE_TOKEN), further);
        options.intake.users = Some(supabase::Options {
            jwks_url: publisher.url.clone(),
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            scope_claim: "app_metadata.branch".to_owned(),
        });
    })
    .await
}

fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("for a long time") + seconds
}

/// What Supabase says of a user.
fn claims(user: &str, branch: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": user, "exp": in_seconds(3600), "session_id": "session-1",
        "app_metadata": { "branch": branch }, "user_metadata": { "branch": "branch-of-my-own" },
    })
}

fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims(USER, "branch-7");
    claims[name] = value;
    claims
}

/// The id of a command that a service puts in for somebody.
async fn put_in(platform: &Platform, gateway: &Running, key: &str, asserted: &[(&str, &str)]) -> String {
    let request = sync_request(platform, &gateway.url, platform.accounts[0], SERVICE_TOKEN);
    let request = asserted.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.header("idempotency-key", key).body(HOLDINGS).send().await.expect("an answer");
    assert_eq!(response.status(), 202);
    object(response).await["id"].as_str().expect("an id").to_owned()
}

fn read(platform: &Platform, gateway: &Running, path: &str, token: &str) -> RequestBuilder {
    platform.http.get(format!("{}/v1/commands{path}", gateway.url)).bearer_auth(token)
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.expect("an answer").status().as_u16()
}

/// The ids that a list shows.
async fn listed(request: RequestBuilder) -> Vec<String> {
    let page = object(request.send().await.expect("an answer")).await;
    let commands = page["commands"].as_array().unwrap_or_else(|| panic!("no page: {page}")).iter();
    commands.map(|command| command["id"].as_str().expect("an id").to_owned()).collect()
}

/// Type, id, scope and decision of the actor of every command, the oldest first.
async fn actors(platform: &Platform) -> Vec<String> {
    let sql =
        "select concat_ws(' ', actor_type, actor_id, scope, decision) from spillway.command order by id";
    platform.database.texts(sql).await
}

#[tokio::test]
async fn a_user_sees_the_commands_of_the_own_branch_and_of_no_other() {
    let platform = Platform::with_accounts(1).await;
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let gateway = gateway(&platform, &publisher).await;
    let seventh = put_in(&platform, &gateway, "key-7", &[("x-scope", "branch-7")]).await;
    let eighth = put_in(&platform, &gateway, "key-8", &[("x-scope", "branch-8")]).await;
    let webhook = platform.deliver(&platform.holdings_event("evt-1", 0)).await;
    let webhook = webhook["command_id"].as_str().unwrap();

    for (branch, own, other) in [("branch-7", &seventh, &eighth), ("branch-8", &eighth, &seventh)] {
        let token = key.token(&claims(USER, branch));
        assert_eq!(status(read(&platform, &gateway, &format!("/{own}"), &token)).await, 200);
        for hidden in [other.as_str(), webhook, "00000000-0000-4000-8000-000000000000"] {
            let answer = read(&platform, &gateway, &format!("/{hidden}"), &token).send().await.unwrap();
            assert_eq!(refusal(answer).await, (404, "not_found".to_owned()));
            let cancel = platform.http.post(format!("{}/v1/commands/{hidden}/cancel", gateway.url));
            assert_eq!(status(cancel.bearer_auth(&token)).await, 404);
        }
        // What a user asserts counts for nothing.
        let asserting =
            read(&platform, &gateway, "", &token).header("x-scope", "system").header("x-actor-type", "king");
        assert_eq!(&listed(asserting).await[..], std::slice::from_ref(own));
    }
    assert_eq!(platform.count("spillway.command where status = 'cancelled'").await, 0);
    gateway.stop().await;
}

#[tokio::test]
async fn a_token_that_is_not_right_in_everything_lets_nobody_in() {
    let platform = Platform::with_accounts(1).await;
    let (key, stranger) = (SigningKey::es256("key"), SigningKey::es256("key"));
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let gateway = gateway(&platform, &publisher).await;
    let right = claims(USER, "branch-7");
    let header = |alg: &str| json!({ "alg": alg, "kid": "key", "typ": "JWT" });
    for (what, token) in [
        ("expired", key.token(&claims_with("exp", json!(in_seconds(-60))))),
        ("endless", key.token(&claims_with("exp", Value::Null))),
        ("of another issuer", key.token(&claims_with("iss", json!("https://other.supabase.co/auth/v1")))),
        ("for another audience", key.token(&claims_with("aud", json!("anon")))),
        ("without a scope", key.token(&claims_with("app_metadata", json!({})))),
        ("with the scope of webhooks", key.token(&claims(USER, "system"))),
        ("unsigned", format!("{}.", message(&header("none"), &right))),
        ("unsigned, but called signed", format!("{}.", message(&header("ES256"), &right))),
        ("signed with the public key", hs256_token(&key.public_bytes(), &header("HS256"), &right)),
        (
            "signed with the published key",
            hs256_token(key.jwk().to_string().as_bytes(), &header("HS256"), &right),
        ),
        ("signed by a stranger", stranger.token(&right)),
        ("signed by an unknown key", SigningKey::es256("another").token(&right)),
        ("no token", "e30.e30.".to_owned()),
    ] {
        let answer = read(&platform, &gateway, "", &token).send().await.unwrap();
        assert_eq!(refusal(answer).await, (401, "unauthenticated".to_owned()), "{what}");
    }
    let token = key.token(&right);
    assert_eq!(status(read(&platform, &gateway, "", &token)).await, 200);
    // Two proofs are none, whichever is right.
    assert_eq!(status(read(&platform, &gateway, "", &token).bearer_auth(SERVICE_TOKEN)).await, 401);
    // Where no keys are named there are no users.
    assert_eq!(status(read(&platform, &platform.gateways[0], "", &token)).await, 401);
    gateway.stop().await;
}

#[tokio::test]
async fn without_keys_users_are_told_to_come_back_and_services_go_on() {
    let platform = Platform::with_accounts(1).await;
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::Status("500 Internal Server Error", Vec::new())).await;
    let gateway = gateway(&platform, &publisher).await;
    let token = key.token(&claims(USER, "branch-7"));
    let answer = read(&platform, &gateway, "", &token).send().await.unwrap();

    assert_eq!(answer.headers()[RETRY_AFTER], "5");
    assert_eq!(refusal(answer).await, (503, "callers_unavailable".to_owned()));
    assert_eq!(status(read(&platform, &gateway, "", SERVICE_TOKEN)).await, 200);
    publisher.answers(Answer::keys([&key]));
    later(Duration::from_secs(10)).await;
    assert_eq!(status(with_fresh_connection(&gateway, &token)).await, 200);
    gateway.stop().await;
}

#[tokio::test]
async fn a_new_key_is_picked_up_when_a_token_names_it() {
    let platform = Platform::with_accounts(1).await;
    let (old, new) = (SigningKey::es256("old"), SigningKey::ed25519("new"));
    let publisher = Publisher::start(Answer::keys([&old])).await;
    let gateway = gateway(&platform, &publisher).await;
    let [of_old, of_new] = [&old, &new].map(|key| key.token(&claims(USER, "branch-7")));
    assert_eq!(status(read(&platform, &gateway, "", &of_old)).await, 200);
    publisher.answers(Answer::keys([&old, &new]));
    later(Duration::from_secs(10)).await;

    assert_eq!(status(with_fresh_connection(&gateway, &of_new)).await, 200);
    assert_eq!(status(with_fresh_connection(&gateway, &of_old)).await, 200);
    assert_eq!(publisher.asked(), 2);
    gateway.stop().await;
}

/// Puts the clock forward that says when keys may be fetched again.
async fn later(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

/// The older connections were idle for as long as the clock was put forward.
fn with_fresh_connection(gateway: &Running, token: &str) -> RequestBuilder {
    client().get(format!("{}/v1/commands", gateway.url)).bearer_auth(token)
}

#[tokio::test]
async fn a_user_syncs_an_own_account_and_nobody_elses() {
    let platform = Platform::with_accounts(1).await;
    let key = SigningKey::rs256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let gateway = gateway(&platform, &publisher).await;
    let ask = async |user: &str| {
        let token = key.token(&claims(user, "branch-7"));
        let request = sync_request(&platform, &gateway.url, platform.accounts[0], &token);
        let request = request.header("x-actor-id", "somebody-else").header("x-scope", "branch-8");
        request.header("idempotency-key", "key-1").body(HOLDINGS).send().await.unwrap()
    };

    assert_eq!(refusal(ask("user-2").await).await, (404, "not_found".to_owned()));
    assert_eq!(platform.count("spillway.command").await, 0);
    assert_eq!(ask(USER).await.status(), 202);
    assert_eq!(actors(&platform).await, [format!("user {USER} branch-7 user-token:session-1")]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_service_speaks_for_whom_it_asserts_and_sees_what_that_one_sees() {
    let platform = Platform::with_accounts(1).await;
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let gateway = gateway(&platform, &publisher).await;
    let asserted: [&[(&str, &str)]; 4] = [
        &[],
        &[("x-actor-id", "u-81")],
        &[("x-actor-id", "u-81"), ("x-scope", "branch-7")],
        &[("x-actor-id", "night run"), ("x-actor-type", "schedule"), ("x-scope", "branch-8")],
    ];
    let mut ids = Vec::new();
    for (i, asserted) in asserted.into_iter().enumerate() {
        ids.push(put_in(&platform, &gateway, &format!("key-{i}"), asserted).await);
    }
    let billing = sync_request(&platform, &gateway.url, platform.accounts[0], BILLING_TOKEN);
    let billing = billing.header("idempotency-key", "key-billing").body(HOLDINGS);
    assert_eq!(status(billing).await, 202);

    assert_eq!(
        actors(&platform).await,
        [
            "service default system service-token:default",
            "user u-81 system service-token:default",
            "user u-81 branch-7 service-token:default",
            "schedule night run branch-8 service-token:default",
            "service billing system service-token:billing",
        ]
    );
    let as_of =
        |path: &str, scope: &str| read(&platform, &gateway, path, SERVICE_TOKEN).header("x-scope", scope);
    assert_eq!(listed(as_of("", "branch-7")).await, [ids[2].clone()]);
    assert_eq!(status(as_of(&format!("/{}", ids[2]), "branch-7")).await, 200);
    for (id, scope) in [(&ids[2], "branch-8"), (&ids[0], "branch-7"), (&ids[3], "Branch-8")] {
        assert_eq!(status(as_of(&format!("/{id}"), scope)).await, 404, "{scope}");
    }
    // Whoever asserts no scope sees all.
    assert_eq!(listed(read(&platform, &gateway, "", BILLING_TOKEN)).await.len(), 5);
    gateway.stop().await;
}

#[tokio::test]
async fn an_assertion_that_names_nobody_is_refused_and_nothing_is_taken_in() {
    let platform = Platform::with_accounts(1).await;
    let url = &platform.gateways[0].url;
    let long = "x".repeat(201);
    let wrong: [&[(&str, &[u8])]; 9] = [
        &[("x-actor-type", b"king")],
        &[("x-actor-type", b"User")],
        &[("x-actor-id", b"")],
        &[("x-actor-id", long.as_bytes())],
        &[("x-actor-id", b"a\tb")],
        &[("x-actor-id", "é".as_bytes())],
        &[("x-scope", b"")],
        &[("x-scope", b"\xff")],
        &[("x-scope", b"branch-7"), ("x-scope", b"branch-8")],
    ];
    for headers in wrong {
        let request = sync_request(&platform, url, platform.accounts[0], SERVICE_TOKEN);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = request.header("idempotency-key", "key-1").body(HOLDINGS).send().await.unwrap();
        assert_eq!(refusal(answer).await, (422, "invalid".to_owned()), "{headers:?}");
    }
    assert_eq!(platform.count("spillway.command").await, 0);
}
