//! Kills processes of the platform at the moments of a plan. Whoever started them starts them again.

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::watch;

use super::clock::Clock;
use super::history::{Killed, Sample};
use super::plan::{Kill, VICTIMS};
use crate::bench::Process;

/// Refuses a drill that could not kill whom it plans to kill.
pub(super) fn check(processes: &[Process]) -> anyhow::Result<()> {
    for victim in VICTIMS {
        // 0 and 1 are no process of anybody's, and a signal to 0 goes to many.
        let is_known = processes.iter().any(|process| process.name == victim && process.pid > 1);
        ensure!(is_known, "`--kill` needs to know `--process {victim}=PID`");
    }
    Ok(())
}

/// `kill -9` of each at its time.
pub(super) async fn kill_all(
    kills: &[Kill],
    processes: &[Process],
    clock: Clock,
    newest: watch::Receiver<Sample>,
) -> anyhow::Result<Vec<Killed>> {
    let mut killed = Vec::new();
    for planned in kills {
        tokio::time::sleep_until(clock.instant(planned.at)).await;
        let process = processes.iter().find(|process| process.name == planned.process);
        let process = process.with_context(|| format!("nobody told where {} is", planned.process))?;
        let pid = i32::try_from(process.pid).context("a process id that is none")?;
        kill(Pid::from_raw(pid), Signal::SIGKILL).with_context(|| format!("killing {}", process.name))?;
        let in_flight = newest.borrow().in_flight;
        killed.push(Killed { process: planned.process, at_ms: clock.now_ms(), in_flight });
    }
    Ok(killed)
}
