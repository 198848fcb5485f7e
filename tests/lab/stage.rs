//! `lab stage-check`: contract, `.env.example`, metric table, migrations and documents say the same.
//!
//! Each rule is a function from texts to violations, so that a test can break it once and see it caught.

mod documents;
mod env_example;
mod tables;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Checks that contract, .env.example, metric table and documents agree.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The checkout.
    #[arg(long, default_value = ".")]
    root: PathBuf,
}

/// A rule that is broken at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Relative to the checkout.
    pub file: String,
    /// Counted from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A text file of the checkout.
#[derive(Clone, Debug)]
pub struct Source {
    /// Relative to the checkout.
    pub file: String,
    /// Its content.
    pub text: String,
}

impl Source {
    fn read(root: &Path, file: &str) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"))?;
        Ok(Self { file: file.to_owned(), text })
    }

    fn violation(&self, line: usize, what: impl Into<String>) -> Violation {
        Violation { file: self.file.clone(), line, what: what.into() }
    }
}

/// Prints every violation, one a line.
#[expect(clippy::print_stdout, reason = "this is what the program is for")]
pub fn run(args: &Args) -> anyhow::Result<()> {
    let violations = check(&args.root)?;
    for violation in &violations {
        println!("{violation}");
    }
    ensure!(violations.is_empty(), "{} violations", violations.len());
    println!("contract, .env.example, metric table, migrations and documents agree");
    Ok(())
}

/// All rules over a checkout.
pub fn check(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let mut violations = env_example::check(&Source::read(root, ".env.example")?);
    let migrations = sources(root, "migrations", "sql")?;
    violations.extend(tables::retention(&migrations, &Source::read(root, "migrations/README.md")?));
    violations.extend(documents::runbook(&Source::read(root, "docs/runbook.md")?));
    violations.extend(documents::members(root, &Source::read(root, "docs/architecture.md")?)?);
    let mut documents = sources(root, "docs", "md")?;
    for file in ["README.md", "migrations/README.md"] {
        documents.push(Source::read(root, file)?);
    }
    for document in &documents {
        violations.extend(documents::names(root, document));
    }
    Ok(violations)
}

/// The files below `folder` that end in `.extension`, in order.
fn sources(root: &Path, folder: &str, extension: &str) -> anyhow::Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                found.push(Source::read(root, &file)?);
            }
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}
