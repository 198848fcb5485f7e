//! `up` in the foreground: waits for Ctrl-C, for `down` from elsewhere, or for the first process that dies.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use super::platform::Platform;
use crate::state::State;
use crate::terminal::say;
use crate::{interrupt, process};

const POLL: Duration = Duration::from_millis(200);

pub(super) fn until_stopped(platform: &mut Platform<'_>) -> anyhow::Result<ExitCode> {
    loop {
        if interrupt::requested() {
            say("\nstopping");
            let _lock = platform.home().lock()?;
            platform.stop()?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some((name, status)) = platform.first_ended()? {
            if is_being_stopped(platform)? {
                say("stopped by `cargo xtask down`");
                return Ok(ExitCode::SUCCESS);
            }
            say(format_args!("\n{name} died ({status}); {}", process::tail(&platform.home().log(&name))));
            say("stopping the rest; `cargo xtask up` starts again with the same data");
            let _lock = platform.home().lock()?;
            platform.stop()?;
            return Ok(ExitCode::FAILURE);
        }
        thread::sleep(POLL);
    }
}

/// `down` says so on disk before it signals anybody, and forgets the processes afterwards.
fn is_being_stopped(platform: &Platform<'_>) -> anyhow::Result<bool> {
    let state = State::load(platform.home())?;
    Ok(state.stopping || state.processes.is_empty())
}
