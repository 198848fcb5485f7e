//! What was read, for people: the mistakes in one message, or the values in force with secrets masked.

use std::fmt;

/// Settings that are unset or wrong. Its text names each of them and never holds a secret's value.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    pub(crate) mistakes: Vec<Mistake>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) name: String,
    pub(crate) sentence: String,
}

impl Error {
    /// The names of the settings that are unset or wrong.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.mistakes.iter().map(|mistake| mistake.name.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.mistakes.len() == 1 { "1 setting is" } else { "settings are" };
        if self.mistakes.len() > 1 {
            write!(f, "{} ", self.mistakes.len())?;
        }
        write!(f, "{subject} unset or wrong (each is explained in .env.example):")?;
        self.mistakes.iter().try_for_each(|mistake| write!(f, "\n  {}: {}", mistake.name, mistake.sentence))
    }
}

/// The settings that a process read, in the order in which it asked, secrets masked.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub(crate) values: Vec<(&'static str, String)>,
    pub(crate) unknown: Vec<String>,
}

impl Shown {
    /// Names that start with our prefix and that no setting has. Worth one line in the log.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    pub(crate) fn note(&mut self, name: &'static str, value: String) {
        if self.values.iter().all(|(known, _)| *known != name) {
            self.values.push((name, value));
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}"))?;
        self.unknown.iter().try_for_each(|name| writeln!(f, "# unknown, ignored: {name}"))
    }
}

/// A value that may be shown, short enough for a line and free of control characters.
pub(crate) fn shown(value: &str) -> String {
    const LONGEST: usize = 80;
    let mut text: String = value.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if value.chars().count() > LONGEST {
        text.push('…');
    }
    text
}
