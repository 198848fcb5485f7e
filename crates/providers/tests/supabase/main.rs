//! User tokens against a real publisher of signing keys.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fetching;
mod tokens;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use providers::supabase::{Options, Rejection, User, Users};
use serde_json::{Value, json};
use testkit::supabase::Publisher;

const ISSUER: &str = "https://ref.supabase.co/auth/v1";
const USER: &str = "b3f7c1de-0d3e-4d7a-9a54-0a8f6f0a1c11";

fn users(publisher: &Publisher) -> Users {
    Users::new(Options {
        jwks_url: publisher.url.clone(),
        issuer: ISSUER.to_owned(),
        audience: "authenticated".to_owned(),
        scope_claim: "app_metadata.branch".to_owned(),
    })
}

/// What Supabase says of a user.
fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": "authenticated",
        "sub": USER,
        "exp": in_seconds(3600),
        "iat": in_seconds(0),
        "role": "authenticated",
        "session_id": "session-1",
        "app_metadata": {"provider": "email", "branch": "branch-7"},
        "user_metadata": {"branch": "branch-8"},
    })
}

/// The claims with another value for one of them; null takes it away.
fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => claims.as_object_mut().unwrap().remove(name),
        value => claims.as_object_mut().unwrap().insert(name.to_owned(), value),
    };
    claims
}

fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() + seconds
}

/// Puts the clock forward that says how old keys are.
async fn later(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

fn is_unauthenticated(verified: &Result<User, Rejection>) -> bool {
    matches!(verified, Err(Rejection::Unauthenticated(_)))
}
