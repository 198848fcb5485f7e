//! Settles successes without an effect, many in one statement: while one statement runs, finished runs gather and go
//! together in the next.

use std::sync::Arc;

use store::ledger::{Done, succeed};
use store::{Fault, Pool};
use telemetry::log::chain;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Successes of one statement.
const MOST: usize = 500;

/// Statements under way at a time.
const IN_FLIGHT: u32 = 2;

/// Successes that are worth a statement beside another one.
const MANY: usize = 250;

/// Why a success could not be written.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) fault: Fault,
    pub(crate) chain: String,
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Self {
        Self { fault: error.fault(), chain: chain(&error) }
    }
}

/// The way to settle.
#[derive(Clone)]
pub(crate) struct Ticker {
    sender: mpsc::UnboundedSender<Pending>,
    room: Arc<Semaphore>,
}

struct Pending {
    done: Done,
    answer: oneshot::Sender<Result<bool, Trouble>>,
}

impl Ticker {
    /// Starts. So many runs may wait for their settlement beside those that are at work.
    pub(crate) fn start(pool: Pool, queue: &'static str, room: usize) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(gather(receiver, pool, queue));
        Self { sender, room: Arc::new(Semaphore::new(room)) }
    }

    /// A place to wait for settlement.
    pub(crate) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().acquire_owned().await.ok()
    }

    /// Settles. False where the lease had gone.
    pub(crate) async fn settle(&self, done: Done) -> Result<bool, Trouble> {
        let ended = || Trouble { fault: Fault::Other, chain: "the settling task has ended".to_owned() };
        let (answer, answered) = oneshot::channel();
        self.sender.send(Pending { done, answer }).map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// The first statement takes what there is. While it is under way, another one begins only with many, so that what
/// gathers costs less.
async fn gather(mut waiting: mpsc::UnboundedReceiver<Pending>, pool: Pool, queue: &'static str) {
    let slots = Arc::new(Semaphore::new(IN_FLIGHT as usize));
    let (mut batch, mut is_open) = (Vec::with_capacity(MOST), true);
    while is_open || !batch.is_empty() {
        let gathered = batch.len();
        let needed = if gathered < MANY { IN_FLIGHT } else { 1 };
        tokio::select! {
            biased;
            received = waiting.recv_many(&mut batch, MOST - gathered), if is_open && gathered < MOST => {
                is_open = received > 0;
            }
            slots = slots.clone().acquire_many_owned(needed), if gathered > 0 => {
                let Some(slot) = slots.ok().and_then(|mut slots| slots.split(1)) else { return };
                let (batch, pool) = (std::mem::replace(&mut batch, Vec::with_capacity(MOST)), pool.clone());
                tokio::spawn(async move {
                    settle(&pool, queue, batch).await;
                    drop(slot);
                });
            }
        }
    }
}

/// As a whole, or in halves where some row is to blame, until the one that is stands alone.
async fn settle(pool: &Pool, queue: &'static str, batch: Vec<Pending>) {
    let mut open = vec![batch];
    while let Some(mut part) = open.pop() {
        let runs: Vec<Done> = part.iter().map(|pending| pending.done.clone()).collect();
        match succeed(pool, queue, &runs).await {
            Ok(settled) => {
                let settled: std::collections::HashSet<i64> = settled.into_iter().collect();
                for pending in part {
                    let is_ours = settled.contains(&pending.done.fence.msg_id);
                    let _ = pending.answer.send(Ok(is_ours));
                }
            }
            Err(error) if error.fault() == Fault::Values && part.len() > 1 => {
                let second = part.split_off(part.len() / 2);
                open.extend([second, part]);
            }
            Err(error) => {
                let trouble = Trouble::from(error);
                for pending in part {
                    let _ = pending.answer.send(Err(trouble.clone()));
                }
            }
        }
    }
}
