//! Keys that sign the tests' tokens.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use sha2::Sha256;

/// Keys are made by the library that reads them.
const SOUND: &str = "a key that was made right";

/// A private key and the name under which its public half is published.
pub struct SigningKey {
    /// The name.
    pub kid: String,
    pair: Pair,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

impl SigningKey {
    /// A new key on P-256, which is what Supabase makes.
    pub fn es256(kid: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect(SOUND);
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref(), &random).expect(SOUND);
        Self { kid: kid.to_owned(), pair: Pair::Es256(pair) }
    }

    /// A new key on Ed25519.
    pub fn ed25519(kid: &str) -> Self {
        let private = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect(SOUND);
        let pair = Ed25519KeyPair::from_pkcs8(private.as_ref()).expect(SOUND);
        Self { kid: kid.to_owned(), pair: Pair::Ed25519(pair) }
    }

    /// The RSA key of the fixture.
    pub fn rs256(kid: &str) -> Self {
        let pem = include_str!("rsa.pem");
        let base64: String = pem
            .lines()
            .skip_while(|line| !line.starts_with('-'))
            .filter(|line| !line.starts_with('-'))
            .collect();
        let pair = RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(base64).expect(SOUND)).expect(SOUND);
        Self { kid: kid.to_owned(), pair: Pair::Rs256(pair) }
    }

    /// The algorithm's name in headers.
    pub const fn alg(&self) -> &'static str {
        match self.pair {
            Pair::Es256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
            Pair::Rs256(_) => "RS256",
        }
    }

    /// The public half, as it is published.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Es256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": base64(&point[1..33]), "y": base64(&point[33..])})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64(pair.public_key().as_ref())})
            }
            Pair::Rs256(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "n": base64(&public.n), "e": base64(&public.e)})
            }
        };
        jwk["kid"] = json!(self.kid);
        jwk["alg"] = json!(self.alg());
        jwk["use"] = json!("sig");
        jwk
    }

    /// The public half's bytes, which an attacker knows.
    pub fn public_bytes(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Es256(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Rs256(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// A token with the header that belongs to this key.
    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.alg(), "kid": self.kid, "typ": "JWT"}), claims)
    }

    /// A token with any header, signed by this key.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = match &self.pair {
            Pair::Es256(pair) => {
                pair.sign(&SystemRandom::new(), message.as_bytes()).expect(SOUND).as_ref().to_vec()
            }
            Pair::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
                    .expect(SOUND);
                signature
            }
        };
        format!("{message}.{}", base64(&signature))
    }
}

/// What is signed: header and claims.
pub fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()))
}

/// A token that is signed with a shared secret, which nobody should believe.
pub fn hs256_token(secret: &[u8], header: &Value, claims: &Value) -> String {
    let message = message(header, claims);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(message.as_bytes());
    format!("{message}.{}", base64(&mac.finalize().into_bytes()))
}

/// In the alphabet of tokens.
pub fn base64(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
