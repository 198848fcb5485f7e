//! Who sent it: HMAC-SHA256 over `{id}.{timestamp}.{body}`, the body as it came.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use contract::env::keys;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use settings::{Env, Noted};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// How far the sender's clock may be from ours, in either direction. It bounds how long a captured delivery can
/// be sent again; senders sign each attempt anew.
pub const TOLERANCE_SECONDS: u64 = 300;

/// Signatures that are looked at. A sender that rotates its secret sends two.
const MOST_SIGNATURES: usize = 10;

/// The lengths that the specification allows a key.
const KEY_BYTES: RangeInclusive<usize> = 24..=64;

/// The senders and their keys. While one is replaced, a sender has two.
#[derive(Clone, Debug)]
pub struct Sources {
    keys: Vec<(String, SecretSlice<u8>)>,
}

/// Why a delivery is refused. Outside both are the same 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The sender proved nothing, or something else, or is none of ours.
    Unauthenticated,
    /// The right key signed it, but not now: somebody sends it again, or a clock is wrong.
    Skewed {
        /// How far the sender's time is ahead of ours; below zero where it is behind.
        seconds: i64,
    },
}

impl Sources {
    /// Reads the secrets; without any, every delivery is refused.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let pairs = env.secret_list(&keys::STANDARD_WEBHOOK_SECRETS)?;
        Self::of(pairs).map_err(|sentences| {
            for sentence in sentences {
                env.refuse(&keys::STANDARD_WEBHOOK_SECRETS, sentence);
            }
            Noted
        })
    }

    /// Names and secrets in the form `whsec_BASE64`. Fails with a sentence for each secret that is none.
    pub fn of<N: Into<String>>(
        pairs: impl IntoIterator<Item = (N, SecretString)>,
    ) -> Result<Self, Vec<String>> {
        let (mut keys, mut sentences) = (Vec::new(), Vec::new());
        for (place, (name, secret)) in (1..).zip(pairs) {
            let name = name.into();
            match key(&secret) {
                Ok(key) => keys.push((name, key)),
                Err(flaw) => sentences.push(format!("secret {place}, of `{name}`, {flaw}")),
            }
        }
        if sentences.is_empty() { Ok(Self { keys }) } else { Err(sentences) }
    }

    /// Succeeds when one of `source`'s keys made one of the signatures, and not long ago.
    ///
    /// Where an id holds full stops, the signed content can be cut elsewhere and stays rightly signed. The body
    /// then starts with digits: it is no JSON object, so the delivery is set aside and starts nothing.
    pub fn verify(
        &self,
        source: &str,
        id: Option<&str>,
        timestamp: Option<&str>,
        signature: Option<&str>,
        body: &[u8],
        now_unix_s: i64,
    ) -> Result<(), Rejection> {
        let (Some(id), Some(timestamp), Some(signature)) = (id, timestamp, signature) else {
            return Err(Rejection::Unauthenticated);
        };
        let is_signed = self.is_signed(source, [id, timestamp], body, signature);
        match timestamp.parse::<i64>() {
            Ok(sent_unix_s) if is_signed => match sent_unix_s.saturating_sub(now_unix_s) {
                seconds if seconds.unsigned_abs() <= TOLERANCE_SECONDS => Ok(()),
                seconds => Err(Rejection::Skewed { seconds }),
            },
            _ => Err(Rejection::Unauthenticated),
        }
    }

    /// Compares every signature with every key's, whatever the comparisons before it said.
    fn is_signed(&self, source: &str, signed: [&str; 2], body: &[u8], signature: &str) -> bool {
        let given: Vec<Vec<u8>> = signature.split(' ').take(MOST_SIGNATURES).filter_map(decode).collect();
        let mut proven = Choice::from(0);
        for (_, key) in self.keys.iter().filter(|(name, _)| name == source) {
            let mut mac =
                Hmac::<Sha256>::new_from_slice(key.expose_secret()).expect("HMAC takes keys of any length");
            for part in signed {
                mac.update(part.as_bytes());
                mac.update(b".");
            }
            mac.update(body);
            let expected = mac.finalize().into_bytes();
            for given in &given {
                proven |= expected.as_slice().ct_eq(given);
            }
        }
        proven.into()
    }
}

/// One entry of the header, where it is of the version that we know.
fn decode(entry: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(entry.strip_prefix("v1,")?).ok()
}

fn key(secret: &SecretString) -> Result<SecretSlice<u8>, &'static str> {
    let text = secret.expose_secret().strip_prefix("whsec_").ok_or("doesn't start with `whsec_`")?;
    let key = BASE64_STANDARD.decode(text).map_err(|_| "isn't base64 behind `whsec_`")?;
    let key = SecretSlice::from(key);
    let fits = KEY_BYTES.contains(&key.expose_secret().len());
    fits.then_some(key).ok_or("isn't a key of 24 to 64 bytes")
}

#[cfg(test)]
mod tests;
