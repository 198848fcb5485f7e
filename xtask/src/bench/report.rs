//! The report of a run: what it ran on, and the figures of each bench as `lab` wrote them.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::value::RawValue;

use super::machine::Machine;
use crate::home::Home;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    seed: u32,
    #[serde(flatten)]
    machine: Machine,
    postgres: Durability,
    pub(super) benches: Vec<Box<RawValue>>,
}

/// The server's settings that decide what a commit means.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Durability {
    pub(super) version: String,
    pub(super) fsync: String,
    pub(super) synchronous_commit: String,
}

impl Durability {
    /// Asks for the three, parted by `|`.
    pub(super) const QUERY: &'static str = "select current_setting('server_version'), current_setting('fsync'), \
         current_setting('synchronous_commit')";

    /// Refused where a commit may be lost: such figures can't be compared with any others.
    pub(super) fn parse(answer: &str) -> anyhow::Result<Self> {
        let mut columns = answer.split('|').map(str::to_owned);
        let mut next = || columns.next().context("the server told too little about itself");
        let durability = Self { version: next()?, fsync: next()?, synchronous_commit: next()? };
        anyhow::ensure!(
            durability.fsync == "on" && durability.synchronous_commit == "on",
            "the server's commits are not durable: fsync={}, synchronous_commit={}",
            durability.fsync,
            durability.synchronous_commit
        );
        Ok(durability)
    }
}

impl Report {
    pub(super) fn new(seed: u32, postgres: Durability, home: &Home) -> Self {
        Self { seed, machine: Machine::of(home.root()), postgres, benches: Vec::new() }
    }

    /// One line for a person.
    pub(super) fn header(&self) -> String {
        let Durability { version, fsync, synchronous_commit } = &self.postgres;
        let commit = self.machine.commit.as_deref().unwrap_or("no commit");
        let cores = self.machine.cores.map_or_else(String::new, |cores| format!(", {cores} cores"));
        let memory = self.machine.memory_mib.map_or_else(String::new, |mib| format!(", {mib} MiB"));
        format!(
            "{commit}, seed {}{cores}{memory}, Postgres {version} with fsync={fsync}, \
             synchronous_commit={synchronous_commit}",
            self.seed
        )
    }

    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string(self).context("writing the report as JSON")?;
        fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_lose_a_commit_is_refused() {
        assert!(Durability::parse("15.14 (Debian 15.14-0+deb12u1)|on|on").is_ok());
        for answer in ["15.14|off|on", "15.14|on|off", "15.14|on|local", "15.14|on"] {
            assert!(Durability::parse(answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn the_figures_of_a_bench_stand_in_the_report_as_they_were_written() {
        let figures = r#"{"name":"intake","unique_per_s":1.50}"#;
        let machine = Machine { commit: Some("abc".into()), cores: Some(2), memory_mib: None };
        let postgres = Durability::parse("15.14|on|on").expect("durable");
        let benches = vec![RawValue::from_string(figures.to_owned()).expect("JSON")];

        let report = serde_json::to_string(&Report { seed: 7, machine, postgres, benches }).expect("JSON");

        assert_eq!(
            report,
            format!(
                r#"{{"seed":7,"commit":"abc","cores":2,"postgres":{{"version":"15.14","fsync":"on","synchronous_commit":"on"}},"benches":[{figures}]}}"#
            )
        );
    }
}
