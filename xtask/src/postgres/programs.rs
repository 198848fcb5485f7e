//! Finds the server's programs, which most systems keep outside the PATH.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::install;
use crate::command;
use crate::home::Home;

/// The oldest version whose SQL the migrations may use.
pub(crate) const OLDEST: u32 = 15;
const NEEDED: [&str; 3] = ["initdb", "postgres", "psql"];

/// One installed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    folder: PathBuf,
    /// The major version.
    pub(crate) version: u32,
}

impl Programs {
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// Whether the server can load that library at its start.
    pub(crate) fn has_library(&self, name: &str) -> bool {
        let folder = command::output(Command::new(self.path("pg_config")).arg("--pkglibdir"));
        let has = |folder: &str, suffix: &str| Path::new(folder).join(format!("{name}.{suffix}")).is_file();
        folder.is_ok_and(|folder| ["so", "dylib"].iter().any(|suffix| has(folder.trim(), suffix)))
    }

    fn at(folder: PathBuf) -> Option<Self> {
        if !NEEDED.iter().all(|program| folder.join(program).is_file()) {
            return None;
        }
        let said = command::output(Command::new(folder.join("postgres")).arg("--version")).ok()?;
        Some(Self { version: major(&said)?, folder })
    }
}

/// All usable versions, the preferred one first. Installs Postgres where none is found and the system
/// lets us.
pub(crate) fn find_or_install(home: &Home) -> anyhow::Result<Vec<Programs>> {
    let mut found = usable(&candidates());
    if found.is_empty() {
        install::postgres(home)?;
        found = usable(&candidates());
    }
    if found.is_empty() {
        bail!(install::cure());
    }
    Ok(found)
}

/// The version that made the data, else the preferred one.
pub(crate) fn for_data(found: Vec<Programs>, data: &Path) -> anyhow::Result<Programs> {
    match fs::read_to_string(data.join("PG_VERSION")) {
        Ok(version) => of_version(found, version.trim()),
        Err(_) => found.into_iter().next().with_context(install::cure),
    }
}

fn of_version(found: Vec<Programs>, version: &str) -> anyhow::Result<Programs> {
    let Some(programs) = found.into_iter().find(|programs| programs.version.to_string() == version) else {
        bail!(
            "the private data were made by Postgres {version}, which is no longer installed: install it again, \
             or drop the data with `cargo xtask down --wipe`"
        );
    };
    Ok(programs)
}

/// Folders that may hold the programs: the PATH's version first, then the newest.
fn candidates() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Ok(bindir) = command::output(Command::new("pg_config").arg("--bindir")) {
        folders.push(PathBuf::from(bindir.trim()));
    }
    folders.extend(versioned("/usr/lib/postgresql", ""));
    folders.extend(versioned("/opt/homebrew/opt", "postgresql@"));
    folders.extend(versioned("/usr/local/opt", "postgresql@"));
    folders
}

/// `parent/PREFIX<version>/bin`, the newest version first.
fn versioned(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut versions: Vec<u32> =
        names.filter_map(|name| name.to_str()?.strip_prefix(prefix)?.parse().ok()).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.into_iter().map(|version| Path::new(parent).join(format!("{prefix}{version}/bin"))).collect()
}

fn usable(folders: &[PathBuf]) -> Vec<Programs> {
    let programs = folders.iter().filter_map(|folder| Programs::at(folder.clone()));
    programs.filter(|programs| programs.version >= OLDEST).collect()
}

/// From `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn major(said: &str) -> Option<u32> {
    let version =
        said.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    let digits = version.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(version: u32) -> Programs {
        Programs { folder: format!("/usr/lib/postgresql/{version}/bin").into(), version }
    }

    #[test]
    fn the_major_version_is_read_from_every_spelling() {
        assert_eq!(major("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta2"), Some(18));
        assert_eq!(major("no version"), None);
    }

    #[test]
    fn data_are_opened_by_the_version_that_made_them() {
        let programs = of_version(vec![installed(17), installed(15)], "15").expect("15 is there");

        assert_eq!(programs, installed(15));
    }

    #[test]
    fn data_of_a_version_that_is_gone_name_the_cure() {
        let error = of_version(vec![installed(17)], "15").expect_err("only 17 is there");

        assert!(error.to_string().contains("down --wipe"));
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        let parent = tempfile::tempdir().expect("a folder");
        for name in ["9", "15", "17", "common"] {
            fs::create_dir(parent.path().join(name)).expect("a folder");
        }

        let found = versioned(parent.path().to_str().expect("plain"), "");

        let expected: Vec<PathBuf> =
            ["17", "15", "9"].map(|name| parent.path().join(name).join("bin")).into();
        assert_eq!(found, expected);
    }
}
