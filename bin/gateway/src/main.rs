//! Takes webhooks and commands in, answers status reads.
//!
//! Read `lib.rs` next.

use std::process::ExitCode;

use clap::Parser;
use gateway::{Gateway, Options};
use process::Error;

/// Takes webhooks and commands in, answers status reads. Settings come from the environment: see .env.example.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Check settings and dependencies, print the settings masked, and exit.
    #[arg(long)]
    check: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    process::report(run(&Args::parse()).await)
}

async fn run(args: &Args) -> Result<(), Error> {
    let (common, options, shown) = process::load(Options::read)?;
    if args.check {
        return process::check(&common, &options.store, &shown).await;
    }
    let gateway =
        Gateway::bind(options).await.map_err(|error| Error::failed("starting the gateway", error))?;
    gateway.serve(&common, process::shutdown_signal()).await
}
