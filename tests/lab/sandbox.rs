//! `lab sandbox`: the provider sandbox as a program of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use testkit::sandbox::killbill::{Callback, Habits};
use testkit::sandbox::{Config, Roster, Sandbox};

use crate::connection::Settings;

/// The tenant of ours whose payments happen.
const TENANT: &str = "main";

/// Plays the outside providers. What it shares with the platform comes from the platform's settings: SnapTrade's client
/// id and key, the gateway's internal address and the token of Kill Bill's callback.
///
/// `POST /sandbox/killbill/payments` with `{"payments":20}` lets payments happen at Kill Bill, which then tells of them.
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
    /// What Kill Bill's pauses between two tries are multiplied with; they are 15 minutes to a day.
    #[arg(long, default_value_t = 0.001)]
    killbill_pace: f64,
    /// The share of notifications that Kill Bill sends twice.
    #[arg(long, default_value_t = 0.1)]
    killbill_duplicates: f64,
    /// The share of answers that come too late for Kill Bill.
    #[arg(long, default_value_t = 0.05)]
    killbill_late_answers: f64,
    /// By how many places a notification of Kill Bill may fall behind.
    #[arg(long, default_value_t = 20)]
    killbill_disorder: u32,
    /// How long every call takes at least, in milliseconds.
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Decides what the accounts hold, whom a fault hits, and which payments happen.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = Settings::find()?;
    let roster = args.snaptrade_users.as_deref().map(Roster::read).transpose()?.unwrap_or_default();
    let gateway = settings.url_of_listener("SANMOPIA_GATEWAY_INTERNAL_LISTEN")?;
    let callback = Callback {
        url: format!("{gateway}/webhooks/killbill/{TENANT}"),
        admission: settings.get("SANMOPIA_KILLBILL_ADMISSION_TOKEN")?.to_owned(),
    };
    let habits = Habits {
        pace: args.killbill_pace,
        duplicates: args.killbill_duplicates,
        late_answers: args.killbill_late_answers,
        disorder: args.killbill_disorder,
        at_once: 8,
    };
    let config = Config {
        listen: args.listen,
        client_id: settings.get("SANMOPIA_SNAPTRADE_CLIENT_ID")?.to_owned(),
        consumer_key: settings.get("SANMOPIA_SNAPTRADE_CONSUMER_KEY")?.to_owned(),
        quota_per_minute: args.quota_per_minute,
        record: args.record,
        users: roster.users,
        killbill: Some((callback, habits)),
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
