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
use webhook_worker::{KillbillFacts, SnaptradeSync};

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
    /// Take in what Kill Bill says about payments.
    PaymentWebhookProcessing,
    /// Fetch accounts' data from SnapTrade.
    SnaptradeAccountSync,
}

struct SyncOptions {
    worker: WorkerOptions,
    snaptrade: providers::snaptrade::Options,
    data_key: SecretBox<[u8; 32]>,
}

impl SyncOptions {
    fn read(env: &mut Env) -> Result<Self, Noted> {
        let worker = WorkerOptions::read(env, Workload::SnaptradeAccountSync);
        let snaptrade = providers::snaptrade::Options::read(env);
        let data_key = env.secret_key(&keys::DATA_KEY);
        Ok(Self { worker: worker?, snaptrade: snaptrade?, data_key: data_key? })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    process::report(match args.queue {
        Queue::PaymentWebhookProcessing => take_facts_in(args.check).await,
        Queue::SnaptradeAccountSync => sync_accounts(args.check).await,
    })
}

async fn take_facts_in(check: bool) -> Result<(), Error> {
    let read = |env: &mut Env| WorkerOptions::read(env, Workload::PaymentWebhookProcessing);
    let (common, worker, shown) = process::load(read)?;
    if check {
        return process::check(&common, &worker.store, &shown).await;
    }
    let handler = |resources: &process::Resources| KillbillFacts::new(resources.pool.clone());
    process::work(&common, worker, handler, process::shutdown_signal()).await
}

async fn sync_accounts(check: bool) -> Result<(), Error> {
    let (common, options, shown) = process::load(SyncOptions::read)?;
    if check {
        return process::check(&common, &options.worker.store, &shown).await;
    }
    let SyncOptions { worker, snaptrade, data_key } = options;
    let handler = |resources: &process::Resources| {
        let client = Client::new(snaptrade, resources.metrics.clone());
        SnaptradeSync::new(resources.pool.clone(), Sealer::new(&data_key), client)
    };
    process::work(&common, worker, handler, process::shutdown_signal()).await
}
