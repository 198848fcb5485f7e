//! Who acts, and why: every action of an operator is on record with both.

use clap::Args;
use contract::env::keys;
use process::Error;
use store::Pool;

/// In characters.
const LONGEST_NAME: usize = 100;
/// In characters.
const LONGEST_WHY: usize = 1000;

/// Who, and why.
#[derive(Args)]
pub(crate) struct Author {
    /// Why, for whoever reads the audit later.
    #[arg(long, value_name = "TEXT", value_parser = why)]
    pub(crate) why: String,
    /// Who you are, for the audit; without it SANMOPIA_OPERATOR says so.
    #[arg(long = "as", value_name = "NAME", value_parser = name)]
    operator: Option<String>,
}

/// A connection, and who uses it.
pub(crate) fn identified(author: &Author) -> Result<(Pool, String), Error> {
    let (_, (options, named), _) = process::load(|env| {
        let options = store::Options::read_direct(env, &keys::OPERATOR_DATABASE_URL);
        let named = match &author.operator {
            Some(_) => Ok(None),
            None if env.is_set(&keys::OPERATOR) => env.text(&keys::OPERATOR).map(Some),
            None => Err(env.refuse(&keys::OPERATOR, "not set; say who you are with it or with --as NAME")),
        };
        Ok((options?, named?))
    })?;
    let operator = match (&author.operator, named) {
        (Some(given), _) => given.clone(),
        (None, named) => name(&named.unwrap_or_default())
            .map_err(|sentence| Error::failed(format!("reading {}", keys::OPERATOR.name), sentence))?,
    };
    let pool =
        Pool::prepare(&options, "cli", 1).map_err(|error| Error::failed("preparing a connection", error))?;
    Ok((pool, operator))
}

fn name(text: &str) -> Result<String, String> {
    plain(text, LONGEST_NAME)
}

fn why(text: &str) -> Result<String, String> {
    plain(text, LONGEST_WHY)
}

/// What stands in the audit is one line that says something.
fn plain(text: &str, longest: usize) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        Err("says nothing".to_owned())
    } else if text.chars().count() > longest {
        Err(format!("longer than {longest} characters"))
    } else if text.chars().any(char::is_control) {
        Err("holds control characters or line breaks".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_reason_say_something_in_one_line() {
        assert_eq!(name(" kim "), Ok("kim".to_owned()));
        assert!(name("  ").is_err() && name(&"x".repeat(101)).is_err() && why("a\nb").is_err());
    }
}
