//! Passwords and keys made at the first start and kept, so that data written yesterday stays readable.

use std::path::PathBuf;

use crate::env_file::{self, Values};
use crate::private_file;

/// The secrets of one private instance, in a file of its own.
#[derive(Debug)]
pub(crate) struct Secrets {
    path: PathBuf,
    kept: Values,
}

impl Secrets {
    pub(crate) fn load(path: PathBuf) -> anyhow::Result<Self> {
        let kept = env_file::read(&path)?.unwrap_or_default();
        Ok(Self { path, kept })
    }

    /// The secret of that name, if it was made already.
    pub(crate) fn kept(&self, name: &str) -> Option<&str> {
        self.kept.get(name).map(String::as_str)
    }

    /// The secret of that name. Made on first use, and on disk before anything relies on it.
    pub(crate) fn get(
        &mut self,
        name: &str,
        make: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        if let Some(kept) = self.kept.get(name) {
            return Ok(kept.clone());
        }
        let secret = make()?;
        self.kept.insert(name.to_owned(), secret.clone());
        private_file::write(&self.path, &env_file::render(&self.kept)?)?;
        Ok(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn a_secret_is_the_same_at_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secrets");
        let make = || random::hex(24);
        let first =
            Secrets::load(path.clone()).and_then(|mut secrets| secrets.get("TOKEN", make)).expect("made");

        let second = Secrets::load(path).and_then(|mut secrets| secrets.get("TOKEN", make)).expect("kept");

        assert_eq!(first, second);
    }
}
