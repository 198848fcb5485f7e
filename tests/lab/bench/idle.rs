//! The bench `idle`: what the platform's processes use while there is nothing to do.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;

use super::{Common, cpu};

/// Not ours: its figures stand beside.
const SERVERS: [&str; 1] = ["postgres"];

/// Measures what idle processes use.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// For how long.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its documentation would be taken for the program's")]
    pub common: Common,
}

/// What the bench found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `idle`.
    pub name: &'static str,
    /// Of one core, of all our processes.
    pub cpu_percent_total: f64,
    /// Of each of our processes.
    pub rss_mib: BTreeMap<String, f64>,
    /// How often a second a thread of ours went from waiting to work.
    pub wakeups_per_s: f64,
    /// CPU of servers, of one core.
    pub servers_cpu_percent: BTreeMap<String, f64>,
    /// For how long.
    pub seconds: u32,
}

/// What a process has used until now.
#[derive(Clone, Copy)]
struct Usage {
    cpu: Duration,
    wakeups: u64,
}

impl Usage {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let gone = || format!("process {pid} tells nothing");
        Ok(Self { cpu: cpu::of_family(pid).with_context(gone)?, wakeups: wakeups(pid).with_context(gone)? })
    }
}

/// Measures the processes that it was told about.
pub async fn measure(args: &Args) -> anyhow::Result<Report> {
    let processes = &args.common.processes;
    let usage = || processes.iter().map(|process| Usage::of(process.pid)).collect::<anyhow::Result<Vec<_>>>();
    let (before, began) = (usage()?, Instant::now());
    tokio::time::sleep(Duration::from_secs(args.seconds.into())).await;
    let (after, seconds) = (usage()?, began.elapsed().as_secs_f64());
    let mut report = Report {
        name: "idle",
        cpu_percent_total: 0.0,
        rss_mib: BTreeMap::new(),
        wakeups_per_s: 0.0,
        servers_cpu_percent: BTreeMap::new(),
        seconds: args.seconds,
    };
    for ((process, before), after) in processes.iter().zip(before).zip(after) {
        let cpu_percent = after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds * 100.0;
        if SERVERS.contains(&process.name.as_str()) {
            report.servers_cpu_percent.insert(process.name.clone(), cpu_percent);
            continue;
        }
        report.cpu_percent_total += cpu_percent;
        let woken = u32::try_from(after.wakeups.saturating_sub(before.wakeups)).unwrap_or(u32::MAX);
        report.wakeups_per_s += f64::from(woken) / seconds;
        report
            .rss_mib
            .insert(process.name.clone(), rss_mib(process.pid).context("reading a process' memory")?);
    }
    Ok(report)
}

/// How often the threads of a process gave the CPU away by themselves.
fn wakeups(pid: u32) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    // A thread that has ended meanwhile wakes no more.
    let of_each = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    Some(of_each.filter_map(|status| field(&status, "voluntary_ctxt_switches")).sum())
}

fn rss_mib(pid: u32) -> Option<f64> {
    let kib = field(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS")?;
    Some(f64::from(u32::try_from(kib).ok()?) / 1024.0)
}

/// A number of `/proc/PID/status`.
fn field(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

impl super::Report for Report {
    fn table(&self) -> String {
        let mut table = format!(
            "idle, {} s\n  ours: CPU {:.2} % of a core, {:.1} wake-ups a second\n",
            self.seconds, self.cpu_percent_total, self.wakeups_per_s
        );
        // A String takes any text.
        for (name, mib) in &self.rss_mib {
            let _ = writeln!(table, "  {name:20} {mib:.1} MiB");
        }
        for (name, cpu) in &self.servers_cpu_percent {
            let _ = writeln!(table, "  {name:20} CPU {cpu:.2} %");
        }
        table
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.rss_mib.is_empty(), "no process was named");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "VmRSS:\t    2048 kB\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n";

        assert_eq!(field(status, "voluntary_ctxt_switches"), Some(17));
        assert_eq!(field(status, "VmRSS"), Some(2048));
        assert_eq!(field(status, "VmSwap"), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_figure() {
        assert!(Usage::of(u32::MAX).is_err());
    }
}
