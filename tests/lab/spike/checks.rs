//! What must hold when a drill is over. Each check is a function of the history, with a test that breaks the history
//! where it should see it.

mod caps;
mod drains;
mod effects;
mod ends;
mod exclusive;
mod faults;
mod last_event;
mod status;

use std::fmt::Write;

use serde::Serialize;

use super::history::History;
use super::runs::Runs;

pub(super) use caps::in_cooldown;
pub(super) use drains::drain_ms;
pub(super) use ends::Ends;
pub(super) use status::{FLOOR_MS, p99_ms};

/// Problems that a detail names before it only counts.
const NAMED: usize = 3;

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, which stays.
    pub name: &'static str,
    /// Whether it held.
    pub held: bool,
    /// What was seen, in a sentence.
    pub detail: String,
}

impl Check {
    /// Held where there is no problem; `seen` says what there was instead.
    fn of(name: &'static str, problems: &[String], seen: String) -> Self {
        if problems.is_empty() {
            return Self { name, held: true, detail: seen };
        }
        let mut detail = problems.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        if problems.len() > NAMED {
            let _ = write!(detail, "; and {} more", problems.len() - NAMED); // A String takes any text.
        }
        Self { name, held: false, detail }
    }
}

/// All of them.
pub(super) fn all(history: &History, runs: &Runs<'_>, ends: &Ends) -> Vec<Check> {
    vec![
        ends::accepted_ends_once(history, ends),
        effects::no_double_effect(history, runs),
        caps::caps_kept(history),
        drains::drains(history),
        status::status_p99(history),
        last_event::last_event_followed_by_run(history, runs),
        exclusive::one_run_per_account(runs),
        faults::faults_fired(history, runs),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::history::sample;
    use super::*;

    #[test]
    fn every_check_holds_for_a_history_in_which_all_is_well() {
        let history = sample::history();
        let runs = Runs::of(&history.calls);

        for check in all(&history, &runs, &Ends::of(&history)) {
            assert!(check.held && !check.detail.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn many_problems_are_named_in_part_and_counted() {
        let problems: Vec<String> = (1..=5).map(|n| format!("problem {n}")).collect();

        let check = Check::of("x", &problems, String::new());

        assert_eq!(check.detail, "problem 1; problem 2; problem 3; and 2 more");
        assert!(!check.held);
    }
}
