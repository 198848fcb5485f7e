//! Who sent it: `Signature` = base64 of HMAC-SHA256 over the body's canonical JSON, or the older shared secret
//! inside the body.
//!
//! There is no replay window: the sender's own retries come half an hour later with the same timestamp.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use contract::env::keys;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use settings::{Env, Noted, is_same_secret};
use sha2::Sha256;

use crate::Unauthenticated;
use crate::canonical::{Charset, canonical};
use crate::object::Object;

/// Checks a delivery's authenticity.
#[derive(Clone, Debug)]
pub struct Verifier {
    consumer_key: SecretString,
    webhook_secret: SecretString,
}

impl Verifier {
    /// A verifier with these secrets.
    pub const fn new(consumer_key: SecretString, webhook_secret: SecretString) -> Self {
        Self { consumer_key, webhook_secret }
    }

    /// Reads the secrets.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let consumer_key = env.secret(&keys::SNAPTRADE_CONSUMER_KEY);
        let webhook_secret = env.secret(&keys::SNAPTRADE_WEBHOOK_SECRET);
        Ok(Self::new(consumer_key?, webhook_secret?))
    }

    /// Succeeds when the signature is right, or when there is none and the body holds the shared secret.
    pub fn verify(&self, signature: Option<&[u8]>, body: &[u8]) -> Result<(), Unauthenticated> {
        let proven = match signature {
            Some(signature) => self.is_signed(signature, body),
            None => self.holds_secret(body),
        };
        if proven { Ok(()) } else { Err(Unauthenticated) }
    }

    /// The different forms that a signer may have signed, all of them compared whatever the first comparison says.
    fn is_signed(&self, signature: &[u8], body: &[u8]) -> bool {
        let Ok(signature) = BASE64_STANDARD.decode(signature) else { return false };
        let text = std::str::from_utf8(body).unwrap_or_default();
        // The empty form stands for "not JSON": nobody's signature.
        let ascii = canonical(text, Charset::Ascii).unwrap_or_default();
        let mut forms = vec![ascii.as_bytes(), body];
        // Where nothing had to be escaped both forms are one.
        let utf8 = ascii.contains("\\u").then(|| canonical(text, Charset::Utf8).unwrap_or_default());
        forms.extend(utf8.as_ref().map(String::as_bytes));
        forms.dedup();
        let proofs = forms.iter().map(|form| {
            let mut mac = Hmac::<Sha256>::new_from_slice(self.consumer_key.expose_secret().as_bytes())
                .expect("HMAC takes keys of any length");
            mac.update(form);
            !form.is_empty() & mac.verify_slice(&signature).is_ok()
        });
        // No short cut: how long it takes says nothing about which form was signed.
        proofs.fold(false, |proven, proof| proven | proof)
    }

    fn holds_secret(&self, body: &[u8]) -> bool {
        let object = Object::read(body);
        let given = object.as_ref().and_then(|object| object.string("webhookSecret")).unwrap_or_default();
        is_same_secret(given.as_bytes(), self.webhook_secret.expose_secret().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &[u8] = b"1otEvKm936HG32kqpy0RkaZBvZIwoSbIAl5q1xVvKYw=";

    /// The vector of the provider's documented verifier: the canonical form with `\u00e1` and `\u00e9`.
    const CANONICAL: &str = r#"{"accountId":"45a3056a-eef6-4904-a68e-d3f90c3e07c5","clientId":"PARTNERAPP","details":{"positions":{"error":null,"success":true}},"eventTimestamp":"2026-03-01T14:38:13.111991+00:00","eventType":"ACCOUNT_HOLDINGS_UPDATED","userId":"usu\u00e1rio-\u00e9","webhookId":"312a13f3-3929-46dd-a70f-ade6aaefc100"}"#;

    /// The same body as it may arrive: other order, spaces, UTF-8.
    const AS_SENT: &str = r#"{"webhookId": "312a13f3-3929-46dd-a70f-ade6aaefc100", "clientId": "PARTNERAPP",
        "eventTimestamp": "2026-03-01T14:38:13.111991+00:00", "userId": "usuário-é",
        "eventType": "ACCOUNT_HOLDINGS_UPDATED", "accountId": "45a3056a-eef6-4904-a68e-d3f90c3e07c5",
        "details": {"positions": {"success": true, "error": null}}}"#;

    fn verifier() -> Verifier {
        Verifier::new(SecretString::from("ck_test_key"), SecretString::from("the-old-shared-secret"))
    }

    fn sign(message: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"ck_test_key").expect("any length");
        mac.update(message);
        BASE64_STANDARD.encode(mac.finalize().into_bytes())
    }

    #[test]
    fn the_documented_vector_holds_in_every_order_of_keys() {
        assert_eq!(verifier().verify(Some(SIGNATURE), CANONICAL.as_bytes()), Ok(()));
        assert_eq!(verifier().verify(Some(SIGNATURE), AS_SENT.as_bytes()), Ok(()));
    }

    #[test]
    fn a_signature_over_utf8_or_over_the_bytes_holds_too() {
        let utf8 = canonical(AS_SENT, Charset::Utf8).expect("it is JSON");

        assert_eq!(verifier().verify(Some(sign(utf8.as_bytes()).as_bytes()), AS_SENT.as_bytes()), Ok(()));
        assert_eq!(verifier().verify(Some(sign(AS_SENT.as_bytes()).as_bytes()), AS_SENT.as_bytes()), Ok(()));
        assert_eq!(verifier().verify(Some(sign(b"{broken").as_bytes()), b"{broken"), Ok(()));
    }

    #[test]
    fn a_tampered_body_or_signature_is_refused() {
        let tampered = CANONICAL.replace("HOLDINGS", "HOLDINGZ");
        let other_key = Verifier::new(SecretString::from("ck_test_kez"), SecretString::from("x"));

        assert_eq!(verifier().verify(Some(SIGNATURE), tampered.as_bytes()), Err(Unauthenticated));
        assert_eq!(other_key.verify(Some(SIGNATURE), CANONICAL.as_bytes()), Err(Unauthenticated));
        let mut one_bit = SIGNATURE.to_vec();
        one_bit[0] ^= 1;
        for wrong in [&one_bit[..], b"", b"=", b"not base64!", &SIGNATURE[..20], &[SIGNATURE, b"A"].concat()]
        {
            assert_eq!(verifier().verify(Some(wrong), CANONICAL.as_bytes()), Err(Unauthenticated));
        }
    }

    #[test]
    fn a_signature_over_nothing_proves_nothing() {
        let empty = sign(b"");

        assert_eq!(verifier().verify(Some(empty.as_bytes()), b"{broken"), Err(Unauthenticated));
        assert_eq!(verifier().verify(Some(empty.as_bytes()), b""), Err(Unauthenticated));
    }

    #[test]
    fn without_a_signature_the_secret_in_the_body_decides() {
        let body = |secret: &str| format!(r#"{{"webhookId":"1","webhookSecret":"{secret}"}}"#);

        assert_eq!(verifier().verify(None, body("the-old-shared-secret").as_bytes()), Ok(()));
        for wrong in ["", "the-old-shared-secre", "the-old-shared-secretx", "THE-OLD-SHARED-SECRET"] {
            assert_eq!(verifier().verify(None, body(wrong).as_bytes()), Err(Unauthenticated));
        }
        for broken in ["", "{", "null", "[]", r#"{"webhookSecret":null}"#, r#"{"webhookSecret":1}"#] {
            assert_eq!(verifier().verify(None, broken.as_bytes()), Err(Unauthenticated));
        }
    }

    #[test]
    fn a_right_secret_does_not_make_up_for_a_wrong_signature() {
        let body = br#"{"webhookId":"1","webhookSecret":"the-old-shared-secret"}"#;

        assert_eq!(verifier().verify(Some(SIGNATURE), body), Err(Unauthenticated));
    }
}
