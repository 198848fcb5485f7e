//! What a drill has seen: the answers its senders got, the rows that the platform committed, the calls that the
//! provider recorded. Checks, report and page are made of it and of nothing else.
//!
//! Times are in milliseconds since the first delivery was due; senders, database and provider share one clock.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use contract::Status;
use contract::snaptrade::WorkType;
use serde::Deserialize;
use uuid::Uuid;

use super::plan::Plan;

/// What runs exclude one another: one kind of work on one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) work: WorkType,
    pub(super) account: Uuid,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.work, self.account)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) plan: Plan,
    /// One for each of the plan's deliveries, in their order.
    pub(super) delivered: Vec<Delivered>,
    pub(super) rows: Rows,
    pub(super) calls: Vec<Call>,
    /// Status reads before the first delivery, and while deliveries were made.
    pub(super) idle_reads: Vec<Read>,
    pub(super) storm_reads: Vec<Read>,
    pub(super) samples: Vec<Sample>,
    pub(super) kills: Vec<Killed>,
    /// Runs that the workers have places for, which is the most calls they can have in flight.
    pub(super) cap: u32,
    /// Seconds in which the provider counts its quota.
    pub(super) quota_period: Duration,
    /// False where the time to wait was over before the last command had ended.
    pub(super) drained: bool,
}

/// What a sender saw of one delivery, retries included.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    pub(super) due_ms: f64,
    pub(super) event: usize,
    /// When it was answered 202, and with what; nothing where its sender gave it up.
    pub(super) accepted: Option<Accepted>,
    /// Answers of the kind "not now".
    pub(super) refused: u32,
    /// Connections that failed, and answers that never came.
    pub(super) unanswered: u32,
}

/// A promise.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) at_ms: f64,
    pub(super) outcome: String,
    pub(super) command: Option<Uuid>,
}

/// What the platform has committed when all is over.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Rows {
    pub(super) inbox: Vec<InboxRow>,
    pub(super) commands: Vec<CommandRow>,
    pub(super) syncs: Vec<SyncRow>,
    pub(super) left: Left,
}

/// An accepted row of the inbox.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct InboxRow {
    pub(super) identity: String,
    pub(super) command: Option<Uuid>,
    pub(super) accepted_ms: f64,
}

/// A command of the ledger.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CommandRow {
    pub(super) id: Uuid,
    pub(super) account: Uuid,
    pub(super) status: Status,
    pub(super) accepted_ms: f64,
    pub(super) started_ms: Option<f64>,
    pub(super) finished_ms: Option<f64>,
    /// The provider's ids of calls that its runs made.
    pub(super) request_ids: Vec<String>,
    /// Its messages: in the queue, in the archive, among the dead letters.
    pub(super) queued: usize,
    pub(super) archived: usize,
    pub(super) buried: usize,
}

/// What the platform counts for an account and a kind of work.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SyncRow {
    pub(super) work: WorkType,
    pub(super) account: Uuid,
    pub(super) requested: usize,
    pub(super) ok_through: usize,
    pub(super) waiting: Option<Uuid>,
}

impl SyncRow {
    pub(super) const fn key(&self) -> Key {
        Key { work: self.work, account: self.account }
    }
}

/// What nobody should hold any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Left {
    pub(super) messages: usize,
    /// Places that are held, as their list and as their keys count them.
    pub(super) holds: usize,
    pub(super) in_use: usize,
    /// Messages in the lines of keys.
    pub(super) lines: usize,
}

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) key: Key,
    /// Its place in a run: the first call of a run is 0.
    pub(super) step: usize,
    pub(super) at_ms: f64,
    pub(super) took_ms: f64,
    /// None where the caller was gone before there was one.
    pub(super) status: Option<u16>,
    /// False where the answer never reached its caller.
    pub(super) answered: bool,
    pub(super) request_id: String,
    /// Calls in flight when it had come, with it.
    pub(super) in_flight: u32,
    pub(super) asked_wait_s: Option<u32>,
    pub(super) fault: Option<PlannedFault>,
}

impl Call {
    pub(super) fn end_ms(&self) -> f64 {
        self.at_ms + self.took_ms
    }

    pub(super) fn succeeded(&self) -> bool {
        self.status == Some(200) && self.answered
    }

    pub(super) fn throttled(&self) -> bool {
        self.status == Some(429)
    }
}

/// What the sandbox was told to do to some calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PlannedFault {
    /// An answer of 500 or 503.
    ServerError,
    /// The work is done, and the connection closed without an answer.
    LostAnswer,
}

/// A status read of the probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) due_ms: f64,
    /// From when it was due to its answer; nothing where no gateway answered.
    pub(super) took: Option<Duration>,
}

/// The queue at one moment.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Sample {
    pub(super) at_ms: f64,
    /// Due, and nobody has it.
    pub(super) claimable: usize,
    /// Under a lease.
    pub(super) in_flight: usize,
    /// Due later: retries, and what the provider told to wait.
    pub(super) delayed: usize,
    /// In the line of a key.
    pub(super) parked: usize,
    pub(super) claimable_age_ms: Option<f64>,
    /// Commands that have not ended, and those that have.
    pub(super) open: usize,
    pub(super) ended: usize,
    /// Keys with more holders than they have places.
    pub(super) over_cap: usize,
}

/// A process that was killed.
#[derive(Clone, Debug)]
pub(super) struct Killed {
    pub(super) process: &'static str,
    pub(super) at_ms: f64,
    /// Messages under a lease at that time.
    pub(super) in_flight: usize,
}

impl Killed {
    pub(super) fn is_worker(&self) -> bool {
        self.process.starts_with("snaptrade-worker")
    }
}

impl Rows {
    /// Leaves what belongs to the plan: a database may have a past.
    pub(super) fn keep(&mut self, plan: &Plan) {
        let events: HashSet<&str> = plan.events.iter().map(|event| event.id.as_str()).collect();
        let accounts: HashSet<Uuid> = plan.accounts.iter().copied().collect();
        self.inbox.retain(|row| events.contains(row.identity.as_str()));
        self.commands.retain(|command| accounts.contains(&command.account));
        self.syncs.retain(|sync| accounts.contains(&sync.account));
    }
}

impl History {
    /// Workers that were killed.
    pub(super) fn dead_workers(&self) -> usize {
        self.kills.iter().filter(|kill| kill.is_worker()).count()
    }
}

#[cfg(test)]
pub(super) mod sample;
