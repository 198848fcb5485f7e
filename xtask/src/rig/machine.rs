//! What is measured on: figures of another machine or another commit are other figures.

use std::path::Path;
use std::process::Command;
use std::thread;

use serde::Serialize;

use crate::command;

#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    /// The commit, with `-dirty` behind it where the checkout holds more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cores: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_mib: Option<u64>,
}

impl Machine {
    pub(crate) fn of(root: &Path) -> Self {
        let mut describe = Command::new("git");
        describe.args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]).current_dir(root);
        Self {
            commit: command::output(&mut describe).ok().map(|text| text.trim().to_owned()),
            cores: thread::available_parallelism().ok().map(usize::from),
            memory_mib: memory_mib(),
        }
    }
}

#[cfg(target_os = "linux")]
fn memory_mib() -> Option<u64> {
    total_mib(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

#[cfg(not(target_os = "linux"))]
fn memory_mib() -> Option<u64> {
    let bytes: u64 =
        command::output(Command::new("sysctl").args(["-n", "hw.memsize"])).ok()?.trim().parse().ok()?;
    Some(bytes / 1024 / 1024)
}

#[cfg(target_os = "linux")]
fn total_mib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_mebibytes() {
        assert_eq!(total_mib("MemTotal:       24689616 kB\nMemFree: 1 kB\n"), Some(24110));
        assert_eq!(total_mib("nothing"), None);
    }
}
