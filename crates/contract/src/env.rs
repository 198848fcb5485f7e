//! The names of the settings. Sentences and values are in `.env.example`; a check compares the two.
//!
//! A key has no default in code: what `.env.example` shows is what an operator copies, reads and changes.

pub mod keys;

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The environment variable.
    pub name: &'static str,
    /// What its value is measured in.
    pub unit: Unit,
    /// Whether a process that uses it can do without.
    pub presence: Presence,
}

/// What a value is, and what it is measured in; `.env.example` repeats it in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `true` or `false`.
    Switch,
    /// A number of things.
    Count,
    /// A number of bytes.
    Bytes,
    /// A duration.
    Milliseconds,
    /// A duration.
    Seconds,
    /// `ADDRESS:PORT` to listen on.
    Listen,
    /// A URL that holds nothing secret.
    Url,
    /// A URL that holds a password.
    SecretUrl,
    /// A token or password of at least 16 characters, taken literally.
    Secret,
    /// `NAME=SECRET` pairs with commas between them, taken literally; a name may stand there more than once.
    SecretList,
    /// 32 bytes in base64.
    SecretKey,
    /// A name, taken literally.
    Text,
    /// Log directives, such as `info,store=debug`.
    LogFilter,
    /// `json` or `pretty`.
    LogFormat,
    /// `none` or `transaction`.
    Pooler,
}

impl Unit {
    /// The word in brackets behind a key's sentence in `.env.example`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Switch => "true|false",
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Listen => "address:port",
            Self::Url => "url",
            Self::SecretUrl => "url, secret",
            Self::Secret => "secret",
            Self::SecretList => "NAME=secret,NAME=secret",
            Self::SecretKey => "32 bytes in base64, secret",
            Self::Text => "text",
            Self::LogFilter => "filter",
            Self::LogFormat => "json|pretty",
            Self::Pooler => "none|transaction",
        }
    }

    /// True where the value must never be shown.
    pub const fn is_secret(self) -> bool {
        matches!(self, Self::SecretUrl | Self::Secret | Self::SecretList | Self::SecretKey)
    }
}

/// Whether a process can do without a setting that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Unset stops the process by name.
    Required,
    /// Unset means what the key's sentence says.
    Optional,
}

/// Every setting starts with it.
pub const PREFIX: &str = "SANMOPIA_";

/// A misspelt concurrency must not go unnoticed, so unknown names with this prefix are always refused.
pub const WORKER_PREFIX: &str = "SANMOPIA_WORKER_";

/// The value that `.env.example` shows for a secret; a process refuses to start with it.
pub const PLACEHOLDER: &str = "change-me";

#[cfg(test)]
mod tests {
    use super::keys::ALL;
    use super::*;

    #[test]
    fn names_are_distinct_and_carry_the_prefix() {
        for (i, key) in ALL.iter().enumerate() {
            assert!(key.name.starts_with(PREFIX), "{}", key.name);
            assert!(ALL[i + 1..].iter().all(|other| other.name != key.name), "{} twice", key.name);
        }
    }

    #[test]
    fn a_name_that_counts_time_or_bytes_says_so() {
        for key in ALL {
            let suffix = match key.unit {
                Unit::Milliseconds => "_MS",
                Unit::Seconds => "_SECONDS",
                Unit::Bytes => "_BYTES",
                _ => continue,
            };
            assert!(key.name.ends_with(suffix), "{}", key.name);
        }
    }
}
