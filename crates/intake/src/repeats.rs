//! Counts deliveries that started nothing of their own, and writes the counts once a second, off the answer path.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use store::Pool;
use store::inbox::{Outcome, Receipt};
use store::repeat::{Kind, Repeat, note};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// How often the counts are written.
const FLUSH: Duration = Duration::from_secs(1);

/// What may wait for the next write; statistics must not grow without a bound while the database is away.
const MOST_WAITING: usize = 20_000;

/// Rows of one write.
const A_WRITE: usize = 1000;

/// The way into the statistics.
#[derive(Clone)]
pub(crate) struct Repeats {
    sender: mpsc::Sender<Repeat>,
    metrics: Arc<Metrics>,
}

impl Repeats {
    /// Starts. It ends, with a last write, when every clone is gone.
    pub(crate) fn start(pool: Pool, metrics: Arc<Metrics>) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        tokio::spawn(flush(receiver, pool, metrics.clone()));
        Self { sender, metrics }
    }

    /// Counts a delivery, if it started nothing.
    pub(crate) fn count(&self, receipt: &Receipt, correlation_id: &str) {
        let kind = match receipt.outcome {
            Outcome::Duplicate => Kind::Duplicate,
            Outcome::Coalesced => Kind::Coalesced,
            Outcome::Queued | Outcome::Quarantined => return,
        };
        let (inbox_id, correlation_id) = (receipt.counted_under, correlation_id.to_owned());
        let repeat = Repeat { inbox_id, kind, at: Utc::now(), correlation_id };
        if let Err(TrySendError::Full(_) | TrySendError::Closed(_)) = self.sender.try_send(repeat) {
            self.metrics.repeats_dropped.with_label_values::<&str>(&[]).inc();
        }
    }
}

async fn flush(mut receiver: mpsc::Receiver<Repeat>, pool: Pool, metrics: Arc<Metrics>) {
    let mut repeats = Vec::with_capacity(A_WRITE);
    while receiver.recv_many(&mut repeats, A_WRITE).await > 0 {
        if let Err(error) = note(&pool, &repeats).await {
            tracing::warn!(
                error = chain(&error),
                lost = repeats.len(),
                "writing statistics of repeated deliveries"
            );
            let lost = u64::try_from(repeats.len()).unwrap_or(u64::MAX);
            metrics.repeats_dropped.with_label_values::<&str>(&[]).inc_by(lost);
        }
        repeats.clear();
        if receiver.len() < A_WRITE && !receiver.is_closed() {
            tokio::time::sleep(FLUSH).await;
        }
    }
}
