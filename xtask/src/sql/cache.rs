//! The files of a SQL cache, one per statement, and how two caches differ.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::postgres;

/// Contents by file name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cache(BTreeMap<String, String>);

impl Cache {
    /// A folder that does not exist is an empty cache.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let reading = || format!("reading {}", folder.display());
        if !folder.exists() {
            return Ok(Self::default());
        }
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let contents = fs::read_to_string(entry.path()).with_context(reading)?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), contents);
        }
        Ok(Self(files))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes the folder hold these files and no others.
    pub(super) fn replace(&self, folder: &Path) -> anyhow::Result<()> {
        postgres::remove(folder)?;
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        for (name, contents) in &self.0 {
            let path = folder.join(name);
            fs::write(&path, contents).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// Numbers of files that one cache has and the other has not, or has with other contents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    added: usize,
    changed: usize,
    removed: usize,
}

impl Difference {
    pub(super) fn between(before: &Cache, after: &Cache) -> Self {
        let missing =
            |from: &Cache, other: &Cache| from.0.keys().filter(|name| !other.0.contains_key(*name)).count();
        let differs =
            |(name, contents): &(&String, &String)| before.0.get(*name).is_some_and(|old| old != *contents);
        Self {
            added: missing(after, before),
            changed: after.0.iter().filter(differs).count(),
            removed: missing(before, after),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} new, {} changed, {} gone", self.added, self.changed, self.removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(files: &[(&str, &str)]) -> Cache {
        Cache(files.iter().map(|(name, contents)| ((*name).to_owned(), (*contents).to_owned())).collect())
    }

    #[test]
    fn equal_caches_do_not_differ() {
        let one = cache(&[("a", "1")]);

        assert!(Difference::between(&one, &cache(&[("a", "1")])).is_empty());
    }

    #[test]
    fn new_changed_and_gone_statements_are_counted_apart() {
        let before = cache(&[("same", "1"), ("changed", "1"), ("gone", "1")]);
        let after = cache(&[("same", "1"), ("changed", "2"), ("new", "1")]);

        assert_eq!(Difference::between(&before, &after).to_string(), "1 new, 1 changed, 1 gone");
    }

    #[test]
    fn a_replaced_cache_holds_no_stale_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".sqlx");
        cache(&[("stale", "1"), ("kept", "1")]).replace(&path).expect("written");

        cache(&[("kept", "2")]).replace(&path).expect("written");

        assert_eq!(Cache::read(&path).expect("readable"), cache(&[("kept", "2")]));
    }
}
