//! Every setting's name, unit and presence, in the order of `.env.example`.
#![expect(missing_docs, reason = "what a key means is its sentence in `.env.example`, and only there")]

use super::{Key, Presence, Unit};

/// Every setting, in the order of `.env.example`.
pub const ALL: &[&Key] = &[
    &ENV_STRICT,
    &LOG,
    &LOG_FORMAT,
    &START_BUDGET_SECONDS,
    &STOP_GRACE_SECONDS,
    &DATABASE_URL,
    &GATEWAY_DATABASE_URL,
    &WORKER_DATABASE_URL,
    &OPERATOR_DATABASE_URL,
    &OPERATOR,
    &DATABASE_POOLER,
    &DATABASE_POOL,
    &DATABASE_ACQUIRE_TIMEOUT_MS,
    &DATABASE_DEADLINE_MS,
    &DATA_KEY,
    &GATEWAY_LISTEN,
    &GATEWAY_INTERNAL_LISTEN,
    &INTAKE_IN_FLIGHT,
    &INTAKE_HEADER_TIMEOUT_MS,
    &INTAKE_BODY_TIMEOUT_MS,
    &INTAKE_WEBHOOK_BODY_BYTES,
    &SERVICE_TOKEN,
    &SERVICE_TOKENS,
    &SUPABASE_JWKS_URL,
    &SUPABASE_ISSUER,
    &SUPABASE_AUDIENCE,
    &SUPABASE_SCOPE_CLAIM,
    &INTAKE_COMMAND_BODY_BYTES,
    &INTAKE_READS_IN_FLIGHT,
    &INTAKE_WAIT_SECONDS,
    &KILLBILL_ADMISSION_TOKEN,
    &KILLBILL_REPEAT_WINDOW_SECONDS,
    &STANDARD_WEBHOOK_SECRETS,
    &SNAPTRADE_BASE_URL,
    &SNAPTRADE_CLIENT_ID,
    &SNAPTRADE_CONSUMER_KEY,
    &SNAPTRADE_WEBHOOK_SECRET,
    &SNAPTRADE_TIMEOUT_MS,
    &WORKER_LISTEN,
    &WORKER_POLL_MS,
    &WORKER_AUTHORIZATION_SYNC_CONCURRENCY,
    &WORKER_PAYMENT_CONCURRENCY,
    &WORKER_WEBHOOK_CONCURRENCY,
    &WORKER_DOCUMENT_RENDER_CONCURRENCY,
    &WORKER_SETTLEMENT_EXPORT_CONCURRENCY,
    &WORKER_NOTIFICATION_CONCURRENCY,
    &WORKER_MATCHING_CONCURRENCY,
    &WORKER_SNAPTRADE_SYNC_CONCURRENCY,
];

pub const ENV_STRICT: Key = required("SANMOPIA_ENV_STRICT", Unit::Switch);
pub const LOG: Key = required("SANMOPIA_LOG", Unit::LogFilter);
pub const LOG_FORMAT: Key = required("SANMOPIA_LOG_FORMAT", Unit::LogFormat);
pub const START_BUDGET_SECONDS: Key = required("SANMOPIA_START_BUDGET_SECONDS", Unit::Seconds);
pub const STOP_GRACE_SECONDS: Key = required("SANMOPIA_STOP_GRACE_SECONDS", Unit::Seconds);
pub const DATABASE_URL: Key = required("SANMOPIA_DATABASE_URL", Unit::SecretUrl);
pub const GATEWAY_DATABASE_URL: Key = optional("SANMOPIA_GATEWAY_DATABASE_URL", Unit::SecretUrl);
pub const WORKER_DATABASE_URL: Key = optional("SANMOPIA_WORKER_DATABASE_URL", Unit::SecretUrl);
pub const OPERATOR_DATABASE_URL: Key = optional("SANMOPIA_OPERATOR_DATABASE_URL", Unit::SecretUrl);
pub const OPERATOR: Key = optional("SANMOPIA_OPERATOR", Unit::Text);
pub const DATABASE_POOLER: Key = required("SANMOPIA_DATABASE_POOLER", Unit::Pooler);
pub const DATABASE_POOL: Key = required("SANMOPIA_DATABASE_POOL", Unit::Count);
pub const DATABASE_ACQUIRE_TIMEOUT_MS: Key =
    required("SANMOPIA_DATABASE_ACQUIRE_TIMEOUT_MS", Unit::Milliseconds);
pub const DATABASE_DEADLINE_MS: Key = required("SANMOPIA_DATABASE_DEADLINE_MS", Unit::Milliseconds);
pub const DATA_KEY: Key = required("SANMOPIA_DATA_KEY", Unit::SecretKey);
pub const GATEWAY_LISTEN: Key = required("SANMOPIA_GATEWAY_LISTEN", Unit::Listen);
pub const GATEWAY_INTERNAL_LISTEN: Key = required("SANMOPIA_GATEWAY_INTERNAL_LISTEN", Unit::Listen);
pub const INTAKE_IN_FLIGHT: Key = required("SANMOPIA_INTAKE_IN_FLIGHT", Unit::Count);
pub const INTAKE_HEADER_TIMEOUT_MS: Key = required("SANMOPIA_INTAKE_HEADER_TIMEOUT_MS", Unit::Milliseconds);
pub const INTAKE_BODY_TIMEOUT_MS: Key = required("SANMOPIA_INTAKE_BODY_TIMEOUT_MS", Unit::Milliseconds);
pub const INTAKE_WEBHOOK_BODY_BYTES: Key = required("SANMOPIA_INTAKE_WEBHOOK_BODY_BYTES", Unit::Bytes);
pub const SERVICE_TOKEN: Key = required("SANMOPIA_SERVICE_TOKEN", Unit::Secret);
pub const SERVICE_TOKENS: Key = optional("SANMOPIA_SERVICE_TOKENS", Unit::SecretList);
pub const SUPABASE_JWKS_URL: Key = optional("SANMOPIA_SUPABASE_JWKS_URL", Unit::Url);
pub const SUPABASE_ISSUER: Key = optional("SANMOPIA_SUPABASE_ISSUER", Unit::Text);
pub const SUPABASE_AUDIENCE: Key = optional("SANMOPIA_SUPABASE_AUDIENCE", Unit::Text);
pub const SUPABASE_SCOPE_CLAIM: Key = optional("SANMOPIA_SUPABASE_SCOPE_CLAIM", Unit::Text);
pub const INTAKE_COMMAND_BODY_BYTES: Key = required("SANMOPIA_INTAKE_COMMAND_BODY_BYTES", Unit::Bytes);
pub const INTAKE_READS_IN_FLIGHT: Key = required("SANMOPIA_INTAKE_READS_IN_FLIGHT", Unit::Count);
pub const INTAKE_WAIT_SECONDS: Key = required("SANMOPIA_INTAKE_WAIT_SECONDS", Unit::Seconds);
pub const KILLBILL_ADMISSION_TOKEN: Key = required("SANMOPIA_KILLBILL_ADMISSION_TOKEN", Unit::Secret);
pub const KILLBILL_REPEAT_WINDOW_SECONDS: Key =
    required("SANMOPIA_KILLBILL_REPEAT_WINDOW_SECONDS", Unit::Seconds);
pub const STANDARD_WEBHOOK_SECRETS: Key = optional("SANMOPIA_STANDARD_WEBHOOK_SECRETS", Unit::SecretList);
pub const SNAPTRADE_BASE_URL: Key = required("SANMOPIA_SNAPTRADE_BASE_URL", Unit::Url);
pub const SNAPTRADE_CLIENT_ID: Key = required("SANMOPIA_SNAPTRADE_CLIENT_ID", Unit::Text);
pub const SNAPTRADE_CONSUMER_KEY: Key = required("SANMOPIA_SNAPTRADE_CONSUMER_KEY", Unit::Secret);
pub const SNAPTRADE_WEBHOOK_SECRET: Key = required("SANMOPIA_SNAPTRADE_WEBHOOK_SECRET", Unit::Secret);
pub const SNAPTRADE_TIMEOUT_MS: Key = required("SANMOPIA_SNAPTRADE_TIMEOUT_MS", Unit::Milliseconds);
pub const WORKER_LISTEN: Key = required("SANMOPIA_WORKER_LISTEN", Unit::Listen);
pub const WORKER_POLL_MS: Key = required("SANMOPIA_WORKER_POLL_MS", Unit::Milliseconds);
pub const WORKER_AUTHORIZATION_SYNC_CONCURRENCY: Key =
    required("SANMOPIA_WORKER_AUTHORIZATION_SYNC_CONCURRENCY", Unit::Count);
pub const WORKER_PAYMENT_CONCURRENCY: Key = required("SANMOPIA_WORKER_PAYMENT_CONCURRENCY", Unit::Count);
pub const WORKER_WEBHOOK_CONCURRENCY: Key = required("SANMOPIA_WORKER_WEBHOOK_CONCURRENCY", Unit::Count);
pub const WORKER_DOCUMENT_RENDER_CONCURRENCY: Key =
    required("SANMOPIA_WORKER_DOCUMENT_RENDER_CONCURRENCY", Unit::Count);
pub const WORKER_SETTLEMENT_EXPORT_CONCURRENCY: Key =
    required("SANMOPIA_WORKER_SETTLEMENT_EXPORT_CONCURRENCY", Unit::Count);
pub const WORKER_NOTIFICATION_CONCURRENCY: Key =
    required("SANMOPIA_WORKER_NOTIFICATION_CONCURRENCY", Unit::Count);
pub const WORKER_MATCHING_CONCURRENCY: Key = required("SANMOPIA_WORKER_MATCHING_CONCURRENCY", Unit::Count);
pub const WORKER_SNAPTRADE_SYNC_CONCURRENCY: Key =
    required("SANMOPIA_WORKER_SNAPTRADE_SYNC_CONCURRENCY", Unit::Count);

const fn required(name: &'static str, unit: Unit) -> Key {
    Key { name, unit, presence: Presence::Required }
}

const fn optional(name: &'static str, unit: Unit) -> Key {
    Key { name, unit, presence: Presence::Optional }
}
