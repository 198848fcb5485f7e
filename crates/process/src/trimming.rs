//! The elected job `trim`: ends rows that are past their time, in small batches, a round every few minutes.

use std::sync::Arc;
use std::time::Duration;

use policy::trim::{FIRST, Pace, after_failure, after_success};
use store::Pool;
use store::retention::{Mode, Rule, batch, rules};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::elected::{Elected, TERM};

/// From the end of a round to the next.
const ROUND: Duration = Duration::from_mins(10);

/// Failures of one rule after which the round goes on with the next: what one table refuses must not keep the
/// others full.
const PATIENCE: u32 = 3;

/// Trims while elected, until `stop`.
pub(crate) async fn trim(pool: Pool, name: String, metrics: Arc<Metrics>, stop: CancellationToken) {
    let mut elected = Elected::new(pool.clone(), "trim", name);
    let mut next_round = Instant::now();
    loop {
        if elected.is_holder().await && next_round <= Instant::now() {
            stop.run_until_cancelled(round(&pool, &mut elected, &metrics)).await;
            next_round = Instant::now() + ROUND;
        }
        if stop.run_until_cancelled(tokio::time::sleep(TERM)).await.is_none() {
            break;
        }
    }
    elected.give_back().await;
}

async fn round(pool: &Pool, elected: &mut Elected, metrics: &Metrics) {
    match rules(pool).await {
        Ok(rules) => {
            for rule in &rules {
                trim_one(pool, rule, elected, metrics).await;
            }
        }
        Err(error) => tracing::warn!(error = chain(&error), "not trimming this time"),
    }
}

async fn trim_one(pool: &Pool, rule: &Rule, elected: &mut Elected, metrics: &Metrics) {
    let (mut limit, mut after, mut removed, mut failures) = (FIRST, None, 0_u64, 0);
    while failures < PATIENCE && elected.is_holder().await {
        let began = Instant::now();
        let outcome = batch(pool, &rule.rule, after, limit, Mode::Remove).await;
        let pace: Pace = match outcome {
            Ok(done) => {
                removed += u64::from(done.past);
                metrics.trimmed.with_label_values(&[&rule.rule]).inc_by(done.past.into());
                if done.is_last {
                    break;
                }
                after = done.reached;
                after_success(limit, began.elapsed())
            }
            Err(error) => {
                tracing::warn!(rule = rule.rule, error = chain(&error), "trimming failed; trying again");
                failures += 1;
                after_failure(limit)
            }
        };
        limit = pace.limit;
        tokio::time::sleep(pace.pause).await;
    }
    if removed > 0 {
        tracing::info!(rule = rule.rule, removed, "trimmed");
    }
}
