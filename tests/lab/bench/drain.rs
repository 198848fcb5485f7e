//! The bench `drain`: how fast one worker process ends commands that do nothing, each with all that the ledger says
//! of a command, beside the bare pgmq loop and other queues on the same server. The rounds take turns.

mod report;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use store::Pool;
use testkit::Session;
use tokio::sync::Notify;

use super::pgbench::Pgbench;
use super::work::{self, QUEUE, Worker, calm, counts, fill, is_durable, wal_bytes};
use super::{Common, cpu, peers};
use crate::connection::Settings;

pub use super::work::Counts;
pub use report::Report;

/// The loop's queue, and what each of its transactions does.
const LOOP_QUEUE: &str = "bench_loop";
const LOOP_BATCH: u32 = 100;
const LOOP: &str = "\
select array_agg(msg_id)::text as ids from pgmq.read('bench_loop', 30, 100) \\gset
select count(*) from pgmq.archive('bench_loop', :ids::bigint[])";

/// The loop's best is what counts.
const LOOP_CLIENTS: [u32; 3] = [1, 2, 4];

/// Each of the clients has as many batches as the others.
const DIVISOR: u32 = 400;

/// Measures how many commands a second one worker process ends.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many commands a round; a multiple of 400.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub n: u32,
    /// How many rounds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Runs at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub concurrency: u32,
    /// The program of which the worker is a part. Default: this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its documentation would be taken for the program's")]
    pub common: Common,
}

/// The process that works; `lab bench drain` starts it.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkerArgs {
    #[arg(long)]
    n: u32,
    #[arg(long)]
    concurrency: u32,
}

/// What one round measured.
#[derive(Clone, Debug, Default)]
struct Round {
    ours: Duration,
    /// CPU time of the worker and of all processes of the server.
    worker: Option<Duration>,
    postgres: Option<Duration>,
    wal_bytes: i64,
    /// Messages a second of the loop, by the number of clients.
    bare: BTreeMap<u32, f64>,
    peers: BTreeMap<String, Duration>,
}

/// Measures the rounds.
pub async fn measure(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    ensure!(args.n.is_multiple_of(DIVISOR), "--n has to be a multiple of {DIVISOR}");
    let mut bench = Bench::prepare(args, settings).await?;
    let mut rounds = Vec::new();
    for nth in 0..args.rounds {
        rounds.push(bench.round(args, nth).await?);
    }
    let durable = is_durable(&mut bench.server).await?;
    Ok(Report::of(args, &rounds, counts(&mut bench.server).await?, durable))
}

/// What the rounds share.
struct Bench<'a> {
    server: Session,
    settings: &'a Settings,
    url: String,
    gateway: Pool,
    pgbench: Option<Pgbench>,
}

impl<'a> Bench<'a> {
    async fn prepare(args: &Args, settings: &'a Settings) -> anyhow::Result<Self> {
        let url = settings.get("SANMOPIA_DATABASE_URL")?.to_owned();
        let pgbench = args.common.pgbench.clone().map(|program| Pgbench::new(program, &url)).transpose()?;
        Ok(Self {
            server: work::server(settings).await?,
            settings,
            url,
            gateway: work::gateway(settings)?,
            pgbench,
        })
    }

    /// Each round begins with another one.
    async fn round(&mut self, args: &Args, nth: u32) -> anyhow::Result<Round> {
        let mut round = Round::default();
        for turn in 0..3 {
            match (nth + turn) % 3 {
                0 => self.ours(args, &mut round).await.context("draining our queue")?,
                1 => self.bare(args, &mut round).await.context("draining by the bare loop")?,
                _ => self.peers(args, &mut round).await?,
            }
        }
        Ok(round)
    }

    async fn ours(&mut self, args: &Args, round: &mut Round) -> anyhow::Result<()> {
        fill(&self.gateway, args.n).await?;
        calm(&mut self.server).await?;
        let own = std::process::id();
        let usage = || (cpu::of_family(own), args.common.pid("postgres").and_then(cpu::of_family));
        let (before, lsn) = (usage(), wal_bytes(&mut self.server).await?);
        round.ours = self.worker(args).await?;
        let after = usage();
        round.wal_bytes = wal_bytes(&mut self.server).await? - lsn;
        round.worker = after.0.zip(before.0).and_then(|(after, before)| after.checked_sub(before));
        round.postgres = after.1.zip(before.1).and_then(|(after, before)| after.checked_sub(before));
        Ok(())
    }

    /// From the start of the worker's process until it says that the store holds nothing unfinished.
    async fn worker(&self, args: &Args) -> anyhow::Result<Duration> {
        let program = args.program.clone().map_or_else(std::env::current_exe, Ok).context("finding lab")?;
        let mut worker = Command::new(program);
        worker.args(["bench-drain-worker", "--n", &args.n.to_string()]);
        worker.args(["--concurrency", &args.concurrency.to_string()]);
        worker.envs(self.settings.pairs()).stdin(Stdio::null()).stdout(Stdio::piped());
        tokio::task::spawn_blocking(move || run(worker)).await.context("waiting for the worker")?
    }

    async fn bare(&mut self, args: &Args, round: &mut Round) -> anyhow::Result<()> {
        let Some(pgbench) = &self.pgbench else { return Ok(()) };
        for clients in LOOP_CLIENTS {
            self.server.execute(&loop_messages(args.n)).await.context("filling the loop's queue")?;
            calm(&mut self.server).await?;
            let transactions = args.n / LOOP_BATCH / clients;
            let per_s = pgbench.per_s_of(LOOP, clients, transactions).await?;
            let left = self.server.number(&format!("select count(*) from pgmq.q_{LOOP_QUEUE}")).await?;
            ensure!(left == 0, "the loop left {left} messages");
            round.bare.insert(clients, per_s * f64::from(LOOP_BATCH));
        }
        Ok(())
    }

    async fn peers(&mut self, args: &Args, round: &mut Round) -> anyhow::Result<()> {
        let Some(folder) = &args.common.peers else { return Ok(()) };
        let took = peers::drain(folder, &self.url, args.n).await?;
        round.peers.insert(peers::GRAPHILE.to_owned(), took);
        Ok(())
    }
}

fn run(mut worker: Command) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut worker = worker.spawn().context("starting the worker")?;
    let output = worker.stdout.take().context("the worker has no output")?;
    let mut said = String::new();
    BufReader::new(output).read_line(&mut said).context("listening to the worker")?;
    let took = began.elapsed();
    let status = worker.wait().context("waiting for the worker")?;
    ensure!(said.trim_end() == DONE && status.success(), "the worker failed ({status})");
    Ok(took)
}

/// A new queue with `n` messages as large as ours.
fn loop_messages(n: u32) -> String {
    format!(
        "select pgmq.drop_queue('{LOOP_QUEUE}') from pgmq.list_queues() where queue_name = '{LOOP_QUEUE}';
         select pgmq.create('{LOOP_QUEUE}');
         select count(*) from (select pgmq.send_batch('{LOOP_QUEUE}', array_agg(jsonb_build_object(
           'command', gen_random_uuid(), 'kind', 'bench-nothing', 'version', 1)), array_agg(jsonb_build_object(
           'traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'tracestate', '',
           'x-correlation-id', gen_random_uuid(), 'lane', 2)))
         from generate_series(1, {n}) i group by i / 1000) sent"
    )
}

/// What the worker says at its end.
const DONE: &str = "done";

/// Works until the store holds no message, and says so.
#[expect(clippy::print_stdout, reason = "this is how its parent learns of it")]
pub async fn work(args: &WorkerArgs) -> anyhow::Result<()> {
    const LIMIT: Duration = Duration::from_mins(10);
    let settings = Settings::find()?;
    let (started, all) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let worker = Worker::start(&settings, args.concurrency, {
        let (n, all) = (args.n, all.clone());
        move |_| {
            if started.fetch_add(1, Ordering::Relaxed) + 1 == n {
                all.notify_one();
            }
        }
    })?;
    let mut server = work::server(&settings).await?;
    tokio::time::timeout(LIMIT, async {
        all.notified().await;
        let left = format!("select count(*) from (select from pgmq.q_{QUEUE} limit 1) q");
        while server.number(&left).await? > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        anyhow::Ok(())
    })
    .await
    .context("the queue was not drained in time")??;
    println!("{DONE}");
    worker.stop().await.map(drop)
}
