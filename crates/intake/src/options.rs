//! The door's limits and secrets.

use std::time::Duration;

use contract::env::keys;
use secrecy::SecretString;
use settings::{Env, Noted};
use webhook::snaptrade::Verifier;

/// See the fields.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests in work at a time; one more is answered 503 at once.
    pub in_flight: u32,
    /// How long a client may take to send its body.
    pub body_timeout: Duration,
    /// The largest webhook body, in bytes.
    pub webhook_body: usize,
    /// Checks SnapTrade's webhooks.
    pub snaptrade: Verifier,
    /// The bearer token of the caller named `default`.
    pub service_token: SecretString,
}

impl Options {
    /// Reads the settings.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let in_flight = env.count(&keys::INTAKE_IN_FLIGHT, 1..=100_000);
        let body_timeout = env.duration(&keys::INTAKE_BODY_TIMEOUT_MS, 100..=600_000);
        let webhook_body = env.count(&keys::INTAKE_WEBHOOK_BODY_BYTES, 1024..=4 * 1024 * 1024);
        let snaptrade = Verifier::read(env);
        let service_token = env.secret(&keys::SERVICE_TOKEN);
        Ok(Self {
            in_flight: in_flight?,
            body_timeout: body_timeout?,
            webhook_body: webhook_body? as usize,
            snaptrade: snaptrade?,
            service_token: service_token?,
        })
    }
}
