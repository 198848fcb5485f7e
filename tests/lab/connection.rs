//! How `lab` finds a running platform: the caller's environment, else the file that `cargo xtask up` writes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

/// Where `up` writes the settings in force.
const ENV_FILE: &str = ".spillway/env";

/// The settings of the platform to talk to.
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// These.
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// The environment's settings where it has any, else those of the platform of this checkout.
    pub fn find() -> anyhow::Result<Self> {
        let own: BTreeMap<String, String> =
            std::env::vars().filter(|(name, _)| name.starts_with(contract::env::PREFIX)).collect();
        if !own.is_empty() {
            return Ok(Self(own));
        }
        let path = Path::new(ENV_FILE);
        if !path.exists() {
            bail!(
                "no {}* in the environment and no {ENV_FILE}: start a platform with `cargo xtask up`",
                contract::env::PREFIX
            );
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {ENV_FILE}"))?;
        Ok(Self(text.lines().filter_map(assignment).collect()))
    }

    /// A setting's value.
    pub fn get(&self, name: &str) -> anyhow::Result<&str> {
        self.0.get(name).map(String::as_str).with_context(|| format!("{name} is not set"))
    }

    /// All of them.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Where a listener is reached from this machine.
    pub fn url_of_listener(&self, name: &str) -> anyhow::Result<String> {
        let address = self.get(name)?.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "127.0.0.1:");
        Ok(format!("http://{address}"))
    }
}

/// `NAME=VALUE`; a value that a shell would change stands in single quotes.
fn assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.trim().split_once('=').filter(|_| !line.starts_with('#'))?;
    let quoted = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let value = quoted.map_or_else(|| value.to_owned(), |inner| inner.replace(r"'\''", "'"));
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_what_a_shell_would_make_of_it() {
        let value = |line: &str| assignment(line).map(|(_, value)| value);

        assert_eq!(value("A=b").as_deref(), Some("b"));
        assert_eq!(value(r"A='it'\''s = {x}'").as_deref(), Some("it's = {x}"));
        assert_eq!(value("# A=b"), None);
        assert_eq!(value(""), None);
    }
}
