//! Which tokens let somebody in, and whom.

use providers::supabase::{Rejection, User};
use serde_json::{Value, json};
use testkit::supabase::{Answer, Publisher, SigningKey, base64, hs256_token, message};

use crate::{USER, claims, claims_with, in_seconds, is_unauthenticated, users};

/// What comes of a token when these keys are published.
async fn verified(keys: &[&SigningKey], token: &str) -> Result<User, Rejection> {
    let publisher = Publisher::start(Answer::keys(keys.iter().copied())).await;
    users(&publisher).verify(token).await
}

/// Why a token is refused that is right but for its claims.
async fn refusal(claims: &Value) -> &'static str {
    let key = SigningKey::es256("key");
    match verified(&[&key], &key.token(claims)).await {
        Err(Rejection::Unauthenticated(reason)) => reason,
        other => panic!("{other:?} for {claims}"),
    }
}

async fn accepted(claims: &Value) -> User {
    let key = SigningKey::es256("key");
    verified(&[&key], &key.token(claims)).await.unwrap()
}

#[tokio::test]
async fn a_right_token_tells_user_scope_and_session_whatever_signed_it() {
    let keys = [SigningKey::es256("a"), SigningKey::rs256("b"), SigningKey::ed25519("c")];
    let publisher = Publisher::start(Answer::keys(&keys)).await;
    let users = users(&publisher);

    for key in &keys {
        let user = users.verify(&key.token(&claims())).await.unwrap();

        assert_eq!((user.id.as_str(), user.scope.as_str()), (USER, "branch-7"), "{}", key.alg());
        assert_eq!(user.token_id.as_deref(), Some("session-1"));
    }
    assert_eq!(publisher.asked(), 1);
}

#[tokio::test]
async fn a_tokens_own_id_comes_before_the_sessions_and_neither_is_required() {
    assert_eq!(accepted(&claims_with("jti", json!("token-1"))).await.token_id.as_deref(), Some("token-1"));
    assert_eq!(accepted(&claims_with("jti", json!(17))).await.token_id.as_deref(), Some("session-1"));
    assert_eq!(accepted(&claims_with("session_id", Value::Null)).await.token_id, None);
    assert_eq!(accepted(&claims_with("iat", Value::Null)).await.id, USER);
}

#[tokio::test]
async fn an_issuer_that_is_not_exactly_ours_is_refused() {
    for issuer in [
        json!("https://other.supabase.co/auth/v1"),
        json!("https://ref.supabase.co/auth/v1/"),
        json!("https://ref.supabase.co/auth/"),
        json!("HTTPS://REF.SUPABASE.CO/AUTH/V1"),
        json!(["https://ref.supabase.co/auth/v1"]),
        json!(["https://other.supabase.co/auth/v1", "https://ref.supabase.co/auth/v1"]),
        json!(7),
    ] {
        refusal(&claims_with("iss", issuer)).await;
    }
    assert_eq!(refusal(&claims_with("iss", json!("https://other.supabase.co"))).await, "of another issuer");
    refusal(&claims_with("iss", Value::Null)).await;
}

#[tokio::test]
async fn an_audience_without_ours_is_refused() {
    for audience in [
        json!("anon"),
        json!("Authenticated"),
        json!("authenticated "),
        json!(["anon"]),
        json!([]),
        json!({}),
    ] {
        refusal(&claims_with("aud", audience)).await;
    }
    assert_eq!(refusal(&claims_with("aud", json!("anon"))).await, "for another audience");
    refusal(&claims_with("aud", Value::Null)).await;
    // RFC 7519 allows several, and so does Supabase.
    accepted(&claims_with("aud", json!(["other", "authenticated"]))).await;
}

#[tokio::test]
async fn a_token_must_end_and_counts_until_half_a_minute_after_its_end() {
    accepted(&claims_with("exp", json!(in_seconds(-20)))).await;

    assert_eq!(refusal(&claims_with("exp", json!(in_seconds(-40)))).await, "expired");
    for end in [Value::Null, json!("tomorrow"), json!(-1), json!(1e300), json!(true)] {
        refusal(&claims_with("exp", end)).await;
    }
}

#[tokio::test]
async fn a_token_counts_from_half_a_minute_before_its_beginning() {
    accepted(&claims_with("nbf", json!(in_seconds(20)))).await;

    assert_eq!(refusal(&claims_with("nbf", json!(in_seconds(60)))).await, "not valid yet");
    refusal(&claims_with("nbf", json!("yesterday"))).await;
}

#[tokio::test]
async fn a_user_has_a_usable_id() {
    for id in [Value::Null, json!(""), json!(7), json!("a\nb"), json!("a\0b"), json!("x".repeat(201))] {
        refusal(&claims_with("sub", id)).await;
    }
    assert_eq!(accepted(&claims_with("sub", json!("é".repeat(200)))).await.id, "é".repeat(200));
}

#[tokio::test]
async fn a_scope_is_a_text_at_the_path_or_nobody_is_let_in() {
    for branch in [
        json!(null),
        json!(""),
        json!(7),
        json!(["branch-7"]),
        json!({}),
        json!("a\r\nb"),
        json!("x".repeat(201)),
    ] {
        refusal(&claims_with("app_metadata", json!({ "branch": branch }))).await;
    }
    for metadata in
        [Value::Null, json!({}), json!("branch-7"), json!(["branch"]), json!({"Branch": "branch-7"})]
    {
        refusal(&claims_with("app_metadata", metadata)).await;
    }
    // A claim whose name has a dot is not a path.
    let mut dotted = claims_with("app_metadata", Value::Null);
    dotted["app_metadata.branch"] = json!("branch-7");
    refusal(&dotted).await;
}

#[tokio::test]
async fn no_user_has_the_scope_of_webhooks() {
    refusal(&claims_with("app_metadata", json!({"branch": "system"}))).await;
}

#[tokio::test]
async fn a_signature_by_another_key_or_over_other_words_is_refused() {
    let (key, stranger) = (SigningKey::es256("key"), SigningKey::es256("key"));
    let token = key.token(&claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let promoted =
        message(&json!({"alg": "ES256", "kid": "key"}), &claims_with("sub", json!("somebody else")));

    for forged in [
        stranger.token(&claims()),
        format!("{promoted}.{signature}"),
        format!("{signed}.{}", base64(&[0; 64])),
        format!("{signed}."),
        signed.to_owned(),
        format!("{token}."),
        format!("{token}A"),
        format!("{token}="),
        format!(" {token}"),
    ] {
        let verified = verified(&[&key], &forged).await;
        assert!(is_unauthenticated(&verified), "{verified:?} for {forged}");
    }
}

#[tokio::test]
async fn a_token_must_name_its_key() {
    let (key, other) = (SigningKey::es256("key"), SigningKey::es256("other"));

    for header in [
        json!({"alg": "ES256"}),
        json!({"alg": "ES256", "kid": null}),
        json!({"alg": "ES256", "kid": ""}),
        json!({"alg": "ES256", "kid": "KEY"}),
        json!({"alg": "ES256", "kid": "other"}),
        json!({"alg": "ES256", "kid": ["key"]}),
    ] {
        let verified = verified(&[&key, &other], &key.token_with(&header, &claims())).await;
        assert!(is_unauthenticated(&verified), "{header}");
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_the_keys_own_is_refused() {
    let (ec, rsa) = (SigningKey::es256("ec"), SigningKey::rs256("rsa"));

    for (key, alg) in [
        (&ec, "RS256"),
        (&ec, "EdDSA"),
        (&ec, "ES384"),
        (&ec, "es256"),
        (&ec, "ES256K"),
        (&rsa, "ES256"),
        (&rsa, "RS512"),
        (&rsa, "PS256"),
        (&rsa, ""),
    ] {
        let token = key.token_with(&json!({"alg": alg, "kid": key.kid}), &claims());
        let verified = verified(&[&ec, &rsa], &token).await;
        assert!(is_unauthenticated(&verified), "{alg}");
    }
}

#[tokio::test]
async fn a_token_without_a_signature_is_refused() {
    let key = SigningKey::es256("key");

    for alg in ["none", "None", "NONE", "nOnE"] {
        let unsigned = message(&json!({"alg": alg, "kid": "key"}), &claims());
        for token in [format!("{unsigned}."), format!("{unsigned}.{}", base64(b"x")), unsigned] {
            let verified = verified(&[&key], &token).await;
            assert!(is_unauthenticated(&verified), "{token}");
        }
    }
}

#[tokio::test]
async fn a_public_key_is_no_shared_secret() {
    for key in [SigningKey::es256("key"), SigningKey::rs256("key"), SigningKey::ed25519("key")] {
        for secret in [key.public_bytes(), key.jwk().to_string().into_bytes()] {
            let token = hs256_token(&secret, &json!({"alg": "HS256", "kid": "key"}), &claims());

            assert!(is_unauthenticated(&verified(&[&key], &token).await), "{}", key.alg());
        }
    }
}

#[tokio::test]
async fn a_shared_secret_that_is_published_counts_for_nothing() {
    let set =
        json!({"keys": [{"kty": "oct", "alg": "HS256", "kid": "key", "k": base64(b"a shared secret")}]});
    let publisher = Publisher::start(Answer::Body(set.to_string().into_bytes())).await;
    let token = hs256_token(b"a shared secret", &json!({"alg": "HS256", "kid": "key"}), &claims());

    assert!(is_unauthenticated(&users(&publisher).verify(&token).await));
}

#[tokio::test]
async fn a_key_that_the_token_brings_along_is_not_believed() {
    let (key, stranger) = (SigningKey::es256("key"), SigningKey::es256("key"));
    let home = Publisher::start(Answer::keys([&stranger])).await;
    let header = json!({"alg": "ES256", "kid": "key", "jwk": stranger.jwk(), "jku": home.url.as_str()});

    let verified = verified(&[&key], &stranger.token_with(&header, &claims())).await;

    assert!(is_unauthenticated(&verified));
    assert_eq!(home.asked(), 0);
}

#[tokio::test]
async fn a_header_that_asks_for_what_we_do_not_know_is_refused() {
    let key = SigningKey::es256("key");
    let header = json!({"alg": "ES256", "kid": "key", "crit": ["payment"], "payment": true});

    assert!(is_unauthenticated(&verified(&[&key], &key.token_with(&header, &claims())).await));
}

#[tokio::test]
async fn what_is_no_token_or_too_long_is_refused_before_any_key_is_fetched() {
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let users = users(&publisher);

    let long = key.token(&claims_with("filling", json!("x".repeat(8 * 1024))));
    for token in [long.as_str(), "", ".", "..", "...", "a.b.c", "e30.e30.", "\0", "Bearer x", "é.é.é"] {
        assert!(is_unauthenticated(&users.verify(token).await), "{token}");
    }
    assert_eq!(publisher.asked(), 0);
}

#[tokio::test]
async fn two_keys_of_one_name_both_count() {
    let twins = [SigningKey::es256("key"), SigningKey::es256("key"), SigningKey::rs256("key")];
    let publisher = Publisher::start(Answer::keys(&twins)).await;
    let users = users(&publisher);

    for key in &twins {
        assert!(users.verify(&key.token(&claims())).await.is_ok(), "{}", key.alg());
    }
    assert!(is_unauthenticated(&users.verify(&SigningKey::es256("key").token(&claims())).await));
}
