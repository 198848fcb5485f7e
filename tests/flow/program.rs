//! The platform's programs as processes of their own.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running program; killed when it is dropped.
pub(crate) struct Program(Child);

impl Program {
    /// Starts `name` with exactly these settings; its log goes to the test's output.
    pub(crate) fn start(name: &str, arguments: &[&str], settings: &[(String, String)]) -> Self {
        let child = command(name, arguments, settings).stdout(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("starting {name}: {error}")))
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
