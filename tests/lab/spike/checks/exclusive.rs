//! `one_run_per_account`: no two runs of one kind of work on one account at once.

use std::collections::HashSet;

use super::super::history::Key;
use super::super::runs::Runs;
use super::Check;

pub(super) fn one_run_per_account(runs: &Runs<'_>) -> Check {
    let keys: HashSet<Key> = runs.all.iter().map(|run| run.key).collect();
    let seen = format!(
        "{} runs of {} accounts and kinds of work, whole and cut short, came one after the other",
        runs.all.len(),
        keys.len()
    );
    Check::of("one_run_per_account", &runs.entangled, seen)
}

#[cfg(test)]
mod tests {
    use super::super::super::history::Call;
    use super::super::super::history::sample::{self, KEY, call};
    use super::*;

    #[test]
    fn a_run_that_begins_in_the_middle_of_another_is_noticed() {
        let mut history = sample::history();
        // Between the second and the third call of the last run, and overlapping with neither.
        let between = Call { took_ms: 0.5, ..call(KEY, 0, 71.2) };
        history.calls.push(between);

        let check = one_run_per_account(&Runs::of(&history.calls));

        assert!(!check.held, "{check:?}");
    }
}
