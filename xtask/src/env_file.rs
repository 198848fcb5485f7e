//! Reads `.env.example` and writes `.spillway/env`, which both programs and `sh` can read.
//!
//! In the example a value is everything after the `=`. In what we write, a value that `sh` would read
//! differently stands in single quotes, and reading takes exactly those away again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use crate::private_file;

/// Settings by name.
pub(crate) type Values = BTreeMap<String, String>;

/// A file that [`render`] made, or nothing when there is none.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<Values>> {
    let Some(text) = private_file::read(path)? else { return Ok(None) };
    let mut values = parse_raw(&text).with_context(|| format!("reading {}", path.display()))?;
    for value in values.values_mut() {
        *value = unquote(value);
    }
    Ok(Some(values))
}

/// `KEY=VALUE` lines as they stand; empty lines and lines starting with `#` are left out.
pub(crate) fn parse_raw(text: &str) -> anyhow::Result<Values> {
    let mut values = Values::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once('=') {
            Some((key, value)) if is_key(key) => values.insert(key.to_owned(), value.to_owned()),
            _ => bail!("line {} is not KEY=VALUE", number + 1),
        };
    }
    Ok(values)
}

/// The text of the file, one line a setting in the order of the names.
pub(crate) fn render(values: &Values) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for (key, value) in values {
        if value.contains(['\n', '\r', '\0']) {
            bail!("the value of {key} has more than one line, which no env file can hold");
        }
        lines.push(format!("{key}={}\n", quote(value)));
    }
    Ok(lines.concat())
}

fn is_key(key: &str) -> bool {
    let mut letters = key.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn quote(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:@%+=,-".contains(letter);
    if value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

fn unquote(value: &str) -> String {
    match value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inside) => inside.replace(r"'\''", "'"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn awkward() -> Values {
        let values = [
            ("EMPTY", ""),
            ("PLAIN", "postgres://spillway:0af3@127.0.0.1:5432/spillway"),
            ("SPACES", " one two "),
            ("DOLLAR", "$HOME `id` \"x\" \\"),
            ("QUOTES", "it's 'here'"),
            ("ONE_QUOTE", "'"),
            ("HASH", "#not a comment"),
            ("BASE64", "q+/4="),
            ("UMLAUT", "Grüße"),
            ("ANDS", "a=1&b=2;c"),
        ];
        values.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn every_value_comes_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("env");
        private_file::write(&path, &render(&awkward()).expect("single lines")).expect("written");

        assert_eq!(read(&path).expect("readable"), Some(awkward()));
    }

    #[test]
    fn sh_reads_the_same_values() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("env");
        private_file::write(&path, &render(&awkward()).expect("single lines")).expect("written");
        for (key, value) in awkward() {
            let script = format!(". {}; printf %s \"${key}\"", path.display());
            let output = Command::new("sh").args(["-c", &script]).output().expect("sh");

            assert_eq!(String::from_utf8_lossy(&output.stdout), value, "{key}");
        }
    }

    #[test]
    fn plain_values_are_written_without_quotes() {
        let values = Values::from([("URL".into(), "http://127.0.0.1:1/x,y%20".into())]);

        assert_eq!(render(&values).expect("one line"), "URL=http://127.0.0.1:1/x,y%20\n");
    }

    #[test]
    fn the_example_is_taken_literally() {
        let text = "# Which server.\nURL=http://x#y\n\nNAME='quoted'\nEMPTY=\n";

        let values = parse_raw(text).expect("well formed");

        assert_eq!(values["URL"], "http://x#y");
        assert_eq!(values["NAME"], "'quoted'");
        assert_eq!(values["EMPTY"], "");
    }

    #[test]
    fn a_line_that_is_no_setting_is_refused_by_number() {
        let error = parse_raw("A=1\nexport B=2\n").expect_err("export is not a key");

        assert!(error.to_string().contains("line 2"));
    }

    #[test]
    fn a_value_of_two_lines_is_refused_by_name() {
        let values = Values::from([("KEY".into(), "one\ntwo".into())]);

        assert!(render(&values).expect_err("two lines").to_string().contains("KEY"));
    }
}
