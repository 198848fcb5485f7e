//! Users' tokens, and the keys that prove them.

use std::time::{SystemTime, UNIX_EPOCH};

use providers::supabase::{Options, Users};
use serde_json::json;
use testkit::supabase::{Answer, Publisher, SigningKey};

use crate::harness::Cases;

const ISSUER: &str = "https://ref.supabase.co/auth/v1";

#[tokio::test]
async fn only_what_a_key_has_signed_lets_somebody_in() {
    let keys = [SigningKey::es256("a"), SigningKey::rs256("b"), SigningKey::ed25519("c")];
    let publisher = Publisher::start(Answer::keys(&keys)).await;
    let users = Users::new(Options {
        jwks_url: publisher.url.clone(),
        issuer: ISSUER.to_owned(),
        audience: "authenticated".to_owned(),
        scope_claim: "app_metadata.branch".to_owned(),
    });
    let hour_from_now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600;
    let claims = json!({
        "iss": ISSUER, "aud": "authenticated", "sub": "user-1", "exp": hour_from_now, "session_id": "s-1",
        "app_metadata": { "branch": "branch-7" },
    });
    let tokens: Vec<String> = keys.iter().map(|key| key.token(&claims)).collect();
    let signed = |token: &str| token.rsplit_once('.').map(|(signed, _)| signed.to_owned());
    Cases::new("tokens", tokens.clone())
        .check_async(async |case| {
            let token = case.text();
            // Header and claims decide who is let in; their signature may be made anew by its key's owner only.
            if users.verify(&token).await.is_ok() {
                let is_signed = tokens.iter().any(|original| signed(original) == signed(&token));
                assert!(is_signed, "a token that nobody signed");
            }
            // Any claims that a key has signed are taken or refused.
            let claims = serde_json::from_slice(&case.input).unwrap_or_else(|_| json!({ "sub": token }));
            let _ = users.verify(&keys[0].token(&claims)).await;
        })
        .await;
}
