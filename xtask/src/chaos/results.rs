//! What whole runs came to, one dated file each under `docs/results`, and how old the newest is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::command;
use crate::date::Day;
use crate::home::Home;
use crate::rig::Machine;
use crate::terminal::say;

/// A result that is older says too little about the source of today.
const OLDEST: i64 = 30;

const PREFIX: &str = "chaos-";

/// A result as it is kept: what it ran on, and what `lab` wrote.
#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    machine: Machine,
    report: &'a RawValue,
}

/// As much of it as the check wants to know.
#[derive(Deserialize)]
struct Known {
    commit: Option<String>,
    report: Report,
}

#[derive(Deserialize)]
struct Report {
    faults: Vec<Fault>,
    controls: Vec<Control>,
}

#[derive(Deserialize)]
struct Fault {
    id: String,
    passed: bool,
}

#[derive(Deserialize)]
struct Control {
    name: String,
    caught: bool,
}

/// Keeps what a whole run came to, in place of an earlier one of the same day.
pub(crate) fn keep(home: &Home, report: &RawValue) -> anyhow::Result<()> {
    let folder = folder(home);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let file = folder.join(format!("{PREFIX}{}.json", Day::today().name()));
    let kept = Kept { machine: Machine::of(home.root()), report };
    let text = serde_json::to_string_pretty(&kept).context("writing the result as JSON")?;
    fs::write(&file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
    say(format_args!("kept in {}", file.display()));
    Ok(())
}

/// Says how old the newest result is; fails where it is too old, or where something had not held.
pub(crate) fn check(home: &Home) -> anyhow::Result<()> {
    let Some((day, file)) = newest(&folder(home))? else {
        bail!("docs/results holds no result of `cargo xtask chaos all`: run it and commit what it writes");
    };
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let known: Known =
        serde_json::from_str(&text).with_context(|| format!("understanding {}", file.display()))?;
    let age = Day::today().0 - day.0;
    let since = known.commit.as_deref().and_then(|commit| commits_since(home.root(), commit));
    let since = since.map_or_else(|| "an unknown number of".to_owned(), |commits| commits.to_string());
    say(format_args!("chaos ran as a whole {age} days and {since} commits ago"));
    judge(&known.report, age)
}

fn judge(report: &Report, age: i64) -> anyhow::Result<()> {
    let faults = report.faults.iter().filter(|fault| !fault.passed).map(|fault| fault.id.as_str());
    let controls =
        report.controls.iter().filter(|control| !control.caught).map(|control| control.name.as_str());
    let failed: Vec<&str> = faults.chain(controls).collect();
    ensure!(failed.is_empty(), "the newest result of chaos says that these failed: {}", failed.join(", "));
    ensure!(
        age <= OLDEST,
        "the newest result of chaos is {age} days old and may be {OLDEST}: run `cargo xtask chaos all`"
    );
    Ok(())
}

fn folder(home: &Home) -> PathBuf {
    home.root().join("docs/results")
}

fn newest(folder: &Path) -> anyhow::Result<Option<(Day, PathBuf)>> {
    if !folder.exists() {
        return Ok(None);
    }
    let files = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let dated = files.flatten().filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let day = Day::parse(name.strip_prefix(PREFIX)?.strip_suffix(".json")?)?;
        Some((day, file.path()))
    });
    Ok(dated.max_by_key(|(day, _)| *day))
}

/// Nothing where the commit is not known here.
fn commits_since(root: &Path, commit: &str) -> Option<u64> {
    let commit = commit.trim_end_matches("-dirty");
    let mut count = Command::new("git");
    count.args(["rev-list", "--count", &format!("{commit}..HEAD")]).current_dir(root);
    command::output(&mut count).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: bool, caught: bool) -> Report {
        Report {
            faults: vec![Fault { id: "F01".into(), passed }],
            controls: vec![Control { name: "fence".into(), caught }],
        }
    }

    #[test]
    fn a_result_that_is_old_or_bad_is_refused() {
        assert!(judge(&report(true, true), OLDEST).is_ok());
        assert!(judge(&report(true, true), OLDEST + 1).is_err());
        assert!(judge(&report(false, true), 0).is_err());
        assert!(judge(&report(true, false), 0).is_err());
    }

    #[test]
    fn the_newest_by_its_name_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["chaos-2026-11-30.json", "chaos-2026-12-01.json", "chaos-soon.json", "other.json"] {
            fs::write(folder.path().join(name), "{}").expect("written");
        }

        let found = newest(folder.path()).expect("readable").map(|(day, _)| day.name());

        assert_eq!(found.as_deref(), Some("2026-12-01"));
        assert_eq!(newest(&folder.path().join("nothing")).expect("readable"), None);
    }
}
