//! SIGTERM and SIGINT as one cancellation token.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that the first SIGTERM or SIGINT cancels. A second one ends the process at once: somebody is in a
/// hurry, and everything that was promised is committed.
pub fn shutdown_signal() -> CancellationToken {
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        next_signal().await;
        tracing::info!("stopping");
        stop.cancel();
        next_signal().await;
        tracing::warn!("second signal: leaving at once");
        std::process::exit(1);
    });
    token
}

async fn next_signal() {
    let handlers = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = handlers else {
        tracing::error!("no signal handlers: only SIGKILL will end this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
