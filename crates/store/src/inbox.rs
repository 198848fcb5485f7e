//! The webhook inbox: deliveries become rows, and only a row that is there makes a duplicate.
//!
//! What a delivery starts is written by [`crate::intake`] in the same transaction.

use std::collections::{HashMap, HashSet};

use crate::pool::Connection;
use bytes::Bytes;
use contract::NewCommand;
use contract::snaptrade::WorkType;
use uuid::Uuid;

use crate::snaptrade::AccountsChange;

/// One authenticated delivery of a webhook.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The inbox row's id, should the delivery become one (UUID version 7).
    pub id: Uuid,
    /// Whose webhook it is, such as `snaptrade`.
    pub source: &'static str,
    /// Which of our accounts at the sender it concerns; empty where there is only one.
    pub tenant: String,
    /// The sender's event id, or one derived from the body.
    pub identity: String,
    /// What the sender calls the event, where it could be read.
    pub event_type: Option<String>,
    /// The body as it came.
    pub body: Bytes,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// The body may be stored as jsonb too: it is UTF-8, parses, and holds nothing that jsonb refuses.
    pub is_clean_json: bool,
    /// What becomes of it if it is new.
    pub fate: Fate,
    /// W3C trace context of the request.
    pub traceparent: String,
    /// The id shown to the sender.
    pub correlation_id: String,
}

/// What becomes of a delivery whose identity is new.
#[derive(Clone, Debug)]
pub enum Fate {
    /// Accepted; this sync is asked for, and its command starts unless one waits already.
    Sync {
        /// Which data.
        work_type: WorkType,
        /// Of which account.
        account_id: Uuid,
        /// The connection that the account belongs to, where that is news.
        connection_id: Option<Uuid>,
        /// The command, should it be needed.
        command: Box<NewCommand>,
    },
    /// Accepted as the next fact about a payment, with the command that takes it in.
    Fact {
        /// The payment.
        payment_id: Uuid,
        /// The command.
        command: Box<NewCommand>,
    },
    /// Accepted; it changes what we know of accounts.
    Accounts(Box<AccountsChange>),
    /// Accepted; it is kept and there is nothing to do.
    Record,
    /// Set aside for a person, with the reason.
    Quarantine(&'static str),
}

impl Fate {
    /// The command that the delivery may start.
    pub fn command(&self) -> Option<&NewCommand> {
        match self {
            Self::Sync { command, .. } | Self::Fact { command, .. } => Some(command),
            Self::Accounts(_) | Self::Record | Self::Quarantine(_) => None,
        }
    }
}

/// Reason of a delivery whose identity was accepted before with another body.
pub const IDENTITY_CONFLICT: &str = "identity_conflict";

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The inbox row that stands for it.
    pub inbox_id: Uuid,
    /// The command that it started, or that the row it repeats had started.
    pub command_id: Option<Uuid>,
    /// The verdict.
    pub outcome: Outcome,
    /// The row under which a delivery that started nothing is counted.
    pub counted_under: Uuid,
}

/// The verdict on a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// New and accepted.
    Queued,
    /// New and accepted; a command that waits already will see to it.
    Coalesced,
    /// A committed row has the same identity and the same body.
    Duplicate,
    /// Set aside; the same delivery again gets the same answer.
    Quarantined,
}

/// What [`write`] did.
pub(crate) struct Written {
    /// A receipt for each delivery, by its id. Those that are new say `Queued` with the command that they may start.
    pub(crate) receipts: HashMap<Uuid, Receipt>,
    /// The deliveries that this call has written; only they start anything.
    pub(crate) new: HashSet<Uuid>,
}

/// Writes the rows.
pub(crate) async fn write(
    connection: &mut Connection,
    deliveries: &[&Delivery],
) -> Result<Written, sqlx::Error> {
    let mut receipts: HashMap<Uuid, Receipt> = HashMap::with_capacity(deliveries.len());
    let (mut fresh, mut aside) = (Vec::new(), Vec::new());
    for delivery in deliveries {
        match delivery.fate {
            Fate::Quarantine(reason) => aside.push(Row::set_aside(delivery, reason, None)),
            _ => fresh.push(Row::accepted(delivery)),
        }
    }
    let accepted = insert(connection, &mut fresh).await?;
    receipts.extend(accepted.iter().map(|(id, command)| (*id, queued(*id, *command))));
    let new = accepted.into_iter().map(|(id, _)| id).collect();

    // A delivery that would be set aside today may repeat one that was accepted yesterday.
    let mut rest: Vec<Row<'_>> =
        fresh.into_iter().filter(|row| !receipts.contains_key(&row.delivery.id)).collect();
    rest.append(&mut aside);
    let winners = winners(connection, &rest).await?;
    for row in rest {
        match winners.get(&row.delivery.id) {
            // An earlier try of this very delivery, whose answer was lost.
            Some(winner) if winner.id == row.delivery.id => {
                receipts.insert(row.delivery.id, queued(winner.id, winner.command_id));
            }
            Some(winner) if winner.body_sha256 == row.delivery.sha256 => {
                receipts.insert(row.delivery.id, duplicate(winner));
            }
            Some(winner) if row.reason.is_none() => {
                aside.push(Row::set_aside(row.delivery, IDENTITY_CONFLICT, Some(winner.id)));
            }
            _ => aside.push(row),
        }
    }
    receipts.extend(set_aside(connection, &mut aside).await?);
    Ok(Written { receipts, new })
}

/// Says which command a delivery became part of, where that is not the one it was written with.
pub(crate) async fn link(connection: &mut Connection, links: &[(Uuid, Uuid)]) -> Result<(), sqlx::Error> {
    if links.is_empty() {
        return Ok(());
    }
    let (rows, commands): (Vec<Uuid>, Vec<Uuid>) = links.iter().copied().unzip();
    sqlx::query_file!("sql/inbox/link.sql", &rows, &commands).execute(connection).await?;
    Ok(())
}

const fn queued(inbox_id: Uuid, command_id: Option<Uuid>) -> Receipt {
    Receipt { inbox_id, command_id, outcome: Outcome::Queued, counted_under: inbox_id }
}

const fn duplicate(winner: &Winner) -> Receipt {
    Receipt {
        inbox_id: winner.id,
        command_id: winner.command_id,
        outcome: Outcome::Duplicate,
        counted_under: winner.id,
    }
}

/// A delivery on its way into the table.
struct Row<'a> {
    delivery: &'a Delivery,
    state: &'static str,
    reason: Option<&'static str>,
    conflicts_with: Option<Uuid>,
}

impl<'a> Row<'a> {
    const fn accepted(delivery: &'a Delivery) -> Self {
        Self { delivery, state: "accepted", reason: None, conflicts_with: None }
    }

    const fn set_aside(delivery: &'a Delivery, reason: &'static str, conflicts_with: Option<Uuid>) -> Self {
        Self { delivery, state: "quarantined", reason: Some(reason), conflicts_with }
    }

    fn command_id(&self) -> Option<Uuid> {
        if self.reason.is_some() {
            return None;
        }
        self.delivery.fate.command().map(|command| command.id)
    }

    fn key(&self) -> (&'a str, &'a str, &'a str, &'a [u8; 32]) {
        (self.delivery.source, &self.delivery.tenant, &self.delivery.identity, &self.delivery.sha256)
    }
}

/// Inserts what is not there yet; answers the ids that were, with their commands.
async fn insert(
    connection: &mut Connection,
    rows: &mut [Row<'_>],
) -> Result<Vec<(Uuid, Option<Uuid>)>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    // Two gateways that write the same keys in different orders would deadlock.
    if !faults::lacks!("sorted_batches") {
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
    }
    let column = |f: fn(&Row<'_>) -> String| -> Vec<String> { rows.iter().map(f).collect() };
    let optional =
        |f: fn(&Row<'_>) -> Option<String>| -> Vec<Option<String>> { rows.iter().map(f).collect() };
    let inserted = sqlx::query_file!(
        "sql/inbox/insert.sql",
        &rows.iter().map(|row| row.delivery.id).collect::<Vec<_>>(),
        &column(|row| row.delivery.source.to_owned()),
        &column(|row| row.delivery.tenant.clone()),
        &column(|row| row.delivery.identity.clone()),
        &column(|row| row.state.to_owned()),
        &optional(|row| row.reason.map(str::to_owned)) as &[Option<String>],
        &optional(|row| row.delivery.event_type.clone()) as &[Option<String>],
        &rows.iter().map(|row| row.delivery.body.to_vec()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.sha256.to_vec()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.is_clean_json).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.conflicts_with).collect::<Vec<_>>() as &[Option<Uuid>],
        &rows.iter().map(Row::command_id).collect::<Vec<_>>() as &[Option<Uuid>],
        &column(|row| row.delivery.traceparent.clone()),
        &column(|row| row.delivery.correlation_id.clone()),
    )
    .fetch_all(connection)
    .await?;
    Ok(inserted.into_iter().map(|row| (row.id, row.command_id)).collect())
}

/// The row that an identity stands for.
struct Winner {
    id: Uuid,
    command_id: Option<Uuid>,
    body_sha256: Vec<u8>,
}

/// The accepted rows that kept `rows` out. A statement of its own: what a concurrent transaction committed
/// while the insert waited for it is invisible to the insert and visible to this.
async fn winners(
    connection: &mut Connection,
    rows: &[Row<'_>],
) -> Result<HashMap<Uuid, Winner>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let found = sqlx::query_file!(
        "sql/inbox/winners.sql",
        &rows.iter().map(|row| row.delivery.id).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.source.to_owned()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.tenant.clone()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.identity.clone()).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await?;
    let winner = |id, command_id, body_sha256| Winner { id, command_id, body_sha256 };
    Ok(found
        .into_iter()
        .map(|row| (row.requested, winner(row.id, row.command_id, row.body_sha256)))
        .collect())
}

/// Keeps what can't be accepted; the same delivery again finds its first row.
async fn set_aside(
    connection: &mut Connection,
    rows: &mut [Row<'_>],
) -> Result<Vec<(Uuid, Receipt)>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    insert(connection, rows).await?;
    let kept = sqlx::query_file!(
        "sql/inbox/set_aside.sql",
        &rows.iter().map(|row| row.delivery.id).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.source.to_owned()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.tenant.clone()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.identity.clone()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.delivery.sha256.to_vec()).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await?;
    Ok(kept
        .into_iter()
        .map(|row| {
            let receipt = Receipt {
                inbox_id: row.id,
                command_id: None,
                outcome: Outcome::Quarantined,
                counted_under: row.id,
            };
            (row.requested, receipt)
        })
        .collect())
}
