//! Installs the queues that are measured beside ours: pinned packages by name, as their lock file has them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::command;
use crate::home::Home;
use crate::terminal::say;

const FILES: [&str; 3] = ["package.json", "package-lock.json", "graphile.mjs"];

/// Installs them into `.spillway`, and answers where.
pub(super) fn install(home: &Home) -> anyhow::Result<PathBuf> {
    let (from, to) = (home.root().join("tests/peers"), home.bench().join("peers"));
    say("installing peers");
    fs::create_dir_all(&to).with_context(|| format!("making {}", to.display()))?;
    for file in FILES {
        fs::copy(from.join(file), to.join(file)).with_context(|| format!("copying {file}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&to);
    command::run(&mut npm).context("installing peers needs node and npm")?;
    Ok(to)
}
