//! Micro-batching: while one transaction commits, arriving work gathers and goes together in the next one.
//!
//! When the door is idle a request goes alone and at once; under load a commit is shared by all that came while
//! the last one was under way. The transactions run in tasks of their own, which no client can cancel.

use std::sync::Arc;
use std::time::Duration;

use store::intake::{Item, Taken, take_in};
use store::wake::Notifier;
use store::{Fault, Pool, command, inbox};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use uuid::Uuid;

use crate::problem::Problem;
use crate::subject::{Accounts, Subject};

/// Items of one transaction.
const MOST_ITEMS: usize = 256;

/// Bytes of bodies in one transaction.
const MOST_BYTES: usize = 1024 * 1024;

/// Transactions under way at a time: one that commits, one that is being written.
const IN_FLIGHT: usize = 2;

/// The pause before a batch that met a passing fault is tried once more.
const AGAIN: Duration = Duration::from_millis(50);

/// The way into the database.
#[derive(Clone)]
pub(crate) struct Batcher(mpsc::UnboundedSender<Pending>);

/// One request that waits for its commit.
struct Pending {
    subject: Subject,
    answer: oneshot::Sender<Result<Taken, Problem>>,
    /// Held until the commit, also when the client has left: what is in work is what is bounded.
    permit: Arc<OwnedSemaphorePermit>,
}

impl Batcher {
    /// Starts. It ends when every clone is gone and everything is answered.
    pub(crate) fn start(pool: Pool, metrics: Arc<Metrics>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let notifier = Notifier::start(pool.clone());
        tokio::spawn(gather(receiver, pool, notifier, metrics));
        Self(sender)
    }

    /// Takes a request in; the answer comes after the commit.
    pub(crate) async fn take_in(
        &self,
        subject: Subject,
        permit: Arc<OwnedSemaphorePermit>,
    ) -> Result<Taken, Problem> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Pending { subject, answer, permit }).map_err(|_| Problem::Internal)?;
        answered.await.unwrap_or(Err(Problem::Internal))
    }
}

/// The in-flight permits bound how much can wait here.
async fn gather(
    mut waiting: mpsc::UnboundedReceiver<Pending>,
    pool: Pool,
    notifier: Notifier,
    metrics: Arc<Metrics>,
) {
    let slots = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut next = None;
    loop {
        let Some(first) = (match next.take() {
            Some(pending) => Some(pending),
            None => waiting.recv().await,
        }) else {
            return;
        };
        // Whatever arrives until a slot is free joins.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let mut bytes = first.subject.bytes();
        let mut batch = vec![first];
        while batch.len() < MOST_ITEMS {
            match waiting.try_recv() {
                Ok(pending) if bytes + pending.subject.bytes() > MOST_BYTES => {
                    next = Some(pending);
                    break;
                }
                Ok(pending) => {
                    bytes += pending.subject.bytes();
                    batch.push(pending);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        metrics
            .batch_items
            .with_label_values::<&str>(&[])
            .observe(f64::from(u32::try_from(batch.len()).unwrap_or(u32::MAX)));
        let (pool, notifier) = (pool.clone(), notifier.clone());
        tokio::spawn(async move {
            commit(&pool, &notifier, batch).await;
            drop(slot);
        });
    }
}

/// Commits a batch and answers everybody in it.
async fn commit(pool: &Pool, notifier: &Notifier, batch: Vec<Pending>) {
    let (subjects, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|pending| (pending.subject, (pending.answer, pending.permit))).unzip();
    let outcomes = settle(pool, &subjects).await;
    for (subject, outcome) in subjects.iter().zip(&outcomes) {
        if outcome.as_ref().is_ok_and(starts_something)
            && let Some(queue) = subject.queue()
        {
            notifier.notify(queue);
        }
    }
    for ((answer, _permit), outcome) in answers.into_iter().zip(outcomes) {
        // A client that has left needs no answer; its sender will ask again and get one.
        let _ = answer.send(outcome);
    }
}

const fn starts_something(taken: &Taken) -> bool {
    match taken {
        Taken::Webhook(receipt) => matches!(receipt.outcome, inbox::Outcome::Queued),
        Taken::Command(enqueued) => matches!(enqueued.outcome, command::Outcome::New),
    }
}

/// As a whole; once more as a whole where the fault may pass; in halves where some row is to blame, until the one
/// that is stands alone.
async fn settle(pool: &Pool, subjects: &[Subject]) -> Vec<Result<Taken, Problem>> {
    let mut open = vec![subjects];
    let mut outcomes = Vec::with_capacity(subjects.len());
    while let Some(part) = open.pop() {
        match attempt(pool, part).await {
            Ok(taken) => outcomes.extend(taken.into_iter().map(Ok)),
            Err(error) if error.fault() == Fault::Values && part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                // The last one pushed is next, so the order stays.
                open.push(second);
                open.push(first);
            }
            Err(error) if error.fault() == Fault::Values => {
                outcomes.push(alone(pool, &part[0], &error).await);
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), requests = part.len(), "answered 503");
                let problem =
                    if error.fault() == Fault::Passing { Problem::Unavailable } else { Problem::Internal };
                outcomes.extend(part.iter().map(|_| Err(problem.clone())));
            }
        }
    }
    outcomes
}

async fn attempt(pool: &Pool, subjects: &[Subject]) -> Result<Vec<Taken>, store::Error> {
    match write(pool, subjects).await {
        Err(error) if error.fault() == Fault::Passing => {
            tracing::warn!(error = chain(&error), requests = subjects.len(), "taking in once more");
            tokio::time::sleep(AGAIN).await;
            write(pool, subjects).await
        }
        outcome => outcome,
    }
}

async fn write(pool: &Pool, subjects: &[Subject]) -> Result<Vec<Taken>, store::Error> {
    let accounts: Vec<Uuid> = subjects.iter().filter_map(Subject::account).collect();
    let decide =
        |known: &Accounts| -> Vec<Item> { subjects.iter().map(|subject| subject.item(known)).collect() };
    faults::point!("gw.before_commit", store::Error::Standby);
    let taken = take_in(pool, &accounts, decide).await?;
    faults::point!("gw.after_commit", store::Error::Standby);
    Ok(taken)
}

/// A request that the database refuses for its own sake. A webhook is kept without its derived form, and where that
/// doesn't help as bytes alone; a command is refused.
async fn alone(pool: &Pool, subject: &Subject, error: &store::Error) -> Result<Taken, Problem> {
    tracing::error!(error = chain(error), "a request that cannot be stored as it is");
    let Some(bytes_alone) = subject.bytes_alone() else { return Err(Problem::NotStorable) };
    let accounts: Vec<Uuid> = subject.account().into_iter().collect();
    let without_doc = take_in(pool, &accounts, |known| vec![subject.item_without_doc(known)]).await;
    let taken = match without_doc {
        Err(error) if error.fault() == Fault::Values => take_in(pool, &[], |_| vec![bytes_alone]).await,
        outcome => outcome,
    };
    taken.ok().and_then(|taken| taken.into_iter().next()).ok_or(Problem::Internal)
}
