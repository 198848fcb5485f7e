//! The platform's programs as processes of their own.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running program; killed when it is dropped.
pub(crate) struct Program(Child);

impl Program {
    /// Starts `name` with exactly these settings and without a log.
    pub(crate) fn start(name: &str, arguments: &[&str], settings: &[(String, String)]) -> Self {
        Self::spawn(command(name, arguments, settings).stdout(Stdio::null()))
    }

    /// The same with a log that others may write too.
    pub(crate) fn start_with_log(
        name: &str,
        arguments: &[&str],
        settings: &[(String, String)],
        log: &File,
    ) -> Self {
        Self::spawn(command(name, arguments, settings).stdout(log.try_clone().expect("an open file")))
    }

    /// The same, where it may have no more than so many file descriptors.
    pub(crate) fn start_with_descriptors(
        name: &str,
        settings: &[(String, String)],
        descriptors: usize,
    ) -> Self {
        let mut shell = Command::new("/bin/sh");
        let script = format!("ulimit -n {descriptors} && exec \"$0\"");
        shell.arg("-c").arg(script).arg(path(name)).env_clear();
        Self::spawn(shell.envs(settings.iter().cloned()).stdout(Stdio::null()))
    }

    fn spawn(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|error| panic!("starting {}: {error}", command.get_program().display())))
    }

    /// True where each of the first so many file descriptors is in use. It may have inherited some beyond.
    pub(crate) fn has_all(&self, descriptors: usize) -> bool {
        let is_used = |n| std::fs::symlink_metadata(format!("/proc/{}/fd/{n}", self.0.id())).is_ok();
        (0..descriptors).all(is_used)
    }

    /// `kill -9`: nothing of it runs after this.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }

    /// SIGTERM, then its exit code.
    pub(crate) async fn terminate(mut self) -> Option<i32> {
        kill(Pid::from_raw(self.0.id().try_into().expect("a pid")), Signal::SIGTERM).expect("it is ours");
        let mut ended = || std::future::ready(self.0.try_wait().expect("it is ours"));
        testkit::eventually("the program ends", crate::platform::BUDGET, &mut ended).await.code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that nobody listens on now.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").to_string()
}

/// Runs a program to its end.
pub(crate) fn run(name: &str, arguments: &[&str], settings: &[(String, String)]) -> Output {
    command(name, arguments, settings).output().unwrap_or_else(|error| panic!("running {name}: {error}"))
}

fn command(name: &str, arguments: &[&str], settings: &[(String, String)]) -> Command {
    let mut command = Command::new(path(name));
    command.args(arguments).env_clear().envs(settings.iter().map(|(name, value)| (name, value)));
    command
}

/// Programs lie beside the folder of the tests' own program; `cargo xtask test` builds them first.
fn path(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows where it is");
    let path = own.parent().and_then(|deps| deps.parent()).expect("target/debug/deps").join(name);
    assert!(path.exists(), "{} is not built: run the tests with `cargo xtask test`", path.display());
    path
}
