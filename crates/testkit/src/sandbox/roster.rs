//! The users that the sandbox knows, as a file that several programs can share.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Error;

/// A SnapTrade user with the accounts of all its connections.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnaptradeUser {
    /// The id that we gave the user.
    pub user_id: String,
    /// The secret that SnapTrade gave back.
    pub user_secret: String,
    /// The accounts, which no other user may read.
    pub accounts: Vec<Uuid>,
}

/// The file `{"users":[{"user_id":"…","user_secret":"…","accounts":["…"]}]}`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// Everyone who is known.
    pub users: Vec<SnaptradeUser>,
}

impl Roster {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text =
            std::fs::read(path).map_err(|source| Error::ReadRoster { path: path.to_owned(), source })?;
        serde_json::from_slice(&text).map_err(|source| Error::ParseRoster { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roster_is_read_from_its_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let text = r#"{"users":[{"user_id":"u-1","user_secret":"s-1",
            "accounts":["45a3056a-eef6-4904-a68e-d3f90c3e07c5"]}]}"#;
        std::fs::write(file.path(), text).expect("writing it");

        let roster = Roster::read(file.path()).expect("a roster");

        assert_eq!(roster.users.len(), 1);
        assert_eq!(roster.users[0].accounts.len(), 1);
    }

    #[test]
    fn a_roster_that_is_not_there_is_named_in_the_error() {
        let error = Roster::read(Path::new("/nowhere/roster.json")).err().expect("no such file");

        assert_eq!(error.to_string(), "reading the roster /nowhere/roster.json");
    }
}
