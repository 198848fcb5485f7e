//! The gateway that is examined: where it is, its limits, and the secrets of those who may speak to it.

use std::time::Duration;

use anyhow::Context;
use uuid::Uuid;

use super::raw::Address;
use crate::connection::Settings;

/// What an answer may take beyond the deadline that it waits for; on a busy machine seconds pass unnoticed.
const SLACK: Duration = Duration::from_secs(10);

/// See the module.
pub(super) struct Target {
    pub(super) public: Address,
    /// Where Kill Bill's route, health and metrics are; the cases that need it are skipped without it.
    pub(super) internal: Option<Address>,
    pub(super) secrets: Secrets,
    pub(super) limits: Limits,
    /// An account that the platform knows; the cases that need it are skipped without it.
    pub(super) account: Option<Uuid>,
}

/// What proves senders and callers.
pub(super) struct Secrets {
    pub(super) consumer_key: String,
    pub(super) webhook_secret: String,
    pub(super) admission_token: String,
    pub(super) service_token: String,
    /// Name and secret of each sender that follows Standard Webhooks.
    pub(super) standard: Vec<(String, String)>,
}

/// What the gateway is set to.
pub(super) struct Limits {
    pub(super) header_timeout: Duration,
    pub(super) body_timeout: Duration,
    pub(super) webhook_body: usize,
    pub(super) command_body: usize,
    pub(super) in_flight: usize,
}

impl Target {
    pub(super) fn new(public: &str, internal: Option<&str>, settings: &Settings) -> anyhow::Result<Self> {
        let text = |name| settings.get(name).map(str::to_owned);
        let number = |name| -> anyhow::Result<usize> {
            settings.get(name)?.parse().with_context(|| format!("{name} is no number"))
        };
        let milliseconds = |name| number(name).map(|ms| Duration::from_millis(ms as u64));
        let pairs = settings.get("SANMOPIA_STANDARD_WEBHOOK_SECRETS").unwrap_or_default();
        let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
        Ok(Self {
            public: Address::of(public)?,
            internal: internal.map(Address::of).transpose()?,
            secrets: Secrets {
                consumer_key: text("SANMOPIA_SNAPTRADE_CONSUMER_KEY")?,
                webhook_secret: text("SANMOPIA_SNAPTRADE_WEBHOOK_SECRET")?,
                admission_token: text("SANMOPIA_KILLBILL_ADMISSION_TOKEN")?,
                service_token: text("SANMOPIA_SERVICE_TOKEN")?,
                standard: pairs.map(|(name, secret)| (name.trim().to_owned(), secret.to_owned())).collect(),
            },
            limits: Limits {
                header_timeout: milliseconds("SANMOPIA_INTAKE_HEADER_TIMEOUT_MS")?,
                body_timeout: milliseconds("SANMOPIA_INTAKE_BODY_TIMEOUT_MS")?,
                webhook_body: number("SANMOPIA_INTAKE_WEBHOOK_BODY_BYTES")?,
                command_body: number("SANMOPIA_INTAKE_COMMAND_BODY_BYTES")?,
                in_flight: number("SANMOPIA_INTAKE_IN_FLIGHT")?,
            },
            account: None,
        })
    }

    /// When a client that stops in its header must have been let go, or one that is done and silent.
    pub(super) fn header_bound(&self) -> Duration {
        self.limits.header_timeout * 2 + SLACK
    }

    /// When a client that stops in its body must have been answered or let go, its connection included.
    pub(super) fn body_bound(&self) -> Duration {
        (self.limits.header_timeout + self.limits.body_timeout) * 2 + SLACK
    }

    /// `text` without the secrets in it.
    pub(super) fn mask(&self, mut text: String) -> String {
        let Secrets { consumer_key, webhook_secret, admission_token, service_token, standard } =
            &self.secrets;
        let named = [consumer_key, webhook_secret, admission_token, service_token];
        for secret in named.into_iter().chain(standard.iter().map(|(_, secret)| secret)) {
            if !secret.is_empty() {
                text = text.replace(secret.as_str(), "(secret)");
            }
        }
        text
    }
}
