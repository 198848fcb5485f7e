//! Starts processes that outlive us, knows them again later and stops them.
//!
//! A pid alone names nobody: it is used again. Pid and start time together do.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{command, private_file};

/// How long a process gets to finish its work after the first signal.
pub(crate) const GRACE: Duration = Duration::from_secs(30);
/// What of a log is shown when its process failed.
const TAIL_LINES: usize = 20;
const POLL: Duration = Duration::from_millis(50);

/// What became of a process that was to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    WasGone,
    Ended,
    /// It outlived its grace.
    Killed,
}

/// Starts the command with its output appended to `log`, in a process group of its own, so that Ctrl-C
/// on the terminal reaches only us and we stop things in order.
pub(crate) fn spawn(command: &mut Command, log: &Path) -> anyhow::Result<Child> {
    let output = private_file::append(log)?;
    let errors = output.try_clone().context("sharing a log between output and errors")?;
    command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting `{}`", command::describe(command)))
}

/// When the process was started, in the kernel's words. Nothing for one that is gone or only waits to
/// be reaped.
#[cfg(target_os = "linux")]
pub(crate) fn started(pid: i32) -> Option<String> {
    const STATE: usize = 0;
    const START_TIME: usize = 19;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, which may itself hold blanks and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let alive = fields.get(STATE).is_some_and(|state| !matches!(*state, "Z" | "X"));
    fields.get(START_TIME).filter(|_| alive).map(|time| (*time).to_owned())
}

/// When the process was started, as `ps` tells it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn started(pid: i32) -> Option<String> {
    let told =
        command::output(Command::new("ps").args(["-o", "stat=,lstart=", "-p", &pid.to_string()])).ok()?;
    let (state, time) = told.trim().split_once(' ')?;
    (!state.starts_with('Z')).then(|| time.trim().to_owned())
}

/// The command line of a process, its words parted by blanks.
#[cfg(target_os = "linux")]
pub(crate) fn command_line(pid: i32) -> Option<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&words).replace('\0', " "))
}

/// The command line of a process, as `ps` tells it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn command_line(pid: i32) -> Option<String> {
    command::output(Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()])).ok()
}

/// Signals each process of the group (pid and start time), waits for all of them together, and kills
/// what is left after the grace.
pub(crate) fn stop(group: &[(i32, &str)], signal: Signal, grace: Duration) -> Vec<Stopped> {
    let is_alive = |&(pid, start): &(i32, &str)| started(pid).as_deref() == Some(start);
    let asked: Vec<bool> = group.iter().map(|process| is_alive(process) && send(process.0, signal)).collect();
    let deadline = Instant::now() + grace;
    while group.iter().any(is_alive) && Instant::now() < deadline {
        thread::sleep(POLL);
    }
    let end = |(process, asked): (&(i32, &str), bool)| match (asked, is_alive(process)) {
        (false, _) => Stopped::WasGone,
        (true, false) => Stopped::Ended,
        (true, true) => {
            send(process.0, Signal::SIGKILL);
            Stopped::Killed
        }
    };
    group.iter().zip(asked).map(end).collect()
}

fn send(pid: i32, signal: Signal) -> bool {
    kill(Pid::from_raw(pid), signal).is_ok()
}

/// The end of a log, indented, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if last.is_empty() {
        return format!("{} is empty", log.display());
    }
    format!("the end of {}:\n    {}", log.display(), last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> (Child, i32, String) {
        let child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = child.id().cast_signed();
        let start = started(pid).expect("it runs");
        (child, pid, start)
    }

    #[test]
    fn a_process_is_ended_by_the_signal() {
        let (mut child, pid, start) = sleeper();

        assert_eq!(stop(&[(pid, &start)], Signal::SIGTERM, GRACE), [Stopped::Ended]);
        assert_eq!(started(pid), None);
        child.wait().expect("reaped");
    }

    #[test]
    fn a_pid_that_was_used_again_is_left_alone() {
        let (mut child, pid, start) = sleeper();

        assert_eq!(stop(&[(pid, "an earlier time")], Signal::SIGKILL, GRACE), [Stopped::WasGone]);
        assert_eq!(started(pid), Some(start));
        child.kill().and_then(|()| child.wait()).expect("reaped");
    }

    #[test]
    fn a_process_that_ignores_the_signal_is_killed_after_the_grace() {
        let (mut child, pid, start) = sleeper();

        let stopped = stop(&[(pid, &start)], Signal::SIGCONT, Duration::ZERO);

        assert_eq!(stopped, [Stopped::Killed]);
        child.wait().expect("reaped");
    }

    #[test]
    fn the_tail_is_the_last_twenty_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("worker.log");
        let lines: Vec<String> = (1..=30).map(|n| format!("line {n}")).collect();
        std::fs::write(&log, lines.join("\n")).expect("written");

        let tail = tail(&log);

        assert!(
            !tail.contains("line 10\n") && tail.contains("line 11\n") && tail.ends_with("line 30"),
            "{tail}"
        );
    }
}
