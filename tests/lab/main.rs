//! The program `lab`; see `lib.rs` for what it is for.

use clap::{Parser, Subcommand};

/// Plays the providers, sends load, checks that the parts of the platform agree.
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
    /// Check that contract, .env.example, metric table and documents agree.
    StageCheck(lab::stage::Args),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Args::parse().action {
        Action::Sandbox(args) => lab::sandbox::run(args).await,
        Action::Storm(args) => lab::storm::run(args).await,
        Action::StageCheck(args) => lab::stage::run(&args),
    }
}
