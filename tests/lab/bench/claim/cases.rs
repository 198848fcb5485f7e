//! The queues that claims are measured before.

use contract::Job;
use store::ledger::Done;
use store::queue::Claimed;

use super::super::work::{Nothing, QUEUE, WORKLOAD};

/// Due messages that a case has at its end, where it has any.
const BEHIND: u32 = 1000;

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) messages: u32,
    /// When the messages are due.
    due: &'static str,
    /// What a message's headers say of keys.
    limits: &'static str,
    /// Whether a claim finds something.
    pub(super) has_due: bool,
    /// Whether claims have to get past the messages first.
    pub(super) has_pass: bool,
    /// Whether an old snapshot is held meanwhile.
    pub(super) is_held: bool,
}

const AN_HOUR_AGO: &str = "now() - interval '1 hour' + i * interval '1 millisecond'";

const PLAIN: Case = Case {
    name: "",
    messages: 0,
    due: AN_HOUR_AGO,
    limits: "{}",
    has_due: true,
    has_pass: false,
    is_held: false,
};

const SATURATED: Case = Case { limits: r#"{"limits": {"bench:key": 1}}"#, has_pass: true, ..PLAIN };

/// All cases.
pub(super) const ALL: &[Case] = &[
    Case { name: "empty", has_due: false, ..PLAIN },
    Case { name: "million_waiting", messages: 1_000_000, ..PLAIN },
    Case { name: "parked_200k", messages: 200_000, due: "now() + interval '1 hour'", ..PLAIN },
    Case { name: "saturated_key_10k", messages: 10_000, ..SATURATED },
    Case { name: "saturated_key_100k", messages: 100_000, ..SATURATED },
    Case { name: "held_snapshot", messages: 200_000, has_pass: true, is_held: true, ..PLAIN },
];

/// Whoever reads like this keeps every row that dies from being removed.
pub(super) const HOLD_SNAPSHOT: &str =
    "begin isolation level repeatable read; select count(*) from spillway.command";

/// Empties the queue and what belongs to it.
pub(super) fn clear() -> String {
    format!(
        "truncate pgmq.q_{QUEUE}, pgmq.a_{QUEUE}, spillway.command,
           spillway.limit_key, spillway.limit_hold, spillway.limit_wait"
    )
}

impl Case {
    /// The messages that the case is about.
    pub(super) fn fill(&self, messages: u32) -> String {
        fill(1, messages, self.due, self.limits)
    }

    /// The messages behind them.
    pub(super) fn behind(&self) -> String {
        let messages = if self.has_due { BEHIND } else { 0 };
        fill(
            10_000_000,
            messages,
            "now() - interval '1 minute' + (i - 10000000) * interval '1 millisecond'",
            "{}",
        )
    }
}

/// Commands and messages. Their ids lie in the order of their making, as those of version 7 do.
fn fill(first: u32, n: u32, due: &str, headers: &str) -> String {
    let (kind, version, workload) = (Nothing::KIND, Nothing::VERSION, WORKLOAD.kind());
    let class = WORKLOAD.spec().class as u8;
    format!(
        "create temporary table made as
           select i, (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid as id
           from generate_series({first}, {first} + {n} - 1) i;
         insert into spillway.command (id, workload, kind, payload_version, idempotency_key, request_hash, payload,
           actor_id, actor_type, scope, decision, class, queue, lease_seconds, max_attempts, traceparent, correlation_id)
         select id, '{workload}', '{kind}', {version}, id::text, sha256(id::text::bytea),
           jsonb_build_object('n', i, 'note', repeat('x', 80)), 'bench', 'provider', 'system', 'webhook:bench',
           {class}, '{QUEUE}', 60, 8, '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', id::text
         from made;
         insert into pgmq.q_{QUEUE} (vt, message, headers)
         select {due}, jsonb_build_object('command', id, 'kind', '{kind}', 'version', {version}),
           jsonb_build_object('lane', {class}) || '{headers}' from made order by i;
         drop table made"
    )
}

/// The end of a claimed message's run.
pub(super) fn done(claimed: &Claimed) -> Option<Done> {
    Some(Done {
        fence: claimed.fence,
        command: claimed.command.as_ref()?.id,
        started_at: claimed.claimed_at,
        result: None,
        request_ids: Vec::new(),
    })
}
