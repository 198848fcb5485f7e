//! What a point does to its process. Each test starts this program once more, as the one that dies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{Command, Output};
use std::task::{Context, Poll, Waker};

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

fn once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

async fn reach() {
    faults::point!("wk.after_claim");
}

async fn reach_or_fail() -> Result<(), String> {
    faults::point!("replay.mid", "it is away");
    Ok(())
}

/// The program that is started: it passes the same point three times, says so, and asks for a guard twice.
#[test]
#[ignore = "started by the other tests"]
#[expect(clippy::print_stdout, reason = "the tests read it")]
fn child() {
    for _ in 0..3 {
        println!("{:?} {:?}", once(reach()), once(reach_or_fail()));
    }
    println!("{} {}", faults::lacks!("commit_first"), faults::lacks!("commit_first"));
}

struct Ended {
    output: Output,
    fired: String,
    pid: u32,
}

impl Ended {
    fn of(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fired");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "child", "--nocapture"]).envs(settings.iter().copied());
        command.env("SPILLWAY_CRASHPOINT_FIRED", &file).stdout(std::process::Stdio::piped());
        let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        Self { output, fired: std::fs::read_to_string(file).unwrap_or_default(), pid }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn complained(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

#[test]
fn a_process_that_was_told_nothing_passes_everything() {
    let ended = Ended::of(&[]);

    assert!(ended.output.status.success());
    assert_eq!(ended.said().matches("Ready(()) Ready(Ok(()))").count(), 3, "{}", ended.said());
    assert!(ended.said().contains("false false"), "{}", ended.said());
    assert_eq!(ended.fired, "");
}

#[test]
fn a_kill_leaves_word_and_ends_the_process_at_the_nth_time() {
    let ended = Ended::of(&[("SPILLWAY_CRASHPOINT", "wk.after_claim:2")]);

    assert_eq!(ended.output.status.signal(), Some(SIGKILL));
    assert_eq!(ended.said().matches("Ready(())").count(), 1, "{}", ended.said());
    assert_eq!(ended.fired, format!("wk.after_claim {} kill\n", ended.pid));
}

#[test]
fn an_abort_is_an_abort() {
    let ended = Ended::of(&[("SPILLWAY_CRASHPOINT", "wk.after_claim:abort")]);

    assert_eq!(ended.output.status.signal(), Some(SIGABRT));
    assert_eq!(ended.fired, format!("wk.after_claim {} abort\n", ended.pid));
}

#[test]
fn a_panic_names_the_point() {
    let ended = Ended::of(&[("SPILLWAY_CRASHPOINT", "wk.after_claim:1:panic")]);

    assert!(!ended.output.status.success());
    let text = ended.said() + &ended.complained();
    assert!(text.contains("crash point `wk.after_claim`"), "{text}");
}

#[test]
fn a_stall_never_goes_on_and_an_error_is_the_functions_answer() {
    let ended = Ended::of(&[("SPILLWAY_CRASHPOINT", "wk.after_claim:2:stall,replay.mid:3:err")]);

    let said = ended.said();
    assert!(ended.output.status.success());
    assert!(said.contains("Pending Ready(Ok(()))"), "{said}");
    assert!(said.contains("Ready(()) Ready(Err(\"it is away\"))"), "{said}");
    assert_eq!(ended.fired.lines().count(), 2, "{}", ended.fired);
}

#[test]
fn a_missing_guard_leaves_word_once() {
    let ended = Ended::of(&[("SPILLWAY_LACKS", "commit_first")]);

    assert!(ended.said().contains("true true"), "{}", ended.said());
    assert_eq!(ended.fired, format!("commit_first {} lacks\n", ended.pid));
}

#[test]
fn a_wrong_value_ends_the_process_at_the_first_point() {
    for (key, value, sentence) in [
        ("SPILLWAY_CRASHPOINT", "wk.after_clam", "no point is called `wk.after_clam`"),
        ("SPILLWAY_CRASHPOINT", "replay.mid:twice", "`twice` is neither a number nor one of"),
        ("SPILLWAY_CRASHPOINT", "wk.after_claim:err", "`wk.after_claim` can't fail"),
        ("SPILLWAY_LACKS", "seat_belt", "no guard is called `seat_belt`"),
    ] {
        let ended = Ended::of(&[(key, value)]);

        assert_eq!(ended.output.status.code(), Some(64), "{value}");
        assert!(ended.complained().contains(sentence), "{}", ended.complained());
    }
}
