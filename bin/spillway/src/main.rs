//! The operators' command line. It says what the ledger says, and whose word that is.

mod author;
mod commands;
mod dead_letters;
mod decide;
mod doctor;
mod file;
mod limits;
mod load;
mod migrate;
mod payments;
mod processes;
mod queues;
mod show;
mod trim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use process::Error;
use store::Pool;

/// Looks after queues, commands, dead letters and payments. Settings come from the environment: see .env.example.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Args {
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Bring the database to this version's schema; safe to repeat, and at the same time elsewhere.
    Migrate,
    /// Show how full each queue is.
    Queues,
    /// Show who waits for what, and pause and resume keys and whole queues.
    Limits(limits::Args),
    /// Show which processes are there, in which versions, and which queues nobody works on.
    Processes,
    /// Show what keeps the database from staying small and quick: old snapshots, dead rows.
    Doctor,
    /// Remove rows that are past their time; the processes do so by themselves.
    Trim(trim::Args),
    /// Look at commands.
    #[command(subcommand)]
    Commands(commands::Action),
    /// Look at commands that were given up, and decide what becomes of them.
    #[command(subcommand)]
    DeadLetters(dead_letters::Action),
    /// Show which payments need a person, and what was told of one.
    Payments(payments::Args),
    /// Load reference data from files; safe to repeat.
    #[command(subcommand)]
    Load(load::Action),
}

#[tokio::main]
async fn main() -> ExitCode {
    process::report(run(&Args::parse()).await)
}

async fn run(args: &Args) -> Result<(), Error> {
    match &args.action {
        Action::Migrate => migrate::run(args.json).await,
        Action::Queues => queues::run(args.json).await,
        Action::Limits(limits) => limits::run(limits, args.json).await,
        Action::Processes => processes::run(args.json).await,
        Action::Doctor => doctor::run(args.json).await,
        Action::Trim(trim) => trim::run(trim, args.json).await,
        Action::Commands(action) => commands::run(action, args.json).await,
        Action::DeadLetters(action) => dead_letters::run(action, args.json).await,
        Action::Payments(payments) => payments::run(payments, args.json).await,
        Action::Load(action) => load::run(action, args.json).await,
    }
}

/// Connections with the operators' login.
fn database() -> Result<Pool, Error> {
    let (_, options, _) =
        process::load(|env| store::Options::read_direct(env, &contract::env::keys::OPERATOR_DATABASE_URL))?;
    Pool::prepare(&options, "cli", 2).map_err(|error| Error::failed("preparing a connection", error))
}
