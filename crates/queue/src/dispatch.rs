//! One bounded round of claims on demand, for schedulers that call instead of letting a worker look for itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use store::queue::{Ask, claim, due};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::handler::Handler;
use crate::run::course_of;
use crate::runner::Machine;
use crate::settle::Outcome;

/// A dispatch ends by then, whatever still runs.
const BOUND: Duration = Duration::from_secs(25);

/// Counted this far.
const MOST_COUNTED: u32 = 100_000;

/// What one dispatch came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dispatched {
    /// The workload's kind.
    pub workload: &'static str,
    /// Messages it took.
    pub claimed: u32,
    /// Those of them that succeeded.
    pub succeeded: u32,
    /// That failed and will be tried again.
    pub retried: u32,
    /// Whose turn it is not.
    pub not_yet: u32,
    /// That were given up.
    pub dead_lettered: u32,
    /// Messages that are due and wait.
    pub remaining: u64,
    /// How long it took.
    pub ms: u64,
}

/// Why there was no dispatch.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Another one is under way.
    #[error("a dispatch of this workload is under way")]
    UnderWay,
    /// The worker is starting.
    #[error("the worker is not ready")]
    NotReady,
    /// The database did not answer.
    #[error("claiming messages")]
    Database(#[source] store::Error),
}

/// Runs dispatches; what the internal listener needs of a runner.
pub trait Dispatch: Send + Sync + 'static {
    /// Claims as many messages as there are free slots, runs them, and answers when they have ended or after 25 s.
    fn dispatch(&self) -> impl Future<Output = Result<Dispatched, Busy>> + Send;
}

/// See [`Dispatch`].
pub struct Dispatcher<H> {
    machine: Arc<Machine<H>>,
    one_at_a_time: Arc<Mutex<()>>,
}

impl<H> Clone for Dispatcher<H> {
    fn clone(&self) -> Self {
        Self { machine: self.machine.clone(), one_at_a_time: self.one_at_a_time.clone() }
    }
}

impl<H: Handler> Dispatcher<H> {
    pub(crate) fn new(machine: Arc<Machine<H>>) -> Self {
        Self { machine, one_at_a_time: Arc::default() }
    }

    async fn claim_and_run(&self, runs: &mut JoinSet<Outcome>) -> Result<u32, Busy> {
        let machine = &self.machine;
        let options = &machine.means.options;
        let mut slots = Vec::new();
        while let Ok(slot) = machine.slots.clone().try_acquire_owned() {
            slots.push(slot);
        }
        if slots.is_empty() {
            return Ok(0);
        }
        let sent = Instant::now();
        let ask = Ask::up_to(u32::try_from(slots.len()).unwrap_or(u32::MAX));
        let claims = claim(&machine.means.pool, &options.queue(), &ask).await.map_err(Busy::Database)?;
        let mut started = 0;
        for (message, slot) in claims.messages.into_iter().zip(slots) {
            // The claim loop sees to those that have to run alone.
            if course_of(options.workload, &message) == policy::crash::Course::Alone {
                machine.hand_back(&message, Duration::ZERO).await;
            } else {
                started += 1;
                let run = machine.dispatched.spawn(machine.start(message, slot, sent));
                runs.spawn(async move { run.await.unwrap_or("lost") });
            }
        }
        Ok(started)
    }
}

impl<H: Handler> Dispatch for Dispatcher<H> {
    async fn dispatch(&self) -> Result<Dispatched, Busy> {
        let _turn = self.one_at_a_time.try_lock().map_err(|_| Busy::UnderWay)?;
        if !self.machine.is_working() {
            return Err(Busy::NotReady);
        }
        let (began, options) = (Instant::now(), &self.machine.means.options);
        let mut runs = JoinSet::new();
        let mut answer = Dispatched { workload: options.workload.kind(), ..Dispatched::default() };
        answer.claimed = self.claim_and_run(&mut runs).await?;
        let counted = async {
            while let Some(outcome) = runs.join_next().await {
                let counter = match outcome.unwrap_or("lost") {
                    "succeeded" => &mut answer.succeeded,
                    "retried" => &mut answer.retried,
                    "not_yet" => &mut answer.not_yet,
                    "dead_lettered" => &mut answer.dead_lettered,
                    _ => continue,
                };
                *counter += 1;
            }
        };
        let _ = tokio::time::timeout(BOUND, counted).await;
        // What is not done by now goes on: only the answer doesn't wait for it.
        let remaining = due(&self.machine.means.pool, &options.queue(), MOST_COUNTED).await;
        answer.remaining = remaining.map_err(Busy::Database)?;
        answer.ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(answer)
    }
}
