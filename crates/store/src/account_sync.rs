//! Coalescing that loses no update.
//!
//! `requested` counts the events that asked for a sync of one kind of one account; `waiting_command` is the one
//! command that will see all of them; a run that starts takes `requested` as its mark and makes room for the next
//! command; success moves `ok_through` up to the mark. So after the last event some run always starts, at most one
//! command waits, and a crash costs at most a run that finds nothing to do. A command for later is counted when it
//! starts, and nothing waits for it.

use std::collections::{BTreeMap, HashMap};

use contract::NewCommand;
use contract::snaptrade::WorkType;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::{Connection, Pool};
use crate::queue::Fence;

/// An event's wish for a sync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) work_type: WorkType,
    pub(crate) account_id: Uuid,
    /// The command that waits from now on, unless one waits already.
    pub(crate) command: &'a NewCommand,
    /// The webhook that asks.
    pub(crate) inbox_id: Uuid,
}

/// The command that waits, and the webhook that made it wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) command: Uuid,
    pub(crate) inbox_id: Option<Uuid>,
}

impl Request<'_> {
    pub(crate) const fn key(&self) -> (WorkType, Uuid) {
        (self.work_type, self.account_id)
    }
}

/// Counts the requests. Answers, for each kind and account, the command that waits.
pub(crate) async fn request(
    connection: &mut Connection,
    requests: &[Request<'_>],
) -> Result<HashMap<(WorkType, Uuid), Waiting>, sqlx::Error> {
    if requests.is_empty() {
        return Ok(HashMap::new());
    }
    // Folded, and in the order of the keys.
    let mut folded: BTreeMap<(String, Uuid), (i64, &Request<'_>)> = BTreeMap::new();
    for request in requests {
        let key = (request.work_type.to_string(), request.account_id);
        folded.entry(key).or_insert((0, request)).0 += 1;
    }
    let waiting = sqlx::query_file!(
        "sql/account_sync/request.sql",
        &folded.keys().map(|(work_type, _)| work_type.clone()).collect::<Vec<_>>(),
        &folded.keys().map(|(_, account)| *account).collect::<Vec<_>>(),
        &folded.values().map(|(n, _)| *n).collect::<Vec<_>>(),
        &folded.values().map(|(_, first)| first.command.id).collect::<Vec<_>>(),
        &folded.values().map(|(_, first)| first.inbox_id).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await?;
    Ok(waiting
        .into_iter()
        .filter_map(|row| {
            let waiting = Waiting { command: row.waiting_command, inbox_id: row.waiting_inbox };
            Some(((row.work_type.parse().ok()?, row.account_id), waiting))
        })
        .collect())
}

/// What a run finds when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Everything asked for up to this mark is to be fetched.
    Through(i64),
    /// A run that started later than the last request has fetched it already.
    AlreadyDone,
    /// The lease has gone to another worker.
    Lost,
}

/// Starts a run: from now on a further event needs a further command. In a transaction of its own, before the
/// run's first call.
pub async fn start(
    pool: &Pool,
    fence: Fence,
    command: Uuid,
    work_type: WorkType,
    account_id: Uuid,
) -> Result<Start, Error> {
    pool.bounded("starting an account's sync", async {
        let mut session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let Fence { queue, msg_id, read_ct } = fence;
        let ours = sqlx::query_file_scalar!("sql/queue/lock.sql", queue, msg_id, read_ct)
            .fetch_one(&mut *transaction)
            .await?;
        let start = if ours {
            let row =
                sqlx::query_file!("sql/account_sync/start.sql", work_type.to_string(), account_id, command)
                    .fetch_optional(&mut *transaction)
                    .await?;
            match row {
                Some(row) if row.ok_through >= row.requested => Start::AlreadyDone,
                Some(row) => Start::Through(row.requested),
                // Put in by hand: nobody counted.
                None => Start::Through(0),
            }
        } else {
            Start::Lost
        };
        transaction.commit().await?;
        session.release().await?;
        Ok(start)
    })
    .await
}

/// Moves the mark of what is done; part of a sync's effect.
pub(crate) async fn finish(
    connection: &mut Connection,
    work_type: WorkType,
    account_id: Uuid,
    through: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query_file!("sql/account_sync/finish.sql", work_type.to_string(), account_id, through)
        .execute(connection)
        .await?;
    Ok(())
}
