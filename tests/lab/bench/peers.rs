//! Queues of others, each a small program beside `lab`. A peer that was not installed is not measured.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Graphile Worker as its own performance test sets it.
pub(super) const GRAPHILE: &str = "graphile-worker-local-queue";

/// What a drain came to.
#[derive(Deserialize)]
struct Drain {
    ms: f64,
    handled: u32,
}

/// What a bench of latency came to.
#[derive(Deserialize)]
struct Latency {
    waits: Vec<f64>,
}

/// How long Graphile Worker takes for `n` jobs that do nothing.
pub(super) async fn drain(folder: &Path, server: &str, n: u32) -> anyhow::Result<Duration> {
    let Drain { ms, handled } = graphile(folder, server, "drain", n).await?;
    ensure!(handled == n, "{GRAPHILE} ran {handled} jobs of {n}");
    Ok(Duration::from_secs_f64(ms / 1000.0))
}

/// How long each of so many jobs waits for its start in an idle Graphile Worker.
pub(super) async fn latency(folder: &Path, server: &str, samples: u32) -> anyhow::Result<Vec<Duration>> {
    let Latency { waits } = graphile(folder, server, "latency", samples).await?;
    Ok(waits.into_iter().map(|ms| Duration::from_secs_f64(ms / 1000.0)).collect())
}

async fn graphile<T: DeserializeOwned>(
    folder: &Path,
    server: &str,
    what: &str,
    number: u32,
) -> anyhow::Result<T> {
    let mut node = Command::new("node");
    node.arg("graphile.mjs").args([what, &number.to_string()]).current_dir(folder);
    node.env("PEER_POSTGRES", server).stderr(Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || node.output()).await.context("waiting for node")?;
    let output = output.context("starting node")?;
    ensure!(output.status.success(), "{GRAPHILE} failed ({})", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("reading the answer of {GRAPHILE}"))
}
