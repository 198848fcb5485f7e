//! Waiting for something that happens by itself, with a budget instead of a sleep.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks again and again until `probe` answers something, and panics with `what` once `budget` is used up.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    budget: Duration,
    mut probe: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + budget;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {budget:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
