//! The commands of this repository: start, stop, look at, test, measure and check the platform.
//!
//! Read `up.rs` for how a platform comes up and `check.rs` for what must hold before a change lands.
//! Nothing in here takes part in serving; no crate of the workspace is used, so that it compiles in seconds.

mod bench;
mod chaos;
mod check;
mod command;
mod date;
mod down;
mod env_file;
mod home;
mod http;
mod interrupt;
mod ports;
mod postgres;
mod private_file;
mod process;
mod random;
mod ready;
mod rig;
mod secrets;
mod spike;
mod sql;
mod state;
mod status;
mod terminal;
mod test;
mod up;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::terminal::complain;

const HELP: &str = "\
From a bare checkout:
  cargo xtask up      a running platform; Ctrl-C ends it
  cargo xtask test    everything that must pass
  cargo xtask bench   how fast it is here, beside its peers
  cargo xtask spike   an incident, and whether everything held
  cargo xtask chaos   one fault after the other, and whether everything held
  cargo xtask check   format, layers, dependencies, lints, SQL cache, contract

What a command makes lives under .spillway/ and goes away with `cargo xtask down --wipe`.";

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Start, stop, test and check Spillway",
    after_help = HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Up(up::Args),
    Down(down::Args),
    Status(status::Args),
    Test(test::Args),
    Bench(bench::Args),
    Spike(spike::Args),
    Chaos(chaos::Args),
    Sql(sql::Args),
    Check(check::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match interrupt::watch().and_then(|()| run(cli.command)) {
        Ok(code) => code,
        Err(error) if interrupt::caused(&error) => {
            complain("interrupted");
            ExitCode::from(interrupt::EXIT_CODE)
        }
        Err(error) => {
            complain(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let home = home::Home::new(workspace::root()?);
    match command {
        Command::Up(args) => up::run(&home, &args),
        Command::Down(args) => down::run(&home, &args),
        Command::Status(args) => status::run(&home, &args),
        Command::Test(args) => test::run(&home, &args),
        Command::Bench(args) => bench::run(&home, &args),
        Command::Spike(args) => spike::run(&home, &args),
        Command::Chaos(args) => chaos::run(&home, &args),
        Command::Sql(args) => sql::run(&home, &args),
        Command::Check(args) => check::run(&home, &args),
    }
}
