//! Does what a point was told, and leaves word of it first.

use std::fs::File;
use std::future::pending;
use std::io::Write;
use std::sync::OnceLock;

use rustix::process::{Signal, getpid, kill_process};

use crate::plan::{Action, IsFirst, Mistake, Plan};

const POINTS_KEY: &str = "SPILLWAY_CRASHPOINT";
const GUARDS_KEY: &str = "SPILLWAY_LACKS";
const FIRED_KEY: &str = "SPILLWAY_CRASHPOINT_FIRED";

/// As `EX_USAGE`, like a wrong setting.
const EXIT_CODE: i32 = 64;

static PLAN: OnceLock<Plan> = OnceLock::new();

/// A point that can't fail was reached.
pub async fn pass(point: &str) {
    if reach(point).await {
        refuse(&format!("{POINTS_KEY}: `{point}` can't fail"));
    }
}

/// A point was reached; true where it shall fail.
pub async fn reach(point: &str) -> bool {
    let Some(action) = plan().reach(point) else { return false };
    leave_word(point, action.word());
    match action {
        Action::Kill => die(),
        Action::Stall => pending().await,
        Action::Stop => {
            signal(Signal::STOP);
            false
        }
        Action::Panic => panic!("crash point `{point}`"),
        Action::Abort => std::process::abort(),
        Action::Err => true,
    }
}

/// True where the guard is missing.
pub fn is_lacking(guard: &str) -> bool {
    let lacking = plan().lacks(guard);
    if lacking == Some(IsFirst(true)) {
        leave_word(guard, "lacks");
    }
    lacking.is_some()
}

fn plan() -> &'static Plan {
    PLAN.get_or_init(|| from_environment().unwrap_or_else(|mistake| refuse(&mistake.to_string())))
}

fn from_environment() -> Result<Plan, Mistake> {
    let [points, guards] = [POINTS_KEY, GUARDS_KEY].map(|key| {
        let value = std::env::var_os(key).unwrap_or_default();
        value.into_string().unwrap_or_else(|_| refuse(&format!("{key} is not text")))
    });
    Plan::read(&points, &guards)
}

fn die() -> ! {
    signal(Signal::KILL);
    loop {
        std::thread::park();
    }
}

fn signal(signal: Signal) {
    let sent = kill_process(getpid(), signal);
    sent.unwrap_or_else(|error| refuse(&format!("sending the own process a signal: {error}")));
}

/// One write at the end of the file, so that processes which share it don't mix their lines.
fn leave_word(name: &str, action: &str) {
    let Some(path) = std::env::var_os(FIRED_KEY) else { return };
    let line = format!("{name} {} {action}\n", std::process::id());
    let written = File::options().append(true).create(true).open(path).and_then(|mut file| {
        file.write_all(line.as_bytes())?;
        file.sync_all()
    });
    written.unwrap_or_else(|error| refuse(&format!("{FIRED_KEY}: {error}")));
}

#[expect(clippy::print_stderr, reason = "the process ends here, whatever its log is")]
fn refuse(sentence: &str) -> ! {
    eprintln!("{sentence}");
    std::process::exit(EXIT_CODE)
}
