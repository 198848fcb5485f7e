//! The program `lab`; see `lib.rs` for what it is for.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Plays the providers, sends load, measures, checks that the parts of the platform agree.
#[derive(Parser)]
#[command(name = "lab", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Play the outside providers at a socket.
    Sandbox(lab::sandbox::Args),
    /// Send signed SnapTrade events and wait until each accepted one has ended.
    Storm(lab::storm::Args),
    /// Let an incident happen to a running platform, and check what became of it; `cargo xtask spike` starts one and
    /// calls this.
    Spike(lab::spike::Args),
    /// Measure a running platform; `cargo xtask bench` starts one and calls this.
    Bench(lab::bench::Args),
    /// The worker process of `bench drain`.
    #[command(hide = true)]
    BenchDrainWorker(lab::bench::drain::WorkerArgs),
    /// Break the platform on purpose and check what was promised; `cargo xtask chaos` builds what this needs and calls it.
    Chaos(lab::chaos::Args),
    /// Throw every case of the door at a gateway and say what it answered wrongly.
    Door(lab::door::Args),
    /// Check that contract, .env.example, metric table and documents agree.
    StageCheck(lab::stage::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse().action).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

async fn run(action: Action) -> anyhow::Result<()> {
    match action {
        Action::Sandbox(args) => lab::sandbox::run(args).await,
        Action::Storm(args) => lab::storm::run(args).await,
        Action::Spike(args) => lab::spike::run(args).await,
        Action::Bench(args) => lab::bench::run(args).await,
        Action::BenchDrainWorker(args) => lab::bench::drain::work(&args).await,
        Action::Chaos(args) => lab::chaos::run(args).await,
        Action::Door(args) => lab::door::run(args).await,
        Action::StageCheck(args) => lab::stage::run(&args),
    }
}

/// The causes in one line; a backtrace would be of no use to whoever called the program.
#[expect(clippy::print_stderr, reason = "this is where a program says why it failed")]
fn complain(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error:#}");
    ExitCode::FAILURE
}
