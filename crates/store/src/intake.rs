//! Taking work in: webhooks and commands of one micro-batch in one transaction.
//!
//! **Invariant:** a receipt is given only after the commit. On an error nothing was taken in, or (where the
//! COMMIT was sent and its answer lost) everything was: the next try finds it.

use std::collections::HashMap;
use std::time::Duration;

use contract::NewCommand;
use contract::snaptrade::{AccountSync, WorkType};
use uuid::Uuid;

use crate::account_sync::{self, Request, Waiting};
use crate::command::{self, Enqueued};
use crate::error::Error;
use crate::inbox::{self, Delivery, Fate, Outcome, Receipt, Written};
use crate::payment_feed;
use crate::pool::{Connection, Pool, Session};
use crate::snaptrade::{self, Account};

/// One thing to take in.
#[derive(Clone, Debug)]
pub enum Item {
    /// An authenticated webhook.
    Webhook(Box<Delivery>),
    /// A caller's command.
    Command(Box<NewCommand>),
}

/// What became of an [`Item`].
#[derive(Clone, Copy, Debug)]
pub enum Taken {
    /// Of a webhook.
    Webhook(Receipt),
    /// Of a command.
    Command(Enqueued),
}

/// Takes items in and answers in their order. `decide` makes the items once it is known what we know of
/// `accounts`; it is called once for each try.
pub async fn take_in(
    pool: &Pool,
    accounts: &[Uuid],
    decide: impl FnOnce(&HashMap<Uuid, Account>) -> Vec<Item>,
) -> Result<Vec<Taken>, Error> {
    pool.bounded("taking work in", async {
        let mut session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let known = snaptrade::known(&mut transaction, accounts).await?;
        let taken = write(&mut transaction, &decide(&known)).await?;
        if faults::lacks!("commit_first") {
            tokio::spawn(commit_later(session));
            return Ok(taken);
        }
        faults::point!("gw.in_tx", sqlx::Error::PoolTimedOut);
        transaction.commit().await?;
        session.release().await?;
        Ok(taken)
    })
    .await
}

/// What the guard `commit_first` is for: by now the sender has its answer.
async fn commit_later(mut session: Session) -> Result<(), sqlx::Error> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    faults::point!("gw.in_tx", sqlx::Error::PoolTimedOut);
    session.begin().await?.commit().await?;
    session.release().await
}

/// The order is everybody's, so that two gateways never wait for one another in a circle: inbox, accounts, syncs,
/// feeds, ledger, queues; and within each the order of its keys.
async fn write(connection: &mut Connection, items: &[Item]) -> Result<Vec<Taken>, sqlx::Error> {
    let webhooks: Vec<&Delivery> = items.iter().filter_map(Item::webhook).collect();
    let Written { mut receipts, new } = inbox::write(connection, &webhooks).await?;
    let new: Vec<&Delivery> = webhooks.into_iter().filter(|delivery| new.contains(&delivery.id)).collect();

    let mut commands: Vec<&NewCommand> = items.iter().filter_map(Item::command).collect();
    snaptrade::connect(connection, &connections(&new)).await?;
    let opened = change_accounts(connection, &new).await?;
    let requests: Vec<Request<'_>> = own_requests(&new).chain(opened.iter().map(of_opened)).collect();
    let waiting = account_sync::request(connection, &requests).await?;
    let starts = |request: &&Request<'_>| {
        waiting.get(&request.key()).is_some_and(|waiting| waiting.command == request.command.id)
    };
    commands.extend(requests.iter().filter(starts).map(|request| request.command));
    let links = coalesce(&new, &waiting, &mut receipts);

    let facts: Vec<(&str, Uuid, Uuid)> = new.iter().filter_map(|delivery| fact(delivery)).collect();
    payment_feed::append(connection, &facts).await?;
    commands.extend(new.iter().filter_map(|delivery| match &delivery.fate {
        Fate::Fact { command, .. } => Some(command.as_ref()),
        _ => None,
    }));

    let enqueued = command::enqueue(connection, &commands).await?;
    inbox::link(connection, &links).await?;
    items.iter().map(|item| item.taken(&receipts, &enqueued)).collect()
}

impl Item {
    fn webhook(&self) -> Option<&Delivery> {
        match self {
            Self::Webhook(delivery) => Some(delivery),
            Self::Command(_) => None,
        }
    }

    fn command(&self) -> Option<&NewCommand> {
        match self {
            Self::Command(command) => Some(command),
            Self::Webhook(_) => None,
        }
    }

    fn taken(
        &self,
        receipts: &HashMap<Uuid, Receipt>,
        enqueued: &HashMap<Uuid, Enqueued>,
    ) -> Result<Taken, sqlx::Error> {
        let taken = match self {
            Self::Webhook(delivery) => receipts.get(&delivery.id).copied().map(Taken::Webhook),
            Self::Command(command) => enqueued.get(&command.id).copied().map(Taken::Command),
        };
        taken.ok_or(sqlx::Error::RowNotFound)
    }
}

fn fact(delivery: &Delivery) -> Option<(&str, Uuid, Uuid)> {
    match delivery.fate {
        Fate::Fact { payment_id, .. } => Some((&delivery.tenant, payment_id, delivery.id)),
        _ => None,
    }
}

/// Applies what webhooks say about accounts, in the order of the batch. Answers the syncs of the accounts that were
/// opened.
async fn change_accounts(
    connection: &mut Connection,
    new: &[&Delivery],
) -> Result<Vec<(Uuid, AccountSync, NewCommand)>, sqlx::Error> {
    let mut syncs = Vec::new();
    for delivery in new {
        if let Fate::Accounts(change) = &delivery.fate {
            let opened = snaptrade::change(connection, change).await?;
            let opened = opened.into_iter().flat_map(|account| change.syncs(account));
            syncs.extend(opened.map(|(job, command)| (delivery.id, job, command)));
        }
    }
    Ok(syncs)
}

fn connections(new: &[&Delivery]) -> Vec<(Uuid, Uuid)> {
    let news = new.iter().filter_map(|delivery| match delivery.fate {
        Fate::Sync { account_id, connection_id: Some(connection), .. } => Some((account_id, connection)),
        _ => None,
    });
    news.collect()
}

fn own_requests<'a>(new: &[&'a Delivery]) -> impl Iterator<Item = Request<'a>> {
    new.iter().filter_map(|delivery| match &delivery.fate {
        Fate::Sync { work_type, account_id, command, .. } => {
            let inbox_id = delivery.id;
            Some(Request { work_type: *work_type, account_id: *account_id, command, inbox_id })
        }
        _ => None,
    })
}

const fn of_opened((inbox_id, job, command): &(Uuid, AccountSync, NewCommand)) -> Request<'_> {
    Request { work_type: job.work_type, account_id: job.account_id, command, inbox_id: *inbox_id }
}

/// Finds the deliveries whose sync is in the hands of another command, and makes the receipts say so: theirs and
/// those of what repeats them in the same batch.
fn coalesce(
    new: &[&Delivery],
    waiting: &HashMap<(WorkType, Uuid), Waiting>,
    receipts: &mut HashMap<Uuid, Receipt>,
) -> Vec<(Uuid, Uuid)> {
    let mut winners = HashMap::new();
    for delivery in new {
        let Fate::Sync { work_type, account_id, command, .. } = &delivery.fate else { continue };
        let winner = waiting.get(&(*work_type, *account_id));
        winners
            .extend(winner.filter(|winner| winner.command != command.id).map(|winner| (delivery.id, winner)));
    }
    for receipt in receipts.values_mut() {
        let Some(winner) = winners.get(&receipt.inbox_id) else { continue };
        receipt.command_id = Some(winner.command);
        if receipt.outcome == Outcome::Queued {
            receipt.outcome = Outcome::Coalesced;
            receipt.counted_under = winner.inbox_id.unwrap_or(receipt.inbox_id);
        }
    }
    winners.into_iter().map(|(row, winner)| (row, winner.command)).collect()
}
