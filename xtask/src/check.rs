//! `cargo xtask check`: what must hold of the source before a change lands. CI calls the same.

mod dependencies;
mod layers;

use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;

use crate::chaos::results;
use crate::home::Home;
use crate::terminal::say;
use crate::workspace::{self, Metadata};
use crate::{command, sql};

/// Check the source, stopping at the first step that fails
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run one step alone
    #[arg(long, value_name = "NAME")]
    only: Option<Step>,
}

/// In the order they run: the quick ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// rustfmt would change nothing
    Format,
    /// Dependencies point to lower ranks only
    Layers,
    /// Owners, sources, versions, licences, one TLS provider
    Dependencies,
    /// No lint of clippy, in tests either
    Clippy,
    /// The committed SQL cache is what the macros would write
    Sql,
    /// Contract, .env.example and metric table agree
    Stage,
    /// The newest whole run of chaos held and is not too old
    Chaos,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let steps = args.only.as_ref().map_or(Step::value_variants(), std::slice::from_ref);
    for step in steps {
        let began = Instant::now();
        step.run(home).map_err(|error| error.context(format!("check `{}` failed", step.name())))?;
        say(format_args!("check {:12} ok in {:.1} s", step.name(), began.elapsed().as_secs_f64()));
    }
    say(format_args!("all checks passed in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn run(self, home: &Home) -> anyhow::Result<()> {
        match self {
            Self::Format => cargo(home, &["fmt", "--all", "--check"]),
            Self::Layers => layers::check(&Metadata::read(home.root())?),
            Self::Dependencies => dependencies::check(&Metadata::read(home.root())?),
            Self::Clippy => {
                cargo(home, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
            }
            Self::Sql => sql::run(home, &sql::Args::to_check()).map(|_| ()),
            Self::Stage => cargo(
                home,
                &["run", "--quiet", "--locked", "-p", "tests", "--bin", "lab", "--", "stage-check"],
            ),
            Self::Chaos => results::check(home),
        }
    }
}

fn cargo(home: &Home, arguments: &[&str]) -> anyhow::Result<()> {
    command::run(workspace::cargo(home.root()).args(arguments))
}

/// All that a check found, or that there is nothing.
fn verdict(problems: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(problems.is_empty(), "\n  {}", problems.join("\n  "));
    Ok(())
}
