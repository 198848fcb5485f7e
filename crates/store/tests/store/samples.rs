//! Deliveries and commands as the gateway makes them.

use bytes::Bytes;
use contract::snaptrade::{AccountSync, WorkType};
use contract::{Actor, Job, NewCommand, Workload};
use serde_json::json;
use store::inbox::{Delivery, Fate};
use uuid::Uuid;

pub(crate) const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
pub(crate) const QUEUE: &str = "sanmopia_snaptrade_account_sync";

/// A command with this idempotency key.
pub(crate) fn command(key: &str) -> NewCommand {
    let job = AccountSync { work_type: WorkType::Holdings, account_id: Uuid::nil() };
    NewCommand {
        id: Uuid::now_v7(),
        workload: Workload::SnaptradeAccountSync,
        kind: AccountSync::KIND,
        version: AccountSync::VERSION,
        idempotency_key: key.to_owned(),
        payload: json!(job),
        actor: Actor::provider("snaptrade"),
        class: Workload::SnaptradeAccountSync.spec().class,
        not_before: None,
        snapshots: Vec::new(),
        expected_revision: None,
        traceparent: TRACEPARENT.to_owned(),
        tracestate: String::new(),
        correlation_id: "correlation-1".to_owned(),
    }
}

/// A delivery with this identity that starts a command.
pub(crate) fn delivery(identity: &str) -> Delivery {
    Delivery {
        id: Uuid::now_v7(),
        source: "snaptrade",
        tenant: String::new(),
        identity: identity.to_owned(),
        event_type: Some("ACCOUNT_HOLDINGS_UPDATED".to_owned()),
        body: Bytes::from_static(b"{\"a\":1.10}"),
        sha256: [7; 32],
        is_clean_json: true,
        fate: Fate::Start(Box::new(command(identity))),
        traceparent: TRACEPARENT.to_owned(),
        correlation_id: "correlation-1".to_owned(),
    }
}
