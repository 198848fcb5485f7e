//! What benches and drills have in common: one build of everything, a platform of their own that is measured by `lab`,
//! and reports that say what they ran on. One of them runs at a time, or they would measure one another.

mod header;
mod machine;
pub(crate) mod platform;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::home::Home;
use crate::terminal::say;
use crate::up::services;
use crate::{command, private_file, random, workspace};

pub(crate) use header::Header;
pub(crate) use machine::Machine;
pub(crate) use platform::Platform;

/// Packages built beside the services: the operator's CLI, which migrates, and the program that measures.
const TOOLS: [&str; 2] = ["spillway", "tests"];

const SEED_BYTES: usize = 4;

/// Stands for all names of a table.
pub(crate) const EVERY: &str = "all";

/// How programs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Profile {
    /// What counts
    Release,
    /// Built sooner, for a look at the thing itself
    Dev,
}

impl Profile {
    /// A program that cargo made.
    pub(crate) fn program(self, home: &Home, name: &str) -> PathBuf {
        match self {
            Self::Release => home.release_program(name),
            Self::Dev => home.program(name),
        }
    }
}

/// Whatever is run, everything: another choice of packages may have other features, and builds them all anew.
pub(crate) fn build(home: &Home, profile: Profile) -> anyhow::Result<()> {
    let mut cargo = workspace::cargo(home.root());
    cargo.args(["build", "--locked", "--bins"]);
    match profile {
        Profile::Release => {
            say("building in release");
            cargo.arg("--release");
        }
        Profile::Dev => say("building"),
    }
    for package in services::ALL.iter().map(|service| service.binary).chain(TOOLS) {
        cargo.args(["-p", package]);
    }
    command::run(&mut cargo)
}

/// The entry of that name, or all of them.
pub(crate) fn choose<'t, T>(
    what: &str,
    table: &'t [T],
    name_of: fn(&T) -> &'static str,
    name: &str,
) -> anyhow::Result<Vec<&'t T>> {
    let chosen: Vec<&T> = table.iter().filter(|entry| name == EVERY || name_of(entry) == name).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = table.iter().map(name_of).collect();
        bail!("no {what} is called `{name}`; there are: {}, {EVERY}", known.join(", "));
    }
    Ok(chosen)
}

/// The given one, else one that nobody knows.
pub(crate) fn seed(given: Option<u32>) -> anyhow::Result<u32> {
    match given {
        Some(seed) => Ok(seed),
        None => u32::from_str_radix(&random::hex(SEED_BYTES)?, 16).context("making a seed"),
    }
}

/// What `lab` wrote, as it wrote it; nothing where it wrote nothing.
pub(crate) fn read_raw(file: &Path) -> anyhow::Result<Option<Box<RawValue>>> {
    let Some(text) = private_file::read(file)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).with_context(|| format!("reading {}", file.display()))
}

/// Writes the report where somebody wants it, and says what failed.
pub(crate) fn conclude(
    json: Option<&Path>,
    report: &impl Serialize,
    failed: &[&str],
) -> anyhow::Result<ExitCode> {
    if let Some(file) = json {
        write(file, report)?;
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("failed: {}", failed.join(", ")));
    Ok(ExitCode::FAILURE)
}

/// Writes a report as one line of JSON.
fn write(file: &Path, report: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(report).context("writing the report as JSON")?;
    fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let table = ["one", "two"];

        let error = choose("number", &table, |name| name, "three").expect_err("there is no `three`");

        assert_eq!(error.to_string(), "no number is called `three`; there are: one, two, all");
        assert_eq!(choose("number", &table, |name| name, "two").expect("known"), [&"two"]);
        assert_eq!(choose("number", &table, |name| name, EVERY).expect("all").len(), 2);
    }
}
