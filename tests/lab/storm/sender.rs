//! Sends deliveries as SnapTrade would, and reads status as a caller would.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Event, Statuses};
use crate::caller::{Caller, Reply};
use crate::connection::Settings;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of one delivery.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The sender's id.
    pub(super) id: String,
    /// The outcome's word, or what came instead of one.
    pub(super) outcome: String,
    /// The command, where there is one.
    pub(super) command_id: Option<Uuid>,
    /// How long the answer took.
    pub(super) took: Duration,
}

/// A sender before one or more gateways.
pub(super) struct Sender {
    caller: Caller,
    gateways: Vec<String>,
}

impl Sender {
    pub(super) fn new(gateways: Vec<String>, settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self { caller: Caller::new(settings, PATIENCE)?, gateways })
    }

    /// Sends all deliveries, so many at a time, and answers in their order.
    pub(super) async fn send_all(&self, events: &[Event], clients: usize) -> Vec<Answer> {
        let next = AtomicUsize::new(0);
        let client = async |_: usize| {
            let mut answers = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(event) = events.get(i) else { return answers };
                answers.push((i, self.send(event, i).await));
            }
        };
        let mut answers = futures_util::future::join_all((0..clients.max(1)).map(client)).await.concat();
        answers.sort_by_key(|(i, _)| *i);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn send(&self, event: &Event, i: usize) -> Answer {
        let began = Instant::now();
        let reply = self.caller.deliver(&self.gateways[i % self.gateways.len()], &event.body).await;
        let took = began.elapsed();
        let (outcome, command_id) = match reply {
            Reply::Accepted { outcome, command } => (outcome, command),
            Reply::Refused(status) => (status.to_string(), None),
            Reply::Unreadable => ("unreadable".to_owned(), None),
            Reply::NoAnswer => ("no answer".to_owned(), None),
        };
        Answer { id: event.id.clone(), outcome, command_id, took }
    }

    /// Reads the status of every command until it is terminal or the budget is used up.
    pub(super) async fn wait_for_ends(&self, commands: &HashSet<Uuid>, budget: Duration) -> Statuses {
        let deadline = Instant::now() + budget;
        let open = Arc::new(tokio::sync::Semaphore::new(16));
        let mut readers = JoinSet::new();
        for (i, command) in commands.iter().copied().enumerate() {
            let gateway = self.gateways[i % self.gateways.len()].clone();
            let (caller, open) = (self.caller.clone(), open.clone());
            readers.spawn(async move {
                loop {
                    let status = {
                        let _turn = open.acquire().await;
                        caller.status(&gateway, command).await
                    };
                    if status.is_some_and(contract::Status::is_terminal) || Instant::now() >= deadline {
                        let word =
                            status.map_or_else(|| "unreadable".to_owned(), |status| status.to_string());
                        return (command, word);
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
        }
        readers.join_all().await.into_iter().collect()
    }
}
