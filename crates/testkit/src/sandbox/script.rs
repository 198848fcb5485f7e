//! Faults on command: which calls go wrong, and how. Rules are asked in the order in which they were added,
//! and the first one that fires decides.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Dice;

mod fault;
mod pattern;

pub use self::fault::Fault;
pub use self::pattern::{HowOften, Pattern};

/// Calls that go wrong, and what happens to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which calls.
    pub on: Pattern,
    /// What happens to them.
    pub answer: Fault,
}

impl Rule {
    /// Begins a rule for a method and a path; see [`Pattern`] for what they may be.
    pub fn on(method: &str, path: &str) -> Pattern {
        Pattern::new(method, path)
    }
}

/// Finds a rule of a sandbox again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(usize);

/// A rule and what it has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleReport {
    /// Its id.
    pub id: RuleId,
    /// Calls that it matched, hit or not.
    pub matched: u64,
    /// Calls that it hit.
    pub fired: u64,
    /// The rule.
    pub rule: Rule,
}

/// All rules that there ever were; those before `cleared` are over.
pub(super) struct Script {
    seed: u64,
    rules: Mutex<Rules>,
}

#[derive(Default)]
struct Rules {
    reports: Vec<RuleReport>,
    cleared: usize,
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, rules: Mutex::default() }
    }

    pub(super) fn add(&self, rule: Rule) -> RuleId {
        let mut rules = self.lock();
        let id = RuleId(rules.reports.len());
        rules.reports.push(RuleReport { id, matched: 0, fired: 0, rule });
        id
    }

    pub(super) fn clear(&self) {
        let mut rules = self.lock();
        rules.cleared = rules.reports.len();
    }

    pub(super) fn fired(&self, id: RuleId) -> u64 {
        self.lock().reports.get(id.0).map_or(0, |report| report.fired)
    }

    /// The rules in force.
    pub(super) fn reports(&self) -> Vec<RuleReport> {
        let rules = self.lock();
        rules.reports[rules.cleared..].to_vec()
    }

    /// What happens to this call; `path` is the provider's canonical one.
    pub(super) fn strike(&self, method: &str, path: &str, key: Option<Uuid>) -> Option<(RuleId, Fault)> {
        let mut rules = self.lock();
        let cleared = rules.cleared;
        for report in &mut rules.reports[cleared..] {
            if !report.rule.on.matches(method, path, key) {
                continue;
            }
            report.matched += 1;
            if self.fires(report) {
                report.fired += 1;
                return Some((report.id, report.rule.answer.clone()));
            }
        }
        None
    }

    fn fires(&self, report: &RuleReport) -> bool {
        let pattern = &report.rule.on;
        if pattern.times.is_some_and(|times| report.fired >= u64::from(times)) {
            return false;
        }
        match pattern.how_often {
            HowOften::Always => true,
            HowOften::EveryNth(n) => report.matched.is_multiple_of(u64::from(n)),
            HowOften::Share(share) => {
                let rule = u64::try_from(report.id.0).unwrap_or_default();
                Dice::new("rule", &[self.seed, rule, report.matched]).fraction() < share
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
