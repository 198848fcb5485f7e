//! What SnapTrade sends us: an event's body and the headers that prove it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{SecondsFormat, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use uuid::Uuid;

/// The connection that all accounts of these events belong to.
pub const CONNECTION: &str = "6bb1a40b-0000-4000-8000-000000000001";

/// The body of an event about one account, as an API-key application gets it.
pub fn event(webhook_id: &str, event_type: &str, user_id: &str, account: Uuid) -> Value {
    let part = json!({ "success": true, "error": null });
    json!({
        "webhookId": webhook_id,
        "clientId": "SPILLWAYDEV",
        "eventTimestamp": Utc::now().to_rfc3339_opts(SecondsFormat::Micros, false),
        "userId": user_id,
        "eventType": event_type,
        "accountId": account,
        "brokerageId": "905872ac-0000-4000-8000-000000000001",
        "brokerageAuthorizationId": CONNECTION,
        "details": { "total_value": part, "positions": part, "balances": part, "orders": part },
    })
}

/// The `Signature` header of a body whose text is its own canonical form: sorted keys, no spaces, plain ASCII.
/// [`serde_json::Value`] prints itself so.
pub fn signature(consumer_key: &str, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(consumer_key.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body);
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_vector_is_signed_alike() {
        let canonical = r#"{"accountId":"45a3056a-eef6-4904-a68e-d3f90c3e07c5","clientId":"PARTNERAPP","details":{"positions":{"error":null,"success":true}},"eventTimestamp":"2026-03-01T14:38:13.111991+00:00","eventType":"ACCOUNT_HOLDINGS_UPDATED","userId":"usu\u00e1rio-\u00e9","webhookId":"312a13f3-3929-46dd-a70f-ade6aaefc100"}"#;

        assert_eq!(
            signature("ck_test_key", canonical.as_bytes()),
            "1otEvKm936HG32kqpy0RkaZBvZIwoSbIAl5q1xVvKYw="
        );
    }

    #[test]
    fn an_event_prints_itself_in_canonical_form() {
        let body = event("w-1", "ACCOUNT_HOLDINGS_UPDATED", "u-1", Uuid::nil()).to_string();

        assert!(body.starts_with(r#"{"accountId":"#) && !body.contains(": "), "{body}");
    }
}
