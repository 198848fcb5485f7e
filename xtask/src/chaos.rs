//! `cargo xtask chaos`: whether the platform holds whatever fault it meets, and whether a missing guard is noticed.
//!
//! This builds programs with crash points, apart from those that `up` starts, and starts a Postgres as the tests do; the
//! faults are made and judged by `lab chaos`.

pub(crate) mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context;

use crate::home::Home;
use crate::rig::{EVERY, Profile};
use crate::terminal::say;
use crate::test::Servers;
use crate::workspace::{self, Metadata};
use crate::{command, postgres, rig};

/// Whose programs are built with crash points.
const PACKAGES: [&str; 4] = ["gateway", "webhook-worker", "spillway", "tests"];

/// Where the drills look for these programs.
const PROGRAMS_KEY: &str = "SPILLWAY_CHAOS_BIN";

/// Let faults happen to programs that hold crash points, and check that everything held
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which fault or control, or `all`
    #[arg(default_value = EVERY)]
    name: String,

    /// Repeat a run with the seed that its report names
    #[arg(long)]
    seed: Option<u32>,

    /// How many faults, and how long
    #[arg(long, value_enum)]
    tier: Option<Tier>,

    /// How long a soak lasts
    #[arg(long, value_name = "M")]
    minutes: Option<u32>,

    /// Write the report as JSON to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Passed to `lab chaos`
    #[arg(last = true, value_name = "ARGS")]
    lab: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Tier {
    /// The faults of money and loss, each once
    Smoke,
    /// Every fault and every control
    Full,
    /// Random faults by seed
    Soak,
}

impl Args {
    fn of(name: &str) -> Self {
        Self { name: name.to_owned(), seed: None, tier: None, minutes: None, json: None, lab: Vec::new() }
    }

    /// Everything, which is a result to be kept.
    fn is_whole(&self) -> bool {
        self.name == EVERY && matches!(self.tier, None | Some(Tier::Full))
    }
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let _lock = home.lock_bench()?;
    build(home)?;
    let servers = Servers::start(home)?;
    let own = home.chaos_report();
    postgres::remove(&own)?;
    let mut lab = lab(home, args);
    servers.tell(lab.arg("--json").arg(&own));
    let status = command::status(&mut lab)?;
    if let Some(report) = rig::read_raw(&own)? {
        if let Some(file) = &args.json {
            fs::copy(&own, file).with_context(|| format!("writing {}", file.display()))?;
        }
        if args.is_whole() {
            results::keep(home, &report)?;
        }
    }
    Ok(ExitCode::from(command::exit_code(status)))
}

/// The smoke tier, for `cargo xtask test`.
pub(crate) fn smoke(home: &Home, servers: &Servers) -> anyhow::Result<ExitStatus> {
    let _lock = home.lock_bench()?;
    build(home)?;
    let mut lab = lab(home, &Args { tier: Some(Tier::Smoke), ..Args::of(EVERY) });
    servers.tell(&mut lab);
    command::status(&mut lab)
}

fn lab(home: &Home, args: &Args) -> Command {
    let programs = home.chaos_programs();
    let mut lab = Command::new(programs.join("lab"));
    lab.args(["chaos", &args.name]).env(PROGRAMS_KEY, &programs);
    if let Some(seed) = args.seed {
        lab.args(["--seed", &seed.to_string()]);
    }
    if let Some(tier) = args.tier {
        lab.args(["--tier", tier.word()]);
    }
    if let Some(minutes) = args.minutes {
        lab.args(["--minutes", &minutes.to_string()]);
    }
    lab.args(&args.lab);
    lab
}

impl Tier {
    const fn word(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Full => "full",
            Self::Soak => "soak",
        }
    }
}

/// Builds the programs with crash points, puts copies of them aside, and builds the ordinary ones again, whatever became
/// of the others: what lies in the target folder is what `up` starts and what tests look at.
pub(crate) fn build(home: &Home) -> anyhow::Result<()> {
    say("building with crash points");
    let mut cargo = workspace::cargo(home.root());
    cargo.args(["build", "--locked", "--bins", "--features", "chaos"]);
    for package in PACKAGES {
        cargo.args(["-p", package]);
    }
    let put_aside = command::run(&mut cargo).and_then(|()| put_aside(home));
    rig::build(home, Profile::Dev)?;
    put_aside
}

fn put_aside(home: &Home) -> anyhow::Result<()> {
    let folder = home.chaos_programs();
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for name in programs(&Metadata::read(home.root())?) {
        copy(&home.program(&name), &folder.join(&name))?;
    }
    Ok(())
}

fn programs(metadata: &Metadata) -> Vec<String> {
    let ours = metadata.members().filter(|package| PACKAGES.contains(&package.name.as_str()));
    let programs = ours.flat_map(|package| &package.targets).filter(|target| target.kind == ["bin"]);
    programs.map(|program| program.name.clone()).collect()
}

/// Whole or not at all: a drill that is running goes on with the program that it has.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let unfinished = to.with_extension("new");
    fs::copy(from, &unfinished)
        .and_then(|_| fs::rename(&unfinished, to))
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::*;
    use crate::workspace::{Package, Target};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn arguments(given: &[&str]) -> Vec<String> {
        let args = Cli::parse_from(["chaos"].iter().chain(given)).args;
        let lab = lab(&Home::new("/checkout".into()), &args);
        lab.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_was_asked_for_reaches_lab() {
        assert_eq!(arguments(&[]), ["chaos", "all"]);
        assert_eq!(
            arguments(&["F07", "--seed", "7", "--tier", "soak", "--minutes", "5", "--", "--x"]),
            ["chaos", "F07", "--seed", "7", "--tier", "soak", "--minutes", "5", "--x"]
        );
    }

    #[test]
    fn a_tier_is_passed_on_by_the_word_that_named_it() {
        for tier in Tier::value_variants() {
            assert_eq!(tier.to_possible_value().expect("none is hidden").get_name(), tier.word());
        }
    }

    #[test]
    fn every_program_of_the_packages_is_put_aside_and_no_other() {
        let target = |kind: &str, name: &str| Target { name: name.into(), kind: vec![kind.into()] };
        let package = |name: &str, targets: Vec<Target>| Package {
            id: name.into(),
            name: name.into(),
            targets,
            ..Package::default()
        };
        let tests =
            vec![target("lib", "lab"), target("bin", "lab"), target("test", "flow"), target("bin", "probe")];
        let packages = vec![
            package("gateway", vec![target("bin", "gateway")]),
            package("tests", tests),
            package("xtask", vec![target("bin", "xtask")]),
        ];
        let workspace_members = packages.iter().map(|package| package.id.clone()).collect();
        let metadata = Metadata { packages, workspace_members, ..Metadata::default() };

        assert_eq!(programs(&metadata), ["gateway", "lab", "probe"]);
    }

    #[test]
    fn a_copy_replaces_an_older_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("new-one"), folder.path().join("kept"));
        fs::write(&from, "new").expect("written");
        fs::write(&to, "old").expect("written");

        copy(&from, &to).expect("copied");

        assert_eq!(fs::read_to_string(&to).expect("there"), "new");
    }
}
