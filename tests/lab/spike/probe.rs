//! Reads the status of commands at a steady pace, whatever the answers do, as a page that people look at would.

use std::sync::Arc;
use std::time::Duration;

use testkit::Dice;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::clock::Clock;
use super::history::Read;
use super::tally::Tally;
use crate::caller::Caller;
use crate::figures::milliseconds;

/// Twenty reads a second.
const PAUSE: Duration = Duration::from_millis(50);

/// A read after this time is one too many: it counts as unanswered.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Clone)]
pub(super) struct Probe {
    pub(super) caller: Caller,
    pub(super) gateways: Vec<String>,
    pub(super) clock: Clock,
    pub(super) tally: Arc<Tally>,
    /// What is read while no command of the drill is known.
    pub(super) command: Uuid,
}

impl Probe {
    /// Reads until `stop`.
    pub(super) async fn read(self, seed: u64, stop: CancellationToken) -> Vec<Read> {
        let mut dice = Dice::new("status reads", &[seed]);
        let mut reads = JoinSet::new();
        let mut due = Instant::now();
        let mut nth = 0;
        while stop.run_until_cancelled(tokio::time::sleep_until(due)).await.is_some() {
            let command = self.tally.some_command(dice.bits()).unwrap_or(self.command);
            reads.spawn(self.clone().read_one(command, due, nth));
            (due, nth) = (due + PAUSE, nth + 1);
        }
        let mut reads = reads.join_all().await;
        reads.sort_by(|one, other| one.due_ms.total_cmp(&other.due_ms));
        reads
    }

    /// A gateway that does not answer is followed by the next one, as behind a load balancer; the time goes on.
    async fn read_one(self, command: Uuid, due: Instant, nth: usize) -> Read {
        let due_ms = self.clock.now_ms() - milliseconds(due.elapsed());
        let answer = async {
            for i in 0..self.gateways.len() {
                let gateway = &self.gateways[(nth + i) % self.gateways.len()];
                if self.caller.status(gateway, command).await.is_some() {
                    return true;
                }
            }
            false
        };
        let answered = tokio::time::timeout_at(due + PATIENCE, answer).await.unwrap_or(false);
        Read { due_ms, took: answered.then(|| due.elapsed()) }
    }
}
