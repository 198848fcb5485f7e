//! Queue tables: claims and leases.
//!
//! `(msg_id, read_ct)` is the lease: pgmq raises `read_ct` with each claim, so a worker whose lease went to
//! another one can't match it any more. Every write of a run carries it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use contract::QueueSpec;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;

/// The right to write on behalf of one claim of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The queue's name.
    pub queue: &'static str,
    /// The message.
    pub msg_id: i64,
    /// How often it had been claimed, this claim included.
    pub read_ct: i32,
}

/// What a worker asks for.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Messages at most.
    pub limit: u32,
    /// Messages that are looked at; more than `limit` where many in front wait for keys.
    pub look: u32,
    /// Where the search of each lane begins; `None` is the lane's beginning.
    pub since: [Option<DateTime<Utc>>; LANES],
    /// True to begin with the lane of the least important class, so that none starves.
    pub lowest_first: bool,
}

/// A queue has a lane for each class.
pub const LANES: usize = 4;

impl Ask {
    /// Up to so many messages, by the order of their classes.
    pub const fn up_to(limit: u32) -> Self {
        Self { limit, look: limit, since: [None; LANES], lowest_first: false }
    }
}

/// What a claim found.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Claimed, in the order in which they should start.
    pub messages: Vec<Claimed>,
    /// Messages that were looked at and now wait for a key: there may be more behind them.
    pub parked: u32,
    /// Where nothing was due: how soon something will be.
    pub next_due: Option<Duration>,
}

/// A claimed message with what the ledger knows of its command.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The lease.
    pub fence: Fence,
    /// The class whose lane it lay in.
    pub lane: usize,
    /// When it was due.
    pub due_at: DateTime<Utc>,
    /// When it was claimed, by the database's clock.
    pub claimed_at: DateTime<Utc>,
    /// The kind that the message names.
    pub kind: Option<String>,
    /// The ledger's row; absent where the message names no command.
    pub command: Option<Ledger>,
}

/// What a worker needs to know of a command.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// The command.
    pub id: Uuid,
    /// The name and the version of its payload's shape.
    pub kind: String,
    /// See `kind`.
    pub version: u32,
    /// The frozen input.
    pub payload: Value,
    /// Runs that counted so far.
    pub attempts: u32,
    /// Answers "not yet" in a row, and since how long.
    pub waits: u32,
    /// See `waits`.
    pub waiting: Duration,
    /// Earlier claims that ended without a word.
    pub silent_ends: u32,
    /// Those of them in which it ran alone, as far as they were charged.
    pub crashes: u32,
    /// True where the last claim ran it alone.
    pub was_alone: bool,
    /// True where nothing is left to do, such as for a cancelled command.
    pub is_closed: bool,
    /// Trace context of the request that brought it.
    pub traceparent: String,
    /// See `traceparent`.
    pub tracestate: String,
}

/// Claims due messages for the queue's lease.
pub async fn claim(pool: &Pool, queue: &QueueSpec, ask: &Ask) -> Result<Claims, Error> {
    let whole = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    pool.bounded("claiming messages", async {
        let mut session = pool.session().await?;
        let rows = sqlx::query_file!(
            "sql/queue/claim.sql",
            queue.name,
            whole(ask.limit),
            whole(ask.look.max(ask.limit)),
            milliseconds(queue.lease),
            &ask.since as &[Option<DateTime<Utc>>],
            ask.lowest_first,
        )
        .fetch_all(&mut *session)
        .await?;
        session.release().await?;
        let mut claims = Claims::default();
        for row in rows {
            let since = |at: DateTime<Utc>| (row.claimed_at - at).to_std().unwrap_or_default();
            let (Some(msg_id), Some(due_at)) = (row.msg_id, row.due_at) else {
                claims.parked = row.read_ct.unsigned_abs();
                claims.next_due = row.due_at.map(|at| (at - row.claimed_at).to_std().unwrap_or_default());
                continue;
            };
            let command = row.id.map(|id| Ledger {
                id,
                kind: row.kind.unwrap_or_default(),
                version: row.payload_version.unwrap_or_default().unsigned_abs(),
                payload: row.payload.unwrap_or_default(),
                attempts: row.attempts.unwrap_or_default().unsigned_abs(),
                waits: row.blocked_times.unwrap_or_default().unsigned_abs(),
                waiting: row.blocked_since.map(since).unwrap_or_default(),
                silent_ends: silent_ends(row.read_ct, row.outcomes.unwrap_or_default()),
                crashes: row.crashes.unwrap_or_default().unsigned_abs(),
                was_alone: row.alone_read_ct == Some(row.read_ct - 1),
                is_closed: row.finished_at.is_some(),
                traceparent: row.traceparent.unwrap_or_default(),
                tracestate: row.tracestate.unwrap_or_default(),
            });
            claims.messages.push(Claimed {
                fence: Fence { queue: queue.name, msg_id, read_ct: row.read_ct },
                lane: usize::try_from(row.lane.unwrap_or_default()).unwrap_or_default(),
                due_at,
                claimed_at: row.claimed_at,
                kind: row.message_kind,
                command,
            });
        }
        Ok(claims)
    })
    .await
}

/// Each claim raises the read count by one, and so does each end that makes the message due again.
fn silent_ends(read_ct: i32, outcomes: i32) -> u32 {
    u32::try_from(read_ct - 1 - 2 * outcomes).unwrap_or_default()
}

/// Messages that a worker could claim now, counted up to `most` in each lane.
pub async fn due(pool: &Pool, queue: &QueueSpec, most: u32) -> Result<u64, Error> {
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    pool.bounded("counting due messages", async {
        let mut session = pool.session().await?;
        let due =
            sqlx::query_file_scalar!("sql/queue/due.sql", queue.name, most).fetch_one(&mut *session).await?;
        session.release().await?;
        Ok(due.unsigned_abs())
    })
    .await
}

/// One running message in a heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// Its lease.
    pub fence: Fence,
    /// The command to be shown as running from now on, and since when; absent once that was written.
    pub started: Option<(Uuid, DateTime<Utc>)>,
}

/// What a heartbeat found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Renewed for another lease.
    Renewed,
    /// Still ours, but somebody else was writing the row: the old lease goes on.
    Busy,
}

/// Renews the leases of one process for one queue. A fence that is missing in the answer is lost.
pub async fn beat(
    pool: &Pool,
    queue: &'static str,
    lease: Duration,
    beats: &[Beat],
) -> Result<Vec<(Fence, Held)>, Error> {
    let ids: Vec<i64> = beats.iter().map(|beat| beat.fence.msg_id).collect();
    let cts: Vec<i32> = beats.iter().map(|beat| beat.fence.read_ct).collect();
    let commands: Vec<Option<Uuid>> =
        beats.iter().map(|beat| beat.started.map(|(command, _)| command)).collect();
    let times: Vec<Option<DateTime<Utc>>> = beats.iter().map(|beat| beat.started.map(|(_, at)| at)).collect();
    pool.bounded("renewing leases", async {
        let mut session = pool.session().await?;
        let rows = sqlx::query_file!(
            "sql/queue/beat.sql",
            queue,
            &ids,
            &cts,
            milliseconds(lease),
            &commands as &[Option<Uuid>],
            &times as &[Option<DateTime<Utc>>],
        )
        .fetch_all(&mut *session)
        .await?;
        session.release().await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let fence = Fence { queue, msg_id: row.msg_id, read_ct: row.read_ct };
                (fence, if row.renewed { Held::Renewed } else { Held::Busy })
            })
            .collect())
    })
    .await
}

/// Gives a message (with its command) back: due after the pause, no attempt burnt. False where the lease was
/// lost.
pub async fn hand_back(
    pool: &Pool,
    fence: Fence,
    command: Option<Uuid>,
    pause: Duration,
) -> Result<bool, Error> {
    pool.bounded("handing a message back", async {
        let mut session = pool.session().await?;
        let back = sqlx::query_file_scalar!(
            "sql/queue/hand_back.sql",
            fence.queue,
            fence.msg_id,
            fence.read_ct,
            command,
            milliseconds(pause),
        )
        .fetch_optional(&mut *session)
        .await?;
        session.release().await?;
        Ok(back.is_some())
    })
    .await
}

pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
