//! What a sender that follows Standard Webhooks puts into `webhook-signature`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// One entry of the header, `v1,…`; `secret` is `whsec_` and base64.
pub fn signature(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = BASE64_STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap_or(secret))
        .expect("a secret is base64 behind whsec_");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_specifications_own_libraries_is_signed_alike() {
        let signature = signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            br#"{"test": 2432232314}"#,
        );

        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
