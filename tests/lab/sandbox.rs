//! `lab sandbox`: the provider sandbox as a program of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use testkit::sandbox::{Config, Roster, Sandbox};

use crate::connection::Settings;

/// Plays the outside providers. Client id and key come from the platform's settings.
#[derive(clap::Args)]
pub struct Args {
    /// Where to listen.
    #[arg(long)]
    listen: SocketAddr,
    /// Append every call to this file, a JSON line each.
    #[arg(long)]
    record: Option<PathBuf>,
    /// SnapTrade users that are known from the start, as `spillway load snaptrade` takes them.
    #[arg(long)]
    snaptrade_users: Option<PathBuf>,
    /// SnapTrade calls allowed in any 60 seconds.
    #[arg(long, default_value_t = 4000)]
    quota_per_minute: u32,
    /// How long every call takes at least, in milliseconds.
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Decides what the accounts hold and whom a fault hits.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = Settings::find()?;
    let roster = args.snaptrade_users.as_deref().map(Roster::read).transpose()?.unwrap_or_default();
    let config = Config {
        listen: args.listen,
        client_id: settings.get("SANMOPIA_SNAPTRADE_CLIENT_ID")?.to_owned(),
        consumer_key: settings.get("SANMOPIA_SNAPTRADE_CONSUMER_KEY")?.to_owned(),
        quota_per_minute: args.quota_per_minute,
        record: args.record,
        users: roster.users,
        latency: Duration::from_millis(args.latency_ms),
        seed: args.seed,
    };
    let sandbox = Sandbox::start(config).await?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("waiting for SIGTERM")?;
    tokio::select! {
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted.context("waiting for Ctrl-C")?,
    }
    sandbox.stop().await;
    Ok(())
}
