//! What operators do with dead letters: each action is one transaction, decided under row locks by
//! [`policy::replay`], with an audit row for each dead letter it changed.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use contract::kind::{self, NotAJob};
use contract::{Class, DeadReason, LetterState, ReplayPolicy, Status, Workload};
use policy::difference::{Change, difference};
use policy::replay::{Letter, Refusal, decide};
use serde_json::{Value, json};
use strum::VariantArray;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::{Connection, Pool};

/// What to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send the stored input through the queue once more.
    Replay,
    /// Send this input through the queue instead.
    Repair(Value),
    /// Decide that it need not run.
    Suppress,
    /// Record that it was settled by hand.
    Reconcile,
}

impl Action {
    /// The policy that must allow it; its word stands in the audit.
    pub const fn policy(&self) -> ReplayPolicy {
        match self {
            Self::Replay => ReplayPolicy::ReplaySameInput,
            Self::Repair(_) => ReplayPolicy::RepairThenReplay,
            Self::Suppress => ReplayPolicy::Suppress,
            Self::Reconcile => ReplayPolicy::ManualReconcile,
        }
    }
}

/// On whose behalf, and whether in earnest.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Who wants it.
    pub operator: &'a str,
    /// Why, for whoever reads the audit.
    pub why: &'a str,
    /// Decide and answer, and change nothing.
    pub is_dry_run: bool,
}

/// Which open dead letters.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// Only this workload's.
    pub workload: Option<Workload>,
    /// Only those that died for this reason.
    pub reason: Option<DeadReason>,
    /// Only those that died so long ago or longer.
    pub older_than: Option<Duration>,
    /// The oldest so many.
    pub limit: u32,
}

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The dead letter doesn't allow it.
    ByPolicy(Refusal),
    /// The repaired input would not have been taken in at the door either.
    Input(NotAJob),
    /// The repaired input is the old one.
    Unchanged,
}

impl Refused {
    /// A stable word.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ByPolicy(refusal) => refusal.code(),
            Self::Input(_) => "input_invalid",
            Self::Unchanged => "input_unchanged",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPolicy(refusal) => refusal.fmt(f),
            Self::Input(error) => error.fmt(f),
            Self::Unchanged => f.write_str("the input is the same as before; to send it again, replay"),
        }
    }
}

/// What became of one dead letter.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The dead letter.
    pub id: Uuid,
    /// Its command.
    pub command: Option<Uuid>,
    /// The workload of its queue.
    pub workload: String,
    /// Why it died.
    pub reason: String,
    /// Why nothing was done; absent where it was done, or would be.
    pub refused: Option<Refused>,
    /// The input before and after an order to repair it.
    pub repair: Option<Repair>,
}

/// An input and what it was repaired to.
#[derive(Clone, Debug)]
pub struct Repair {
    /// The input as it was taken in.
    pub original: Value,
    /// The input as it is sent.
    pub repaired: Value,
    /// Where they differ.
    pub changes: Vec<Change>,
}

/// Does something with one dead letter. Nothing where there is no such dead letter.
pub async fn act(
    pool: &Pool,
    id: Uuid,
    action: &Action,
    order: &Order<'_>,
) -> Result<Option<Outcome>, Error> {
    let work = transaction(pool, Chosen::One(id), action, order);
    let outcomes = pool.bounded("acting on a dead letter", work).await?;
    Ok(outcomes.into_iter().next())
}

/// Replays all open dead letters that match, in one transaction: what is answered is what was done.
pub async fn replay_all(pool: &Pool, filter: Filter, order: &Order<'_>) -> Result<Vec<Outcome>, Error> {
    let work = transaction(pool, Chosen::Matching(filter), &Action::Replay, order);
    pool.bounded("replaying dead letters", work).await
}

enum Chosen {
    One(Uuid),
    Matching(Filter),
}

async fn transaction(
    pool: &Pool,
    chosen: Chosen,
    action: &Action,
    order: &Order<'_>,
) -> Result<Vec<Outcome>, sqlx::Error> {
    let mut session = pool.session().await?;
    let mut transaction = session.begin().await?;
    let ids = lock(&mut transaction, chosen).await?;
    let found = read(&mut transaction, &ids).await?;
    let mut outcomes: Vec<Outcome> = found.into_iter().map(|found| judge(found, action)).collect();
    if order.is_dry_run {
        transaction.rollback().await?;
    } else {
        carry_out(&mut transaction, action, order, &mut outcomes).await?;
        transaction.commit().await?;
    }
    session.release().await?;
    Ok(outcomes)
}

/// Dead letters first, then their commands, each in the order of their ids: two operators never wait for each
/// other in a circle.
async fn lock(connection: &mut Connection, chosen: Chosen) -> Result<Vec<Uuid>, sqlx::Error> {
    let ids = match chosen {
        Chosen::One(id) => {
            sqlx::query_file!("sql/replay/lock.sql", &[id]).fetch_all(&mut *connection).await?;
            vec![id]
        }
        Chosen::Matching(Filter { workload, reason, older_than, limit }) => {
            let seconds = older_than.map(|age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
            sqlx::query_file_scalar!(
                "sql/replay/choose.sql",
                workload.map(Workload::kind),
                reason.map(|reason| reason.to_string()),
                seconds,
                i64::from(limit),
                &replayable_reasons(),
            )
            .fetch_all(&mut *connection)
            .await?
        }
    };
    sqlx::query_file!("sql/replay/lock_commands.sql", &ids).fetch_all(connection).await?;
    Ok(ids)
}

fn replayable_reasons() -> Vec<String> {
    let is_replayable = |reason: &&DeadReason| reason.ways_out().contains(&ReplayPolicy::ReplaySameInput);
    DeadReason::VARIANTS.iter().filter(is_replayable).map(ToString::to_string).collect()
}

struct Found {
    id: Uuid,
    command_id: Option<Uuid>,
    workload: String,
    reason: String,
    policies: Vec<String>,
    state: String,
    decided_by: Option<String>,
    status: Option<String>,
    kind: Option<String>,
    payload: Option<Value>,
}

/// A statement of its own after the locks: it sees what the operator before us committed.
async fn read(connection: &mut Connection, ids: &[Uuid]) -> Result<Vec<(Found, Words)>, sqlx::Error> {
    let found = sqlx::query_file_as!(Found, "sql/replay/read.sql", ids).fetch_all(connection).await?;
    found.into_iter().map(|found| Words::of(&found).map(|words| (found, words))).collect()
}

/// The columns that are words of the contract.
struct Words {
    reason: DeadReason,
    policies: Vec<ReplayPolicy>,
    state: LetterState,
    status: Option<Status>,
}

impl Words {
    fn of(found: &Found) -> Result<Self, sqlx::Error> {
        Ok(Self {
            reason: word(&found.reason)?,
            policies: found.policies.iter().map(|policy| word(policy)).collect::<Result<_, _>>()?,
            state: word(&found.state)?,
            status: found.status.as_deref().map(word).transpose()?,
        })
    }
}

/// A word that this version doesn't know was written by a newer one.
fn word<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(text: &str) -> Result<T, sqlx::Error> {
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

fn judge((found, words): (Found, Words), action: &Action) -> Outcome {
    let letter = Letter {
        reason: words.reason,
        policies: &words.policies,
        state: words.state,
        decided_by: found.decided_by.as_deref(),
        command: words.status,
    };
    let decision = decide(&letter, action.policy()).map_err(Refused::ByPolicy);
    let repair = decision.and_then(|()| match action {
        Action::Repair(input) => repair(found.kind.as_deref(), found.payload, input).map(Some),
        Action::Replay | Action::Suppress | Action::Reconcile => Ok(None),
    });
    let (refused, repair) = match repair {
        Ok(repair) => (None, repair),
        Err(refused) => (Some(refused), None),
    };
    Outcome {
        id: found.id,
        command: found.command_id,
        workload: found.workload,
        reason: found.reason,
        refused,
        repair,
    }
}

fn repair(kind: Option<&str>, original: Option<Value>, input: &Value) -> Result<Repair, Refused> {
    let repaired = kind::checked(kind.unwrap_or_default(), input).map_err(Refused::Input)?;
    let original = original.unwrap_or_default();
    let changes = difference(&original, &repaired);
    if changes.is_empty() { Err(Refused::Unchanged) } else { Ok(Repair { original, repaired, changes }) }
}

async fn carry_out(
    connection: &mut Connection,
    action: &Action,
    order: &Order<'_>,
    outcomes: &mut [Outcome],
) -> Result<(), sqlx::Error> {
    match action {
        Action::Replay | Action::Repair(_) => send_again(connection, action, order, outcomes).await?,
        Action::Suppress => close(connection, Status::Suppressed, outcomes).await?,
        Action::Reconcile => close(connection, Status::Reconciled, outcomes).await?,
    }
    record(connection, action, order, outcomes).await
}

async fn send_again(
    connection: &mut Connection,
    action: &Action,
    order: &Order<'_>,
    outcomes: &mut [Outcome],
) -> Result<(), sqlx::Error> {
    // Only an order on one dead letter has a repaired input.
    let repair = outcomes.first().and_then(|outcome| outcome.repair.clone());
    let (original, repaired, changes) = match repair {
        None => (None, None, None),
        Some(Repair { original, repaired, changes }) => {
            (Some(original), Some(repaired), Some(json!(changes)))
        }
    };
    let class = Class::P3.number();
    let queued: HashSet<Uuid> =
        sqlx::query_file_scalar!("sql/replay/requeue.sql", &granted(outcomes), repaired, class)
            .fetch_all(&mut *connection)
            .await?
            .into_iter()
            .collect();
    for outcome in outcomes.iter_mut().filter(|outcome| !queued.contains(&outcome.id)) {
        // Two dead letters of one command in one order: it is sent once.
        let moved_on = || Refused::ByPolicy(Refusal::MovedOn(Status::Queued));
        outcome.refused.get_or_insert_with(moved_on);
    }
    faults::point!("replay.mid", sqlx::Error::PoolTimedOut);
    let ids = granted(outcomes);
    sqlx::query_file!(
        "sql/replay/send.sql",
        &ids,
        action.policy().to_string(),
        order.operator,
        order.why,
        original,
        repaired,
        changes,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query_file!("sql/replay/request_syncs.sql", &ids).execute(connection).await?;
    Ok(())
}

async fn close(connection: &mut Connection, status: Status, outcomes: &[Outcome]) -> Result<(), sqlx::Error> {
    sqlx::query_file!("sql/replay/close.sql", &granted(outcomes), status.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// The decision on each dead letter, its message in the archive, and the audit.
async fn record(
    connection: &mut Connection,
    action: &Action,
    order: &Order<'_>,
    outcomes: &[Outcome],
) -> Result<(), sqlx::Error> {
    let ids = granted(outcomes);
    let policy = action.policy();
    let state = policy.decides().to_string();
    sqlx::query_file!("sql/replay/decide.sql", &ids, state, order.operator).execute(&mut *connection).await?;
    sqlx::query_file!("sql/replay/archive.sql", &ids).fetch_all(&mut *connection).await?;
    let acted = || outcomes.iter().filter(|outcome| outcome.refused.is_none());
    let targets: Vec<String> = acted().map(|outcome| outcome.id.to_string()).collect();
    let details: Vec<Value> = acted().map(details).collect();
    audit(connection, order, policy.into(), &targets, &details).await
}

/// Which dead letters the order is carried out on.
fn granted(outcomes: &[Outcome]) -> Vec<Uuid> {
    outcomes.iter().filter(|outcome| outcome.refused.is_none()).map(|outcome| outcome.id).collect()
}

/// For the audit: ids and places, no payload. What was repaired is in `spillway.replay`.
fn details(outcome: &Outcome) -> Value {
    let places = outcome.repair.iter().flat_map(|repair| &repair.changes).map(|change| &change.path);
    json!({
        "command": outcome.command,
        "workload": outcome.workload,
        "reason": outcome.reason,
        "changed": places.collect::<Vec<_>>(),
    })
}

async fn audit(
    connection: &mut Connection,
    order: &Order<'_>,
    action: &str,
    targets: &[String],
    details: &[Value],
) -> Result<(), sqlx::Error> {
    sqlx::query_file!(
        "sql/replay/audit.sql",
        order.operator,
        action,
        "dead_letter",
        order.why,
        targets,
        details
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Reveals the input of a dead letter's command, which is on record like every action. Nothing where there is no
/// such dead letter, or no command behind it.
pub async fn reveal(pool: &Pool, id: Uuid, operator: &str, why: &str) -> Result<Option<Value>, Error> {
    pool.bounded("revealing the input of a dead letter", async {
        let mut session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let input =
            sqlx::query_file_scalar!("sql/replay/input.sql", id).fetch_optional(&mut *transaction).await?;
        if input.is_some() {
            let order = Order { operator, why, is_dry_run: false };
            audit(&mut transaction, &order, "reveal", &[id.to_string()], &[json!({})]).await?;
        }
        transaction.commit().await?;
        session.release().await?;
        Ok(input)
    })
    .await
}
