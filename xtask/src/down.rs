//! `cargo xtask down`: stops what `up` started, and with `--wipe` forgets that it ever ran.

use std::fs::{self, TryLockError};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::home::{self, Home};
use crate::postgres::{self, Purpose, forgotten};
use crate::state::State;
use crate::terminal::say;

/// Stop the platform; its data, secrets and ports are kept for the next `up`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also delete the private data, secrets, logs and the demo user
    #[arg(long)]
    wipe: bool,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    if !home.folder().exists() && !home.outside().exists() {
        say("nothing is running, and there is nothing to delete");
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = home.lock()?;
    // A state that can't be read must not stand in the way of the command that removes it.
    let mut state = if args.wipe { State::load(home).unwrap_or_default() } else { State::load(home)? };
    if state.processes.is_empty() {
        say("nothing is running");
    } else {
        state.stop_all(home)?;
        say("the platform is down");
    }
    if args.wipe {
        wipe(home)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Leaves the lock that this command holds, and what a test run or a bench is using.
fn wipe(home: &Home) -> anyhow::Result<()> {
    let others = [
        (&[Purpose::Tests, Purpose::Standby][..], home.tests(), home.tests_lock()),
        (&[Purpose::Bench], home.bench(), home.bench_lock()),
    ];
    let mut busy = Vec::new();
    let mut free = vec![Purpose::Platform];
    // Held until all is deleted, or one could start meanwhile.
    let mut locks = Vec::new();
    for (purposes, folder, lock) in others {
        let lock = home::open_lock(&lock)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => busy.push(folder),
            _ => free.extend(purposes),
        }
        locks.push(lock);
    }
    for purpose in free {
        purpose.places(home).iter().try_for_each(|place| delete_server(place))?;
    }
    let entries =
        fs::read_dir(home.folder()).with_context(|| format!("reading {}", home.folder().display()))?;
    for entry in entries {
        let path = entry.context("reading .spillway")?.path();
        let keep = path.ends_with("lock") || busy.contains(&path);
        if !keep {
            postgres::remove(&path)?;
        }
    }
    // Refused while the folder of a server in use is in it.
    let _ = fs::remove_dir(home.outside());
    say("deleted data, secrets, logs and the demo user");
    for folder in busy {
        say(format_args!("kept {}: another command is using it", home.relative(&folder)));
    }
    Ok(())
}

fn delete_server(place: &Path) -> anyhow::Result<()> {
    forgotten::end(&place.join("data"))?;
    postgres::remove(place)
}
