//! Where things are: the names of all files under `.spillway/` and of the programs that are started.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The folder of what the commands make, relative to the checkout.
pub(crate) const FOLDER: &str = ".spillway";

/// A checkout and its `.spillway/`.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    pub(crate) fn env(&self) -> PathBuf {
        self.folder().join("env")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder().join("state.json")
    }

    pub(crate) fn secrets(&self) -> PathBuf {
        self.folder().join("secrets")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder().join("logs")
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs().join(format!("{name}.log"))
    }

    pub(crate) fn sandbox_record(&self) -> PathBuf {
        self.folder().join("sandbox/calls.jsonl")
    }

    pub(crate) fn demo(&self) -> PathBuf {
        self.folder().join("demo/snaptrade.json")
    }

    pub(crate) fn tests(&self) -> PathBuf {
        self.folder().join("test")
    }

    pub(crate) fn tests_lock(&self) -> PathBuf {
        self.tests().join("lock")
    }

    pub(crate) fn bench(&self) -> PathBuf {
        self.folder().join("bench")
    }

    /// The programs of chaos drills, which hold crash points.
    pub(crate) fn chaos_programs(&self) -> PathBuf {
        self.folder().join("chaos/bin")
    }

    /// What the last run of chaos came to.
    pub(crate) fn chaos_report(&self) -> PathBuf {
        self.folder().join("chaos/report.json")
    }

    pub(crate) fn bench_lock(&self) -> PathBuf {
        self.bench().join("lock")
    }

    /// For servers that run as a user who can't reach the checkout. The name depends on nothing but the
    /// checkout's path, so `down` finds what another session's `up` made.
    pub(crate) fn outside(&self) -> PathBuf {
        let hash = fnv1a(self.root.as_os_str().as_encoded_bytes());
        PathBuf::from(format!("/var/tmp/spillway-{hash:016x}"))
    }

    /// A program that `cargo build` made.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target().join("debug").join(name)
    }

    /// A program that `cargo build --release` made.
    pub(crate) fn release_program(&self, name: &str) -> PathBuf {
        self.target().join("release").join(name)
    }

    fn target(&self) -> PathBuf {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        self.root.join(target)
    }

    /// The path as a person in the checkout's root would type it.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Held while processes are started or stopped, so that no two commands do it at once.
    pub(crate) fn lock(&self) -> anyhow::Result<File> {
        lock(&self.folder().join("lock"), "`cargo xtask up` or `down`")
    }

    /// Held while a bench or a drill runs, chaos drills too: two at a time would measure one another.
    pub(crate) fn lock_bench(&self) -> anyhow::Result<File> {
        lock(&self.bench_lock(), "`cargo xtask bench`, `spike` or `chaos`")
    }
}

fn lock(path: &Path, holder: &str) -> anyhow::Result<File> {
    let file = open_lock(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another {holder} is at work in this checkout: wait for it, or end it")
        }
        Err(TryLockError::Error(source)) => {
            Err(source).with_context(|| format!("locking {}", path.display()))
        }
    }
}

/// Opens a lock file, with the folder around it.
pub(crate) fn open_lock(path: &Path) -> anyhow::Result<File> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))
}

/// The standard library's hasher may change between releases; this must not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_checkouts_have_two_places_outside() {
        let one = Home::new("/home/ada/spillway".into());
        let two = Home::new("/home/bob/spillway".into());

        assert_ne!(one.outside(), two.outside());
    }

    #[test]
    fn the_place_outside_stays_the_same_for_ever() {
        let home = Home::new("/home/ada/spillway".into());

        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert!(home.outside().starts_with("/var/tmp"));
    }

    #[test]
    fn paths_are_shown_as_typed_in_the_checkout() {
        let home = Home::new("/home/ada/spillway".into());

        assert_eq!(home.relative(&home.env()), ".spillway/env");
    }

    #[test]
    fn a_second_command_is_refused_while_the_first_holds_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::new(folder.path().to_owned());
        let _first = home.lock().expect("nobody holds it");

        assert!(home.lock().is_err());
    }
}
