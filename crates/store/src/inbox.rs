//! The webhook inbox: deliveries go in with their commands and messages in one transaction, and only a row
//! that is there makes a duplicate.

use std::collections::HashMap;

use bytes::Bytes;
use contract::NewCommand;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::command;
use crate::error::{Error, Fault};
use crate::pool::Pool;

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
    /// Accepted, with the command that it starts.
    Start(Box<NewCommand>),
    /// Accepted; it is kept and there is nothing to do.
    Record,
    /// Set aside for a person, with the reason.
    Quarantine(&'static str),
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
}

/// The verdict on a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// New and accepted.
    Queued,
    /// A committed row has the same identity and the same body.
    Duplicate,
    /// Set aside; the same delivery again gets the same answer.
    Quarantined,
}

/// Takes deliveries in, all in one transaction, and answers in their order.
///
/// On an error nothing was taken in, or (where the COMMIT was sent and its answer lost) everything was: the
/// senders' next try is then answered `duplicate`. What jsonb refuses although it parsed (a number with too many
/// digits) is kept as bytes alone.
pub async fn accept(pool: &Pool, deliveries: &[Delivery]) -> Result<Vec<Receipt>, Error> {
    match accept_as_they_are(pool, deliveries).await {
        Err(error)
            if error.fault() == Fault::Values && deliveries.iter().any(|delivery| delivery.is_clean_json) =>
        {
            let bytes_alone = |delivery: &Delivery| Delivery { is_clean_json: false, ..delivery.clone() };
            accept_as_they_are(pool, &deliveries.iter().map(bytes_alone).collect::<Vec<_>>()).await
        }
        outcome => outcome,
    }
}

async fn accept_as_they_are(pool: &Pool, deliveries: &[Delivery]) -> Result<Vec<Receipt>, Error> {
    pool.bounded("taking webhooks in", async {
        let mut session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let receipts = take_in(&mut transaction, deliveries).await?;
        transaction.commit().await?;
        session.release();
        Ok(receipts)
    })
    .await
}

async fn take_in(
    connection: &mut PgConnection,
    deliveries: &[Delivery],
) -> Result<Vec<Receipt>, sqlx::Error> {
    let mut receipts: HashMap<Uuid, Receipt> = HashMap::with_capacity(deliveries.len());
    let (mut fresh, mut aside) = (Vec::new(), Vec::new());
    for delivery in deliveries {
        match delivery.fate {
            Fate::Start(_) | Fate::Record => fresh.push(Row::accepted(delivery)),
            Fate::Quarantine(reason) => aside.push(Row::set_aside(delivery, reason, None)),
        }
    }
    let accepted = insert(connection, &mut fresh).await?;
    receipts.extend(accepted.iter().map(|(id, command)| (*id, queued(*id, *command))));

    // A delivery that would be set aside today may repeat one that was accepted yesterday.
    let mut rest: Vec<Row<'_>> =
        fresh.into_iter().filter(|row| !receipts.contains_key(&row.delivery.id)).collect();
    rest.append(&mut aside);
    let winners = winners(connection, &rest).await?;
    for row in rest {
        match winners.get(&row.delivery.id) {
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
    for (requested, id) in start(connection, deliveries, &accepted).await? {
        let of_command = |receipt: &&mut Receipt| receipt.command_id == Some(requested);
        receipts.values_mut().filter(of_command).for_each(|receipt| receipt.command_id = Some(id));
    }

    deliveries
        .iter()
        .map(|delivery| receipts.get(&delivery.id).copied().ok_or(sqlx::Error::RowNotFound))
        .collect()
}

/// Writes the ledger rows and the messages of the deliveries that were new. Answers, for each command, the one
/// that its key stands for: the inbox forgets before the ledger does, so it may be an older one.
async fn start(
    connection: &mut PgConnection,
    deliveries: &[Delivery],
    accepted: &[(Uuid, Option<Uuid>)],
) -> Result<Vec<(Uuid, Uuid)>, sqlx::Error> {
    let new = |delivery: &&Delivery| accepted.iter().any(|(id, _)| *id == delivery.id);
    let commands: Vec<&NewCommand> = deliveries
        .iter()
        .filter(new)
        .filter_map(|delivery| match &delivery.fate {
            Fate::Start(command) => Some(command.as_ref()),
            Fate::Record | Fate::Quarantine(_) => None,
        })
        .collect();
    if commands.is_empty() {
        return Ok(Vec::new());
    }
    let enqueued = command::enqueue(connection, &commands).await?;
    if enqueued.len() != commands.len() {
        // A workload without its row: nothing must be promised.
        return Err(sqlx::Error::RowNotFound);
    }
    Ok(enqueued.into_iter().map(|command| (command.requested, command.id)).collect())
}

const fn queued(inbox_id: Uuid, command_id: Option<Uuid>) -> Receipt {
    Receipt { inbox_id, command_id, outcome: Outcome::Queued }
}

const fn duplicate(winner: &Winner) -> Receipt {
    Receipt { inbox_id: winner.id, command_id: winner.command_id, outcome: Outcome::Duplicate }
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
        match &self.delivery.fate {
            Fate::Start(command) if self.reason.is_none() => Some(command.id),
            _ => None,
        }
    }

    fn key(&self) -> (&'a str, &'a str, &'a str, &'a [u8; 32]) {
        (self.delivery.source, &self.delivery.tenant, &self.delivery.identity, &self.delivery.sha256)
    }
}

/// Inserts what is not there yet; answers the ids that were, with their commands.
async fn insert(
    connection: &mut PgConnection,
    rows: &mut [Row<'_>],
) -> Result<Vec<(Uuid, Option<Uuid>)>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    // Two gateways that write the same keys in different orders would deadlock.
    rows.sort_by(|a, b| a.key().cmp(&b.key()));
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
    connection: &mut PgConnection,
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
    connection: &mut PgConnection,
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
            let receipt = Receipt { inbox_id: row.id, command_id: None, outcome: Outcome::Quarantined };
            (row.requested, receipt)
        })
        .collect())
}
