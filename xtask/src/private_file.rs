//! Files that only their owner may read, replaced whole so that a reader never sees half of one.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

const OWNER_ONLY: u32 = 0o600;

/// Writes `contents` to `path` with mode 0600, making the folder around it.
pub(crate) fn write(path: &Path, contents: &str) -> anyhow::Result<()> {
    let unfinished = path.with_extension("new");
    replace(path, &unfinished, contents).with_context(|| format!("writing {}", path.display()))
}

/// The contents, or nothing when there is no such file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Opens a log that grows.
pub(crate) fn append(path: &Path) -> anyhow::Result<File> {
    make_folder(path)
        .and_then(|()| File::options().append(true).create(true).mode(OWNER_ONLY).open(path))
        .with_context(|| format!("opening {}", path.display()))
}

fn replace(path: &Path, unfinished: &Path, contents: &str) -> std::io::Result<()> {
    make_folder(path)?;
    // A left-over of a killed run may have another mode, and the mode is only set on creation.
    if unfinished.exists() {
        fs::remove_file(unfinished)?;
    }
    let mut file = File::options().write(true).create_new(true).mode(OWNER_ONLY).open(unfinished)?;
    file.write_all(contents.as_bytes())?;
    fs::rename(unfinished, path)
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nobody_else_may_read_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/env");
        fs::create_dir_all(folder.path().join("deep")).expect("a folder");
        fs::write(&path, "open to all").expect("a file");

        write(&path, "secret").expect("written");

        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).expect("readable").as_deref(), Some("secret"));
    }

    #[test]
    fn a_missing_file_is_nothing_rather_than_an_error() {
        let folder = tempfile::tempdir().expect("a folder");

        assert_eq!(read(&folder.path().join("none")).expect("no error"), None);
    }
}
