//! A worker to be harmed: it takes every way a handler can take, in a process with the same life as the shipped
//! workers. Its commands are [`lab::probe::Probe`]s.

mod act;
mod call;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use contract::{Job, Workload};
use lab::probe::Probe;
use process::{Error, WorkerOptions};
use settings::Env;

use crate::worker::{Times, Worker};

/// Works on probes. Settings come from the environment as those of the other workers do; times that would be too long
/// for a drill are arguments.
#[derive(Parser)]
#[command(name = "probe-worker", version)]
struct Args {
    /// The kind of workload whose queue to work on.
    #[arg(long, default_value_t = Probe::WORKLOAD)]
    queue: Workload,
    /// Milliseconds of a lease. Calls are shortened to fit a lease that is shorter than the contract's.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1000..))]
    lease_ms: Option<u64>,
    /// Milliseconds after which a run is ended.
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..))]
    run_deadline_ms: Option<u64>,
    /// Check settings and dependencies, print the settings masked, and exit.
    #[arg(long)]
    check: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    process::report(work(Args::parse()).await)
}

async fn work(args: Args) -> Result<(), Error> {
    let read = |env: &mut Env| WorkerOptions::read(env, args.queue);
    let (common, mut options, shown) = process::load(read)?;
    if args.check {
        return process::check(&common, &options.store, &shown).await;
    }
    let times = Times {
        lease: args.lease_ms.map(Duration::from_millis),
        run_deadline: args.run_deadline_ms.map(Duration::from_millis),
    };
    let worker = Worker::new(times.set(&mut options.queue));
    process::work(&common, options, |_| worker, process::shutdown_signal()).await
}
