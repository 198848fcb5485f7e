//! The door's limits and secrets.

use std::time::Duration;

use contract::env::keys;
use providers::supabase;
use settings::{Env, Noted, Services};
use webhook::killbill::Admission;
use webhook::snaptrade::Verifier;
use webhook::standard::Sources;

/// See the fields.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests that take something in, in work at a time; one more is answered 503 at once.
    pub in_flight: u32,
    /// Reads in work at a time, apart from the others.
    pub reads_in_flight: u32,
    /// How long a client may take to send its body.
    pub body_timeout: Duration,
    /// The largest webhook body, in bytes.
    pub webhook_body: usize,
    /// The largest command body, in bytes.
    pub command_body: usize,
    /// The longest that a status read may wait for a command to end.
    pub longest_wait: Duration,
    /// Checks SnapTrade's webhooks.
    pub snaptrade: Verifier,
    /// Admits Kill Bill's push notifications.
    pub killbill: Admission,
    /// Equal notifications of Kill Bill that carry no data are one within such a window.
    pub killbill_window: Duration,
    /// The senders that follow Standard Webhooks.
    pub standard: Sources,
    /// The service callers.
    pub services: Services,
    /// What makes a token one of our users'; without it no user can call.
    pub users: Option<supabase::Options>,
}

impl Options {
    /// Reads the settings.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let in_flight = env.count(&keys::INTAKE_IN_FLIGHT, 1..=100_000);
        let reads_in_flight = env.count(&keys::INTAKE_READS_IN_FLIGHT, 1..=100_000);
        let body_timeout = env.duration(&keys::INTAKE_BODY_TIMEOUT_MS, 100..=600_000);
        let webhook_body = env.count(&keys::INTAKE_WEBHOOK_BODY_BYTES, 1024..=4 * 1024 * 1024);
        let command_body = env.count(&keys::INTAKE_COMMAND_BODY_BYTES, 1024..=16 * 1024 * 1024);
        let longest_wait = env.duration(&keys::INTAKE_WAIT_SECONDS, 1..=300);
        let snaptrade = Verifier::read(env);
        let killbill = Admission::read(env);
        let killbill_window = env.duration(&keys::KILLBILL_REPEAT_WINDOW_SECONDS, 1..=86_400);
        let standard = Sources::read(env);
        let services = Services::read(env);
        let users = supabase::Options::read(env);
        Ok(Self {
            in_flight: in_flight?,
            reads_in_flight: reads_in_flight?,
            body_timeout: body_timeout?,
            webhook_body: webhook_body? as usize,
            command_body: command_body? as usize,
            longest_wait: longest_wait?,
            snaptrade: snaptrade?,
            killbill: killbill?,
            killbill_window: killbill_window?,
            standard: standard?,
            services: services?,
            users: users?,
        })
    }
}
