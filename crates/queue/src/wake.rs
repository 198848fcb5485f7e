//! Hears the calls of whoever puts messages in, so that an idle worker starts at once. It may hear none: then the
//! claim loop finds its work by looking.

use std::sync::Arc;
use std::time::Duration;

use contract::QueueSpec;
use store::wake::Listener;
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The pause before listening anew.
const AGAIN: Duration = Duration::from_secs(2);

/// How long the database may take to show that it is there.
const PROOF: Duration = Duration::from_secs(5);

/// Listens until `stop`, and wakes whoever waits for `call`; where nobody can listen, it ends at once.
pub(crate) async fn listen(
    options: store::Options,
    queue: QueueSpec,
    call: Arc<Notify>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    if !options.can_listen() {
        tracing::info!(
            queue = queue.name,
            "behind a transaction pooler; looking for work instead of listening"
        );
        return;
    }
    stop.run_until_cancelled(async {
        loop {
            if let Err(error) = hear(&options, queue.name, &call).await {
                metrics.loop_errors.with_label_values(&[queue.name, "listen"]).inc();
                tracing::warn!(
                    queue = queue.name,
                    error = chain(&error),
                    "calls may be missed; looking instead"
                );
            }
            tokio::time::sleep(AGAIN).await;
        }
    })
    .await;
}

async fn hear(options: &store::Options, queue: &'static str, call: &Notify) -> Result<(), store::Error> {
    let mut listener = Listener::start(options, queue).await?;
    loop {
        // What came before it listened was not heard.
        call.notify_one();
        listener.heard(PROOF).await?;
    }
}
