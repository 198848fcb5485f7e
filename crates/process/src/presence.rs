//! The process' row in the list of processes: there while it runs, gone when it stopped in order.

use store::Pool;
use store::process::{BEAT, Identity, beat, leave};
use telemetry::log::chain;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Who this process is, under a name of its own making.
pub fn identity(kind: &'static str, slots: u32) -> Identity {
    Identity {
        id: format!("{kind}-{}", Uuid::now_v7().simple()),
        kind,
        version: env!("CARGO_PKG_VERSION"),
        host: host(),
        pid: std::process::id(),
        queue: None,
        slots,
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}

/// Shows the process until `gone`, then takes its row away.
pub(crate) async fn show(pool: Pool, identity: Identity, gone: CancellationToken) {
    let mut was_shown = true;
    loop {
        match beat(&pool, &identity).await {
            Ok(()) => was_shown = true,
            Err(error) if was_shown => {
                tracing::warn!(error = chain(&error), "not in the list of processes for the moment");
                was_shown = false;
            }
            Err(_) => {}
        }
        if gone.run_until_cancelled(tokio::time::sleep(BEAT)).await.is_none() {
            break;
        }
    }
    if let Err(error) = leave(&pool, &identity.id).await {
        tracing::warn!(error = chain(&error), "staying in the list of processes");
    }
}
