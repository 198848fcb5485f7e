//! Seals small secrets for storage with the data key, bound to what they belong to.

use chacha20poly1305::aead::{Aead, Generate, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretBox, SecretString};

/// 24 random bytes go in front of each sealed secret, so that equal secrets look different.
const NONCE: usize = 24;

/// The data key.
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// A sealer with this key.
    pub fn new(key: &SecretBox<[u8; 32]>) -> Self {
        Self(XChaCha20Poly1305::new(key.expose_secret().into()))
    }

    /// Seals `secret`; it opens only for the same `owner`.
    pub fn seal(&self, owner: &str, secret: &SecretString) -> Vec<u8> {
        let nonce = XNonce::generate();
        let payload = Payload { msg: secret.expose_secret().as_bytes(), aad: owner.as_bytes() };
        let sealed =
            self.0.encrypt(&nonce, payload).expect("a secret is far shorter than the cipher's limit");
        [nonce.as_slice(), &sealed].concat()
    }

    /// Opens what was sealed for `owner`; nothing where key, owner or bytes are not the ones it was sealed with.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Option<SecretString> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        let secret = self.0.decrypt(&nonce, Payload { msg: sealed, aad: owner.as_bytes() }).ok()?;
        String::from_utf8(secret).ok().map(SecretString::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(byte: u8) -> Sealer {
        Sealer::new(&SecretBox::new(Box::new([byte; 32])))
    }

    #[test]
    fn a_sealed_secret_opens_for_its_owner_only() {
        let sealed = sealer(1).seal("user-1", &SecretString::from("hunter2"));

        assert_eq!(
            sealer(1).open("user-1", &sealed).expect("key and owner are right").expose_secret(),
            "hunter2"
        );
        assert!(sealer(1).open("user-2", &sealed).is_none());
        assert!(sealer(2).open("user-1", &sealed).is_none());
        assert!(sealer(1).open("user-1", &sealed[..30]).is_none());
        assert!(sealer(1).open("user-1", b"").is_none());
    }

    #[test]
    fn equal_secrets_are_sealed_differently() {
        let secret = SecretString::from("hunter2");

        assert_ne!(sealer(1).seal("u", &secret), sealer(1).seal("u", &secret));
    }
}
