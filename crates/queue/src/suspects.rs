//! Messages that may take their process down: one at a time, with nothing else at work.
//!
//! One process of a queue at a time runs suspects alone, so that the others go on with what is innocent; and this one
//! never runs two in a row while other work is due.

use std::time::{Duration, Instant};

use contract::Workload;
use policy::crash::Course;
use store::queue::Claimed;
use store::suspect::take_place;
use telemetry::log::chain;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::handler::Handler;
use crate::run::course_of;
use crate::runner::{Machine, jittered};
use crate::settle::Outcome;

/// How long a suspect that can't have its turn stays away.
const PAUSE: Duration = Duration::from_secs(2);

/// A claimed message with its slot.
type Slotted = (Claimed, OwnedSemaphorePermit);

/// What a process remembers of its suspects.
#[derive(Default)]
pub(crate) struct Suspects {
    last_was_alone: bool,
}

/// Parts those that run beside others from those that run alone.
pub(crate) fn part(
    workload: Workload,
    claimed: impl Iterator<Item = Slotted>,
) -> (Vec<Slotted>, Vec<Slotted>) {
    claimed.partition(|(message, _)| course_of(workload, message) != Course::Alone)
}

impl Suspects {
    /// Runs the first of the suspects alone and hands the others back. `is_all` says that nothing else was due.
    pub(crate) async fn attend<H: Handler>(
        &mut self,
        machine: &Machine<H>,
        suspects: Vec<Slotted>,
        is_all: bool,
        sent: Instant,
        stop: &CancellationToken,
        runs: &mut JoinSet<Outcome>,
    ) {
        let mut suspects = suspects.into_iter();
        let first = suspects.next();
        for (other, _slot) in suspects {
            machine.hand_back(&other, jittered(PAUSE)).await;
        }
        let Some((message, slot)) = first else {
            self.last_was_alone = false;
            return;
        };
        if (self.last_was_alone && !is_all) || !has_place(machine, &message).await {
            self.last_was_alone = false;
            machine.hand_back(&message, jittered(PAUSE)).await;
            return;
        }
        self.last_was_alone = true;
        // Its heartbeat begins here; it starts when the others have ended.
        let run = machine.start(message.clone(), slot, sent);
        let others = async { while runs.join_next().await.is_some() {} };
        if stop.run_until_cancelled(others).await.is_none() {
            drop(run);
            machine.hand_back(&message, Duration::ZERO).await;
            return;
        }
        runs.spawn(run);
        stop.run_until_cancelled(async { while runs.join_next().await.is_some() {} }).await;
    }
}

async fn has_place<H: Handler>(machine: &Machine<H>, message: &Claimed) -> bool {
    take_place(&machine.means.pool, message.fence).await.unwrap_or_else(|error| {
        machine.count_error("take_place");
        tracing::warn!(error = chain(&error), "asking for the place of a run alone");
        false
    })
}
