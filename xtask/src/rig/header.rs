//! What a report begins with: figures of another machine, another commit or another server are other figures.

use anyhow::Context;
use serde::Serialize;

use super::Profile;
use super::machine::Machine;
use crate::home::Home;

#[derive(Debug, Serialize)]
pub(crate) struct Header {
    seed: u32,
    #[serde(flatten)]
    machine: Machine,
    profile: Profile,
    postgres: Durability,
}

/// The server's settings that decide what a commit means.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Durability {
    version: String,
    fsync: String,
    synchronous_commit: String,
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

impl Header {
    pub(crate) fn new(seed: u32, profile: Profile, postgres: Durability, home: &Home) -> Self {
        Self { seed, machine: Machine::of(home.root()), profile, postgres }
    }

    /// One line for a person.
    pub(crate) fn line(&self) -> String {
        let Durability { version, fsync, synchronous_commit } = &self.postgres;
        let commit = self.machine.commit.as_deref().unwrap_or("no commit");
        let dev = if self.profile == Profile::Dev { ", dev build" } else { "" };
        let cores = self.machine.cores.map_or_else(String::new, |cores| format!(", {cores} cores"));
        let memory = self.machine.memory_mib.map_or_else(String::new, |mib| format!(", {mib} MiB"));
        format!(
            "{commit}{dev}, seed {}{cores}{memory}, Postgres {version} with fsync={fsync}, \
             synchronous_commit={synchronous_commit}",
            self.seed
        )
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
    fn what_lab_wrote_stands_behind_the_header_as_it_was_written() {
        #[derive(Serialize)]
        struct Report {
            #[serde(flatten)]
            header: Header,
            benches: Vec<Box<serde_json::value::RawValue>>,
        }
        let figures = r#"{"name":"intake","unique_per_s":1.50}"#;
        let machine = Machine { commit: Some("abc".into()), cores: Some(2), memory_mib: None };
        let postgres = Durability::parse("15.14|on|on").expect("durable");
        let header = Header { seed: 7, machine, profile: Profile::Release, postgres };
        let benches = vec![serde_json::value::RawValue::from_string(figures.to_owned()).expect("JSON")];

        let report = serde_json::to_string(&Report { header, benches }).expect("JSON");

        assert_eq!(
            report,
            format!(
                r#"{{"seed":7,"commit":"abc","cores":2,"profile":"release","postgres":{{"version":"15.14","fsync":"on","synchronous_commit":"on"}},"benches":[{figures}]}}"#
            )
        );
    }
}
