//! Work that does nothing, for benches of the queue itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use contract::{Actor, Job, NewCommand, Verdict, Workload};
use queue::{Handler, Lease, Options, Runner};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::intake::{Item, take_in};
use store::{Effect, Pool};
use telemetry::Metrics;
use testkit::Session;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::connection::Settings;

/// Whose queue the benches use.
pub(super) const WORKLOAD: Workload = Workload::NotificationDispatch;

/// Its table, without the prefix that says which one.
pub(super) const QUEUE: &str = WORKLOAD.queue().name;

/// Commands of one transaction.
const BATCH: u32 = 500;

/// A command that asks for nothing, as large as a small one is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Nothing {
    pub(super) n: u32,
    note: String,
}

impl Job for Nothing {
    const WORKLOAD: Workload = WORKLOAD;
    const KIND: &'static str = "bench-nothing";
    const VERSION: u32 = 1;
}

/// Does nothing, and tells which one it was.
struct Idle<F>(F);

impl<F: Fn(u32) + Send + Sync + 'static> Handler for Idle<F> {
    type Job = Nothing;

    async fn handle(&self, job: &Nothing, _: &Lease) -> Verdict<Effect> {
        (self.0)(job.n);
        Verdict::Done(Effect::None)
    }
}

/// The `n`th command.
pub(super) fn command(n: u32) -> Item {
    let id = Uuid::now_v7();
    Item::Command(Box::new(NewCommand {
        id,
        workload: WORKLOAD,
        kind: Nothing::KIND,
        version: Nothing::VERSION,
        idempotency_key: id.to_string(),
        payload: json!(Nothing { n, note: "x".repeat(80) }),
        actor: Actor::provider("bench"),
        class: WORKLOAD.spec().class,
        not_before: None,
        snapshots: Vec::new(),
        expected_revision: None,
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
        tracestate: String::new(),
        correlation_id: id.to_string(),
    }))
}

/// Puts `n` commands in, as the gateway does.
pub(super) async fn fill(pool: &Pool, n: u32) -> anyhow::Result<()> {
    for first in (0..n).step_by(BATCH as usize) {
        let items = (first..n.min(first + BATCH)).map(command).collect();
        take_in(pool, &[], |_| items).await.context("putting commands in")?;
    }
    Ok(())
}

/// Puts the tables and the server in the same state before each measurement.
pub(super) async fn calm(server: &mut Session) -> anyhow::Result<()> {
    server.execute("vacuum (analyze)").await.context("vacuuming")?;
    server.execute("checkpoint").await.context("writing a checkpoint")
}

/// Whether a commit that was told survives whatever happens to the server.
pub(super) async fn is_durable(server: &mut Session) -> anyhow::Result<bool> {
    let on = "select count(*) from pg_settings
        where name in ('fsync', 'synchronous_commit', 'full_page_writes') and setting = 'on'";
    Ok(server.number(on).await.context("asking for the server's settings")? == 3)
}

/// Bytes of the write-ahead log so far.
pub(super) async fn wal_bytes(server: &mut Session) -> anyhow::Result<i64> {
    let written = "select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint";
    server.number(written).await.context("asking how much was written")
}

/// What became of all commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Ended in success by one run.
    pub succeeded_once: i64,
    /// Anything else.
    pub otherwise: i64,
    /// Messages in the archive.
    pub archived: i64,
    /// Messages in the queue.
    pub left: i64,
}

/// Counts them.
pub(super) async fn counts(server: &mut Session) -> anyhow::Result<Counts> {
    let kind = Nothing::KIND;
    // A worker that stops may have claimed a message and given it back untouched: then there are more outcomes.
    let once = "status = 'succeeded' and attempts = 1 and crashes = 0";
    let mut count =
        async |from: String| server.number(&format!("select count(*) from {from}")).await.context("counting");
    Ok(Counts {
        succeeded_once: count(format!("spillway.command where kind = '{kind}' and {once}")).await?,
        otherwise: count(format!("spillway.command where kind = '{kind}' and not ({once})")).await?,
        archived: count(format!("pgmq.a_{QUEUE}")).await?,
        left: count(format!("pgmq.q_{QUEUE}")).await?,
    })
}

/// A connection with all rights.
pub(super) async fn server(settings: &Settings) -> anyhow::Result<Session> {
    let url = settings.get("SANMOPIA_DATABASE_URL")?;
    Session::connect(url).await.context("connecting to the server")
}

/// Connections with the gateway's rights.
pub(super) fn gateway(settings: &Settings) -> anyhow::Result<Pool> {
    pool(&options(settings, "SANMOPIA_GATEWAY_DATABASE_URL")?)
}

/// Connections with a worker's rights.
pub(super) fn worker(settings: &Settings) -> anyhow::Result<Pool> {
    pool(&options(settings, "SANMOPIA_WORKER_DATABASE_URL")?)
}

fn pool(options: &store::Options) -> anyhow::Result<Pool> {
    Pool::prepare(options, "bench", options.size).context("preparing connections")
}

/// Without a URL of its own a role's programs use the common one.
fn options(settings: &Settings, key: &str) -> anyhow::Result<store::Options> {
    const CONNECTIONS: u32 = 4;
    let url = settings.get(key).or_else(|_| settings.get("SANMOPIA_DATABASE_URL"))?;
    Ok(store::Options::of_url(url, CONNECTIONS).with_deadline(Duration::from_mins(2)))
}

/// A worker in this process.
pub(super) struct Worker {
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), queue::Error>>,
}

impl Worker {
    /// Starts one that looks for work as it does in production, and tells of each start.
    pub(super) fn start(
        settings: &Settings,
        concurrency: u32,
        started: impl Fn(u32) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let beats = options(settings, "SANMOPIA_WORKER_DATABASE_URL")?;
        let metrics = Arc::new(Metrics::new(WORKLOAD.spec().worker, env!("CARGO_PKG_VERSION")));
        let options = Options { concurrency, ..Options::of(WORKLOAD) };
        let health = probes::Health::new();
        let runner = Runner::new(options, pool(&beats)?, beats, Idle(started), metrics.clone(), health);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let task = tokio::spawn(async move { runner.run_until(token).await });
        Ok(Self { metrics, stop, task })
    }

    /// Commands that it has brought to a good end.
    pub(super) fn succeeded(&self) -> u64 {
        succeeded(&self.metrics)
    }

    /// Lets it finish, and answers how many commands it has brought to a good end.
    pub(super) async fn stop(self) -> anyhow::Result<u64> {
        self.stop.cancel();
        self.task.await.context("waiting for the worker")?.context("working")?;
        Ok(succeeded(&self.metrics))
    }
}

fn succeeded(metrics: &Metrics) -> u64 {
    metrics.runs.with_label_values(&[QUEUE, "succeeded"]).get()
}
