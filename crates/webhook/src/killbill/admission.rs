//! Who sent it: nothing that Kill Bill sends says so. The one route that reaches the callback adds a token.

use contract::env::keys;
use secrecy::{ExposeSecret, SecretString};
use settings::{Env, Noted, is_same_secret};

use crate::Unauthenticated;

/// Checks that a delivery came by the internal route.
#[derive(Clone, Debug)]
pub struct Admission {
    token: SecretString,
}

impl Admission {
    /// An admission with this token.
    pub const fn new(token: SecretString) -> Self {
        Self { token }
    }

    /// Reads the token.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        env.secret(&keys::KILLBILL_ADMISSION_TOKEN).map(Self::new)
    }

    /// Succeeds when the value of [`ADMISSION_HEADER`](super::ADMISSION_HEADER) is the token, byte for byte.
    pub fn verify(&self, header: Option<&[u8]>) -> Result<(), Unauthenticated> {
        match header {
            Some(given) if is_same_secret(given, self.token.expose_secret().as_bytes()) => Ok(()),
            _ => Err(Unauthenticated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "admission-0123456789";

    fn env(token: &str) -> Env {
        Env::of_pairs([("SANMOPIA_ENV_STRICT", "false"), (keys::KILLBILL_ADMISSION_TOKEN.name, token)])
    }

    #[test]
    fn only_the_token_admits() {
        let admission = Admission::read(&mut env(TOKEN)).expect("the token is long enough");

        assert_eq!(admission.verify(Some(TOKEN.as_bytes())), Ok(()));
        assert_eq!(admission.verify(None), Err(Unauthenticated));
        for wrong in [
            &b""[..],
            b"admission-012345678",
            b"admission-01234567890",
            b"Admission-0123456789",
            b" admission-0123456789",
            b"Bearer admission-0123456789",
            b"admission-0123456789\0",
            b"\xff",
        ] {
            assert_eq!(admission.verify(Some(wrong)), Err(Unauthenticated));
        }
    }

    #[test]
    fn a_missing_or_short_token_stops_the_process_without_being_shown() {
        for token in ["", "canary-short", "change-me"] {
            let mut env = env(token);

            assert!(Admission::read(&mut env).is_err());
            let text = env.finish().expect_err("it is noted").to_string();
            assert!(text.contains(keys::KILLBILL_ADMISSION_TOKEN.name) && !text.contains("canary"), "{text}");
        }
        let admission = Admission::new(SecretString::from("canary-in-a-debug-text"));
        assert!(!format!("{admission:?}").contains("canary"));
    }
}
