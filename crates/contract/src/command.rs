//! What the ledger stores with every command. Its queue message says `{"command": ID, "kind": NAME, "version": N}` and
//! has the headers below; everything else is in the ledger.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::job::Job;
use crate::workload::{Class, Workload};

/// Header of a queue message that carries the W3C trace context's `traceparent`.
pub const HEADER_TRACEPARENT: &str = "traceparent";
/// Header of a queue message that carries the W3C trace context's `tracestate`.
pub const HEADER_TRACESTATE: &str = "tracestate";
/// Header of a queue message that carries the id shown to callers as `X-Correlation-Id`.
pub const HEADER_CORRELATION_ID: &str = "x-correlation-id";

/// On whose behalf a command runs, and why that was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The caller's id, such as a user id or a provider's name.
    pub id: String,
    /// What the id names: `user`, `service`, `provider`, `operator` or `schedule`.
    pub kind: String,
    /// The branch (or headquarters) that the command belongs to; `system` for webhooks.
    pub scope: String,
    /// Refers to the decision that allowed it, such as `service-token:default`.
    pub decision: String,
}

impl Actor {
    /// The scope of everything that a provider's webhook starts.
    pub const SYSTEM_SCOPE: &'static str = "system";

    /// The actor of a verified webhook.
    pub fn provider(source: &str) -> Self {
        Self {
            id: source.to_owned(),
            kind: "provider".to_owned(),
            scope: Self::SYSTEM_SCOPE.to_owned(),
            decision: format!("webhook:{source}"),
        }
    }
}

/// Where a command comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Equal keys of one workload and scope are the same command.
    pub idempotency_key: String,
    /// On whose behalf.
    pub actor: Actor,
    /// W3C `traceparent` of the request that brought it.
    pub traceparent: String,
    /// W3C `tracestate` of that request; empty where there was none.
    pub tracestate: String,
    /// The id shown to the caller as `X-Correlation-Id`.
    pub correlation_id: String,
}

/// A command to be accepted: one ledger row and one message in the same transaction.
#[derive(Clone, Debug)]
pub struct NewCommand {
    /// Time-ordered and unguessable (UUID version 7).
    pub id: Uuid,
    /// Whose queue carries it.
    pub workload: Workload,
    /// The name and the version of the payload's shape.
    pub kind: &'static str,
    /// See `kind`.
    pub version: u32,
    /// Equal keys of one workload and scope are the same command.
    pub idempotency_key: String,
    /// The frozen input.
    pub payload: serde_json::Value,
    /// On whose behalf.
    pub actor: Actor,
    /// Importance within its queue.
    pub class: Class,
    /// Not before this time, where the caller asked for later.
    pub not_before: Option<DateTime<Utc>>,
    /// Ids of the frozen rows that the payload refers to.
    pub snapshots: Vec<String>,
    /// Revision of the aggregate that the command expects to change.
    pub expected_revision: Option<i64>,
    /// W3C `traceparent` of the request that brought it.
    pub traceparent: String,
    /// W3C `tracestate` of that request; empty where there was none.
    pub tracestate: String,
    /// The id shown to the caller as `X-Correlation-Id`.
    pub correlation_id: String,
}

impl NewCommand {
    /// The command that does `job`, in the class of its workload, due at once.
    pub fn new<J: Job>(id: Uuid, job: &J, origin: Origin) -> Self {
        Self {
            id,
            workload: J::WORKLOAD,
            kind: J::KIND,
            version: J::VERSION,
            idempotency_key: origin.idempotency_key,
            payload: serde_json::to_value(job).unwrap_or_default(),
            actor: origin.actor,
            class: J::WORKLOAD.spec().class,
            not_before: None,
            snapshots: Vec::new(),
            expected_revision: None,
            traceparent: origin.traceparent,
            tracestate: origin.tracestate,
            correlation_id: origin.correlation_id,
        }
    }
}
