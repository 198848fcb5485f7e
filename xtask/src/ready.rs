//! Waits for a process that has just been started until its probe says yes.

use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::{http, interrupt, process};

/// How long a process may take until its probe says yes.
const BUDGET: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(100);

/// Waits until `GET base/probe` answers 200. An end of the process, as `end` tells it, is noticed at once.
pub(crate) fn wait(
    name: &str,
    (base, probe): (&str, &str),
    log: &Path,
    mut end: impl FnMut() -> anyhow::Result<Option<ExitStatus>>,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + BUDGET;
    loop {
        interrupt::check()?;
        let answer = http::get(base, probe);
        if answer.as_ref().is_ok_and(|answer| answer.status == 200) {
            return Ok(());
        }
        if let Some(status) = end()? {
            bail!("{name} ended at its start ({status}); {}", process::tail(log));
        }
        if Instant::now() > deadline {
            let said = answer.map_or_else(|error| format!("{error:#}"), |answer| answer.body);
            let seconds = BUDGET.as_secs();
            bail!("{name} was not ready within {seconds} s, {probe} says: {said}\n{}", process::tail(log));
        }
        thread::sleep(POLL);
    }
}
