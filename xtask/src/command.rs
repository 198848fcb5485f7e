//! Runs programs to their end, with errors that say what was run and what it answered.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::interrupt::{self, Interrupted};
use crate::private_file;

const POLL: Duration = Duration::from_millis(20);
/// How long an interrupted program gets to end by itself.
const INTERRUPT_GRACE: Duration = Duration::from_secs(10);

/// Runs with the terminal's output. The program leads a process group of its own, so that Ctrl-C comes
/// to us first and then reaches it together with all it started.
pub(crate) fn status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    status_beside(command, || Ok(()))
}

/// As [`status`]. Meanwhile `beside` is called again and again; where it fails, the program is ended too.
pub(crate) fn status_beside(
    command: &mut Command,
    mut beside: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting `{}`", describe(command)))?;
    loop {
        if let Some(status) =
            child.try_wait().with_context(|| format!("waiting for `{}`", describe(command)))?
        {
            interrupt::check()?;
            return Ok(status);
        }
        if interrupt::requested() {
            end_group(&mut child);
            bail!(Interrupted);
        }
        if let Err(error) = beside() {
            end_group(&mut child);
            return Err(error);
        }
        thread::sleep(POLL);
    }
}

/// What a program that ended so lets us end with.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// As [`status`], for a program that must succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed ({status}); its output is above", describe(command));
    }
    Ok(())
}

/// As [`status`], with the output appended to a log instead of shown.
pub(crate) fn logged(command: &mut Command, log: &Path) -> anyhow::Result<ExitStatus> {
    let output = private_file::append(log)?;
    let errors = output.try_clone().context("sharing a log between output and errors")?;
    status(command.stdout(output).stderr(errors))
}

/// What the program printed to standard output; it must succeed.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("starting `{}`", describe(command)))?;
    if !output.status.success() {
        interrupt::check()?;
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", describe(command), output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` did not print text", describe(command)))
}

/// The command line for an error message. Secrets are never arguments, so it can be shown.
pub(crate) fn describe(command: &Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn end_group(child: &mut Child) {
    let group = Pid::from_raw(child.id().cast_signed());
    let deadline = Instant::now() + INTERRUPT_GRACE;
    // Both signals may find the group gone already, which is what they are for.
    let _ = killpg(group, Signal::SIGINT);
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(POLL);
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_named_with_what_it_said() {
        let error =
            output(Command::new("sh").args(["-c", "echo no such thing >&2; exit 3"])).expect_err("exit 3");

        let text = error.to_string();
        assert!(text.contains("sh -c") && text.contains("no such thing") && text.contains('3'), "{text}");
    }

    #[test]
    fn a_program_is_ended_when_what_runs_beside_it_fails() {
        let began = Instant::now();

        let error = status_beside(Command::new("sleep").arg("60"), || bail!("the gateway ended by itself"));

        assert_eq!(error.expect_err("it failed").to_string(), "the gateway ended by itself");
        assert!(began.elapsed() < Duration::from_mins(1));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut Command::new("no-such-program-here")).expect_err("there is none");

        assert!(error.to_string().contains("no-such-program-here"));
    }
}
