//! A token as it arrives: which key it names, and whether that key and what we expect of it bear it out.

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::claims::User;
use super::keys::KeySet;
use super::options::Options;

/// Real ones have about 1 KiB.
const LONGEST: usize = 8 * 1024;

/// How far the issuer's clock and ours may differ, in seconds.
const LEEWAY: u64 = 30;

/// A token of which nothing is believed yet.
pub(super) struct Token<'a> {
    text: &'a str,
    algorithm: Algorithm,
    /// The key that is said to have signed it.
    pub(super) key: String,
}

impl<'a> Token<'a> {
    /// Reads the header, or says why nothing can come of it.
    pub(super) fn read(text: &'a str) -> Result<Self, &'static str> {
        if text.len() > LONGEST {
            return Err("longer than 8 KiB");
        }
        let header = decode_header(text).map_err(|_| "no token, or of an unknown algorithm")?;
        let algorithm @ (Algorithm::ES256 | Algorithm::RS256 | Algorithm::EdDSA) = header.alg else {
            return Err("signed with an algorithm that is not accepted");
        };
        let key = header.kid.ok_or("names no key")?;
        Ok(Self { text, algorithm, key })
    }

    /// The user whose token it is, or why it is nobody's.
    pub(super) fn user(&self, keys: &KeySet, options: &Options) -> Result<User, &'static str> {
        let expected = expected(self.algorithm, options);
        let mut refusal = "no known key of this name and algorithm";
        for key in keys.find(&self.key, self.algorithm) {
            match decode::<Map<String, Value>>(self.text, key, &expected) {
                Ok(token) => return User::read(&token.claims, options),
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => refusal = reason(&error),
                Err(error) => return Err(reason(&error)),
            }
        }
        Err(refusal)
    }
}

fn expected(algorithm: Algorithm, options: &Options) -> Validation {
    let mut expected = Validation::new(algorithm);
    expected.set_issuer(&[&options.issuer]);
    expected.set_audience(&[&options.audience]);
    // An issuer or audience that isn't there would pass as right.
    expected.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    expected.validate_nbf = true;
    expected.leeway = LEEWAY;
    expected
}

/// A word for the log; jsonwebtoken's own text may quote the token.
fn reason(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidSignature => "wrong signature",
        ErrorKind::ExpiredSignature => "expired",
        ErrorKind::ImmatureSignature => "not valid yet",
        ErrorKind::InvalidIssuer => "of another issuer",
        ErrorKind::InvalidAudience => "for another audience",
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => {
            "lacks a claim, or has it in the wrong form"
        }
        _ => "unreadable",
    }
}
