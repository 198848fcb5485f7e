//! What an examination came to.

use std::io::Write;

use anyhow::Context;
use serde::Serialize;

use super::case::{Case, Exchange};

/// Exchanges that are shown of a case; the last ones are those that it failed at.
const SHOWN_EXCHANGES: usize = 3;

/// The verdicts of an examination.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The gateway.
    pub url: String,
    /// In the order of the table.
    pub cases: Vec<Finding>,
}

/// What a case came to.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What it is about.
    pub topic: &'static str,
    /// Its name within the topic.
    pub name: &'static str,
    /// The fault of the drills that it shows from outside; empty where there is none.
    pub fault: &'static str,
    /// Whether the gateway did right.
    pub verdict: Verdict,
    /// What must come.
    pub expected: &'static str,
    /// What was wrong, or why it was skipped; empty where it passed.
    pub why: String,
    /// How many requests or conversations it took.
    pub exchanges: usize,
    /// The last of them.
    pub last: Vec<Shown>,
}

/// An exchange, in words.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// What was said.
    pub sent: String,
    /// What came of it.
    pub came: String,
}

/// Whether the gateway did right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Passed,
    /// No.
    Failed,
    /// It could not be asked.
    Skipped,
}

impl Finding {
    pub(super) fn of(case: &Case, verdict: Verdict, why: String, exchanges: Vec<Exchange>) -> Self {
        let (n, first) = (exchanges.len(), exchanges.len().saturating_sub(SHOWN_EXCHANGES));
        let shown = exchanges.into_iter().skip(first);
        Self {
            topic: case.topic,
            name: case.name,
            fault: case.fault,
            verdict,
            expected: case.expects,
            why,
            exchanges: n,
            last: shown.map(|Exchange { sent, came }| Shown { sent, came }).collect(),
        }
    }
}

impl Report {
    /// The cases that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Finding> {
        self.of(Verdict::Failed)
    }

    /// The cases with this verdict.
    pub fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        self.cases.iter().filter(move |case| case.verdict == verdict)
    }

    /// Prints text, or JSON.
    pub fn print(&self, as_json: bool) -> anyhow::Result<()> {
        if as_json {
            return say(&(serde_json::to_string_pretty(self)? + "\n"));
        }
        let cases: String = self.cases.iter().map(Finding::to_string).collect();
        let count = |verdict| self.of(verdict).count();
        let [passed, failed, skipped] = [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(count);
        say(&format!("{cases}{}: {passed} passed, {failed} failed, {skipped} skipped\n", self.url))
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word: &str = self.verdict.into();
        writeln!(f, "{word:8}{}/{} {}", self.topic, self.name, self.fault)?;
        writeln!(f, "        expected  {}", self.expected)?;
        if !self.why.is_empty() {
            writeln!(f, "        why       {}", self.why)?;
        }
        // Of a case that passed the last exchange stands for all.
        let all_but = if self.verdict == Verdict::Passed { self.last.len().saturating_sub(1) } else { 0 };
        for Shown { sent, came } in self.last.iter().skip(all_but) {
            writeln!(f, "        sent      {sent}")?;
            writeln!(f, "        came      {came}")?;
        }
        if self.exchanges > 1 {
            writeln!(f, "        (of {} exchanges)", self.exchanges)?;
        }
        Ok(())
    }
}

/// Prints what there is.
pub(super) fn print_list(cases: &[Case]) -> anyhow::Result<()> {
    let line = |case: &Case| format!("{:44}{:10}{}\n", case.full_name(), case.fault, case.expects);
    say(&cases.iter().map(line).collect::<String>())
}

/// A reader such as `head` may leave before the end, which is no panic.
fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("printing")
}
