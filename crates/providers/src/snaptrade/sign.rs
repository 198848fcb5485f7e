//! Signs a request: base64 of HMAC-SHA256 over the canonical JSON of content, path and query.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use sha2::Sha256;

/// What is signed, its keys in canonical order.
#[derive(Serialize)]
struct Signed<'a> {
    content: Option<()>,
    path: &'a str,
    query: &'a str,
}

/// The `Signature` header of a request without a body; path and query as they are sent.
pub(crate) fn signature(consumer_key: &SecretString, path: &str, query: &str) -> String {
    let message =
        serde_json::to_vec(&Signed { content: None, path, query }).expect("strings are always JSON");
    let mut mac = Hmac::<Sha256>::new_from_slice(consumer_key.expose_secret().as_bytes())
        .expect("HMAC takes keys of any length");
    mac.update(&message);
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_vector_is_signed_alike() {
        let query = "clientId=CID&timestamp=1715123456&userId=u1&userSecret=s1";
        let signature = signature(&SecretString::from("ck_test_key"), "/accounts/abc/activities", query);

        assert_eq!(signature, "kEzBKwx0/YyB13kCxQNlQlKdMzpDBt1nROt6+WC3UmY=");
    }
}
