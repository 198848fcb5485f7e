//! Signatures checked by ring, in the form that jsonwebtoken asks for. Nothing in here can sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| verifier(*algorithm, key),
    // Needed to make key sets from keys, never to read one.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes jsonwebtoken check signatures with ring, in the whole process.
pub(super) fn install() {
    // The first caller in the process decides; all of ours decide the same.
    let _ = RING.install_default();
}

struct PublicKey {
    algorithm: Algorithm,
    material: Material,
}

enum Material {
    Curve(UnparsedPublicKey<Vec<u8>>),
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
}

fn verifier(algorithm: Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let material = match (algorithm, key.family(), key.kind()) {
        (Algorithm::ES256, AlgorithmFamily::Ec, DecodingKeyKind::SecretOrDer(point)) => {
            Material::Curve(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point.clone()))
        }
        (Algorithm::EdDSA, AlgorithmFamily::Ed, DecodingKeyKind::SecretOrDer(point)) => {
            Material::Curve(UnparsedPublicKey::new(&ED25519, point.clone()))
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Material::Rsa(RsaPublicKeyComponents { n: n.clone(), e: e.clone() })
        }
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    Ok(Box::new(PublicKey { algorithm, material }))
}

impl Verifier<Vec<u8>> for PublicKey {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match &self.material {
            Material::Curve(key) => key.verify(message, signature),
            Material::Rsa(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for PublicKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests;
