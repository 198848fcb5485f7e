//! A killed `cargo xtask` can leave its server running with nobody to tell.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use super::remove;
use crate::process;
use crate::terminal::say;

/// Ends the server of that data directory, which nobody can be using on purpose any more. A pid file
/// without its server is removed: it would keep the next one from starting once the pid is used again.
pub(crate) fn end(data: &Path) -> anyhow::Result<()> {
    let pid_file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&pid_file) else { return Ok(()) };
    let pid = text.lines().next().and_then(|line| line.trim().parse().ok()).unwrap_or_default();
    let is_ours = process::command_line(pid).is_some_and(|line| line.contains(&data.display().to_string()));
    match process::started(pid).filter(|_| is_ours) {
        Some(started) => {
            say(format_args!("ending a Postgres (pid {pid}) that an earlier run left behind"));
            process::stop(&[(pid, &started)], Signal::SIGINT, process::GRACE);
            Ok(())
        }
        None => remove(&pid_file),
    }
}
