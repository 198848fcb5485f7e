//! A published set of signing keys, reduced to those that can prove a token.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// The keys of one fetch.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

struct Key {
    id: String,
    algorithm: Algorithm,
    material: DecodingKey,
}

/// A set as it is published.
#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a set; nothing if it isn't one. A key that we can't use must not hide those that we can.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let published: Published = serde_json::from_slice(body).ok()?;
        Some(Self(published.keys.into_iter().filter_map(Key::read).collect()))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key has this id, whatever it is for.
    pub(super) fn names(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id == id)
    }

    /// The keys of this id that sign with this algorithm; ids should differ, but nothing enforces it.
    pub(super) fn find(&self, id: &str, algorithm: Algorithm) -> impl Iterator<Item = &DecodingKey> {
        let found = self.0.iter().filter(move |key| key.id == id && key.algorithm == algorithm);
        found.map(|key| &key.material)
    }
}

impl Key {
    fn read(published: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(published).ok()?;
        // The key's type decides, not the token: a shared secret (`oct`) is no choice, because whoever can check
        // with it can sign with it.
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            _ => return None,
        };
        let meant = &jwk.common;
        let signs = meant.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
        let verifies = meant.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        let agrees = meant.key_algorithm.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
        if !(signs && verifies && agrees) {
            return None;
        }
        let material = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id?, algorithm, material })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

    fn set(keys: &Value) -> KeySet {
        KeySet::read(json!({ "keys": keys }).to_string().as_bytes()).expect("a set")
    }

    #[test]
    fn a_key_signs_with_the_one_algorithm_of_its_type() {
        let set = set(&json!([
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "ec", "alg": "ES256", "use": "sig"},
            {"kty": "OKP", "crv": "Ed25519", "x": X, "kid": "ed", "key_ops": ["verify"]},
            {"kty": "RSA", "n": X, "e": "AQAB", "kid": "rsa"},
        ]));

        for (id, own) in [("ec", Algorithm::ES256), ("ed", Algorithm::EdDSA), ("rsa", Algorithm::RS256)] {
            for algorithm in [Algorithm::ES256, Algorithm::EdDSA, Algorithm::RS256, Algorithm::HS256] {
                assert_eq!(
                    set.find(id, algorithm).count(),
                    usize::from(algorithm == own),
                    "{id} {algorithm:?}"
                );
            }
        }
    }

    #[test]
    fn a_key_that_is_no_use_is_left_out_and_hides_no_other() {
        let set = set(&json!([
            {"kty": "oct", "k": X, "kid": "secret", "alg": "HS256"},
            {"kty": "EC", "crv": "P-384", "x": X, "y": Y, "kid": "curve"},
            {"kty": "EC", "crv": "secp256k1", "x": X, "y": Y, "kid": "unknown curve"},
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "other alg", "alg": "ES384"},
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "symmetric alg", "alg": "HS256"},
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "for encryption", "use": "enc"},
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "for signing", "key_ops": ["sign"]},
            {"kty": "EC", "crv": "P-256", "x": "!", "y": Y, "kid": "no base64"},
            {"kty": "EC", "crv": "P-256", "x": X, "kid": "half a point"},
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y},
            {"kty": "AKP", "alg": "ML-DSA-44", "pub": X, "kid": "unknown type"},
            null, 5, "key", [], {},
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "good"},
        ]));

        assert!(set.names("good"));
        assert_eq!(set.0.len(), 1);
    }

    #[test]
    fn what_is_no_set_is_not_taken_for_an_empty_one() {
        for body in ["", "<html>", "[]", "{}", r#"{"keys":null}"#, r#"{"keys":{}}"#, r#"{"keys":[]"#] {
            assert!(KeySet::read(body.as_bytes()).is_none(), "{body}");
        }
        assert!(set(&json!([])).is_empty());
    }
}
