//! The sandbox, and the SnapTrade user with ten accounts that it knows and the platform has linked.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::environment::SNAPTRADE_BASE_URL;
use super::platform::{Platform, Urls};
use crate::env_file::Values;
use crate::terminal::say;
use crate::{private_file, random, state};

const USER: &str = "demo-user";
const ACCOUNTS: usize = 10;
const SECRET_BYTES: usize = 24;

/// What `spillway load snaptrade` and the sandbox's `--snaptrade-users` read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Demo {
    pub(crate) users: Vec<User>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    #[serde(rename = "user_id")]
    pub(crate) id: String,
    #[serde(rename = "user_secret")]
    secret: String,
    pub(crate) accounts: Vec<String>,
}

impl Demo {
    pub(crate) fn load(path: &Path) -> anyhow::Result<Option<Self>> {
        let Some(text) = private_file::read(path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).with_context(|| format!("reading {}", path.display()))
    }

    /// Made once: the ids are in the database and in people's notes from then on.
    fn load_or_make(path: &Path) -> anyhow::Result<Self> {
        if let Some(demo) = Self::load(path)? {
            return Ok(demo);
        }
        let accounts = (0..ACCOUNTS).map(|_| random::uuid()).collect::<anyhow::Result<_>>()?;
        let user = User { id: USER.to_owned(), secret: random::hex(SECRET_BYTES)?, accounts };
        let demo = Self { users: vec![user] };
        private_file::write(path, &serde_json::to_string_pretty(&demo).context("writing the demo as JSON")?)?;
        Ok(demo)
    }
}

/// Starts the sandbox and loads its user into the platform, which is the same however often it is done.
pub(super) fn start_sandbox(platform: &mut Platform<'_>, settings: &Values) -> anyhow::Result<()> {
    let home = platform.home();
    Demo::load_or_make(&home.demo())?;
    let (record, users) = (home.relative(&home.sandbox_record()), home.relative(&home.demo()));
    let folder = home.sandbox_record().with_file_name("");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;

    say("starting the sandbox");
    let url = settings[SNAPTRADE_BASE_URL].clone();
    let listen = url.trim_start_matches("http://");
    let mut lab = Command::new(home.program("lab"));
    lab.args(["sandbox", "--listen", listen, "--record", &record, "--snaptrade-users", &users]);
    let urls = Urls { public: Some(url.clone()), internal: None };
    platform.start((state::SANDBOX, state::SANDBOX), &mut lab, settings, urls)?;
    platform.wait_until_ok(state::SANDBOX, &url, "/livez")?;
    platform.spillway("load", &["load", "snaptrade", &users], settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_user_is_the_same_at_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("demo/snaptrade.json");
        let first = Demo::load_or_make(&path).expect("made");

        assert_eq!(Demo::load_or_make(&path).expect("kept"), first);
        assert_eq!(first.users[0].accounts.len(), ACCOUNTS);
    }
}
