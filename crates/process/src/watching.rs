//! The elected job `watch`: what the database as a whole looks like, as metrics of one process for all.

use std::sync::Arc;

use store::session::{Sessions, look};
use store::{Pool, payment, process};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio_util::sync::CancellationToken;

use crate::elected::{Elected, TERM};

/// A transaction that is open for longer is named in the log: the queues' dead rows stay for as long.
const LONG_SECONDS: f64 = 300.0;

/// Samples while elected, until `stop`.
pub(crate) async fn watch(pool: Pool, name: String, metrics: Arc<Metrics>, stop: CancellationToken) {
    let mut elected = Elected::new(pool.clone(), "watch", name);
    let mut named = None;
    loop {
        if elected.is_holder().await {
            match sample(&pool, &metrics).await {
                Ok(sessions) => named = name_the_oldest(&sessions, named),
                Err(error) => {
                    forget(&metrics);
                    tracing::warn!(error = chain(&error), "not watching the database this time");
                }
            }
        } else {
            forget(&metrics);
        }
        if stop.run_until_cancelled(tokio::time::sleep(TERM)).await.is_none() {
            break;
        }
    }
    forget(&metrics);
    elected.give_back().await;
}

async fn sample(pool: &Pool, metrics: &Metrics) -> Result<Sessions, store::Error> {
    let sessions = look(pool).await?;
    let processes = process::list(pool).await?;
    let to_reconcile = payment::to_reconcile(pool).await?;
    forget(metrics);
    let none: &[&str] = &[];
    let oldest = sessions.oldest().map_or(0.0, |(_, held)| held);
    metrics.oldest_snapshot_seconds.with_label_values(none).set(whole(oldest));
    metrics.oldest_snapshot_transactions.with_label_values(none).set(sessions.oldest_transactions().into());
    metrics.idle_in_transaction_seconds.with_label_values(none).set(whole(sessions.longest_idle_seconds()));
    metrics.payments_to_reconcile.with_label_values(none).set(to_reconcile);
    for table in &sessions.dead_rows {
        metrics.dead_rows.with_label_values(&[&table.table]).set(table.dead);
    }
    for (workload, workers) in process::workers(&processes) {
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        metrics.live_workers.with_label_values(&[workload.queue().name]).set(workers);
    }
    Ok(sessions)
}

/// Of a process that is no longer the holder, and of a table that is gone, no old number may stay.
fn forget(metrics: &Metrics) {
    for gauge in [
        &metrics.oldest_snapshot_seconds,
        &metrics.oldest_snapshot_transactions,
        &metrics.idle_in_transaction_seconds,
        &metrics.dead_rows,
        &metrics.live_workers,
        &metrics.payments_to_reconcile,
    ] {
        gauge.reset();
    }
}

/// Names who has had a transaction open for long, once each; the statement is for `spillway doctor` alone.
fn name_the_oldest(sessions: &Sessions, named: Option<i32>) -> Option<i32> {
    let (holder, seconds) = sessions.oldest().filter(|(_, seconds)| *seconds >= LONG_SECONDS)?;
    if holder.pid.is_none() || holder.pid != named {
        tracing::error!(
            kind = holder.kind,
            pid = holder.pid,
            login = holder.login,
            application = holder.application,
            state = holder.state,
            seconds = whole(seconds),
            transactions = holder.transactions,
            "an open transaction keeps dead rows from being removed"
        );
    }
    holder.pid
}

#[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest number")]
const fn whole(seconds: f64) -> i64 {
    seconds as i64
}
