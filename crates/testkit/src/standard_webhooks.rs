//! What a sender that follows Standard Webhooks puts into its headers.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// One entry of the `webhook-signature` header. `secret` has the form `whsec_BASE64`.
pub fn signature(secret: &str, id: &str, timestamp_unix_s: i64, body: &[u8]) -> String {
    let key = secret.strip_prefix("whsec_").and_then(|key| BASE64_STANDARD.decode(key).ok());
    let key = key.expect("a secret of the form whsec_BASE64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp_unix_s}.").as_bytes());
    mac.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_vector_is_signed_alike() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

        assert_eq!(
            signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
}
