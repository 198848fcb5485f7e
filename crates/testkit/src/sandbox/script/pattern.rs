//! Which calls a rule is about.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Fault, Rule};

/// The calls that a rule is about. The method is one, or `*`. In the path a segment in braces stands for any
/// one segment and a last segment `*` for the rest: `/accounts/{id}/balances`, `/accounts/*`, `*`. A
/// provider's older prefixes are left out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The HTTP method, or `*`.
    pub method: String,
    /// The path, or a template of it.
    pub path: String,
    /// Only calls for this account.
    #[serde(default)]
    pub account: Option<Uuid>,
    /// The rule is spent after so many hits; unset, it never is.
    #[serde(default)]
    pub times: Option<u32>,
    /// Which of the calls that match are hit.
    #[serde(default)]
    pub how_often: HowOften,
}

/// Which of the calls that match are hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HowOften {
    /// All of them.
    #[default]
    Always,
    /// The nth, the 2nth and so on; 0 is never.
    EveryNth(u32),
    /// This share of them from 0 to 1, chosen by the sandbox's seed.
    Share(f64),
}

impl Pattern {
    pub(super) fn new(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Self { method, path, account: None, times: None, how_often: HowOften::Always }
    }

    /// Only calls for this account.
    #[must_use]
    pub fn account(mut self, account: Uuid) -> Self {
        self.account = Some(account);
        self
    }

    /// At most so many hits.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only every nth call that matches.
    #[must_use]
    pub fn every_nth(mut self, n: u32) -> Self {
        self.how_often = HowOften::EveryNth(n);
        self
    }

    /// Only this share of the calls that match, from 0 to 1.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.how_often = HowOften::Share(share);
        self
    }

    /// Ends the rule: what happens to the calls.
    pub fn answer(self, fault: Fault) -> Rule {
        Rule { on: self, answer: fault }
    }

    pub(super) fn matches(&self, method: &str, path: &str, key: Option<Uuid>) -> bool {
        (self.method == "*" || self.method.eq_ignore_ascii_case(method))
            && (self.account.is_none() || self.account == key)
            && fits(&self.path, path)
    }
}

fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) | (Some("*"), Some(_)) => return true,
            (Some(wanted), Some(given)) if wanted == given || stands_for_any(wanted) => {}
            _ => return false,
        }
    }
}

fn stands_for_any(segment: &str) -> bool {
    segment.starts_with('{') && segment.ends_with('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_fits_whole_paths_and_a_star_the_rest() {
        for (template, path, fit) in [
            ("/accounts/{id}/balances", "/accounts/7/balances", true),
            ("/accounts/{id}/balances", "/accounts/7/balances/x", false),
            ("/accounts/{id}", "/accounts/7/balances", false),
            ("/accounts/{id}/positions/all", "/accounts/7/positions", false),
            ("/accounts/*", "/accounts/7/positions/all", true),
            ("/accounts/*", "/accounts", false),
            ("*", "/anything/at/all", true),
        ] {
            assert_eq!(fits(template, path), fit, "{template} {path}");
        }
    }

    #[test]
    fn method_and_account_narrow_a_pattern() {
        let (mine, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let pattern = Pattern::new("get", "*").account(mine);

        assert!(pattern.matches("GET", "/x", Some(mine)));
        assert!(!pattern.matches("GET", "/x", Some(other)));
        assert!(!pattern.matches("GET", "/x", None));
        assert!(!pattern.matches("POST", "/x", Some(mine)));
    }
}
