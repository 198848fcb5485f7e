//! Works on the queues that provider webhooks fill, one queue a process.
//!
//! Read `lib.rs` next.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use contract::Workload;
use contract::env::keys;
use process::{Error, WorkerOptions};
use providers::snaptrade::Client;
use secrecy::SecretBox;
use settings::{Env, Noted};
use store::seal::Sealer;
use webhook_worker::SnaptradeSync;

/// Works on provider webhooks. Settings come from the environment: see .env.example.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The queue to work on; run one process for each.
    #[arg(long, value_enum)]
    queue: Queue,
    /// Check settings and dependencies, print the settings masked, and exit.
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Queue {
    /// Fetch accounts' data from SnapTrade.
    SnaptradeAccountSync,
}

impl Queue {
    const fn workload(self) -> Workload {
        match self {
            Self::SnaptradeAccountSync => Workload::SnaptradeAccountSync,
        }
    }
}

struct Options {
    worker: WorkerOptions,
    snaptrade: providers::snaptrade::Options,
    data_key: SecretBox<[u8; 32]>,
}

impl Options {
    fn read(env: &mut Env, workload: Workload) -> Result<Self, Noted> {
        let worker = WorkerOptions::read(env, workload);
        let snaptrade = providers::snaptrade::Options::read(env);
        let data_key = env.secret_key(&keys::DATA_KEY);
        Ok(Self { worker: worker?, snaptrade: snaptrade?, data_key: data_key? })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    process::report(run(&Args::parse()).await)
}

async fn run(args: &Args) -> Result<(), Error> {
    let (common, options, shown) = process::load(|env| Options::read(env, args.queue.workload()))?;
    if args.check {
        return process::check(&common, &options.worker.store, &shown).await;
    }
    let Options { worker, snaptrade, data_key } = options;
    let handler = |resources: &process::Resources| {
        let client = Client::new(snaptrade, resources.metrics.clone());
        SnaptradeSync::new(resources.pool.clone(), Sealer::new(&data_key), client)
    };
    process::work(&common, worker, handler, process::shutdown_signal()).await
}
