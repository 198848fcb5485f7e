//! The provider's records read as runs: a run reads an account step by step, each call after the answer to the last.
//!
//! Whatever two runs of one account and kind did at the same time shows here: their calls overlap, or a step comes
//! without the one before it.

use std::collections::HashMap;

use contract::snaptrade::WorkType;

use super::history::{Call, Key};

/// Calls of one run, in their order.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) key: Key,
    pub(super) calls: Vec<&'a Call>,
}

impl Run<'_> {
    pub(super) fn began_ms(&self) -> f64 {
        self.calls.first().map_or(0.0, |call| call.at_ms)
    }

    pub(super) fn end_ms(&self) -> f64 {
        self.calls.last().map_or(0.0, |call| call.end_ms())
    }

    /// Every step was answered with what was asked for.
    pub(super) fn is_complete(&self) -> bool {
        self.calls.len() == steps(self.key.work) && self.calls.iter().all(|call| call.succeeded())
    }
}

/// How many calls a run makes.
const fn steps(work: WorkType) -> usize {
    match work {
        WorkType::Holdings => 3,
        // The sandbox's accounts have one page of activities.
        WorkType::Transactions => 1,
    }
}

/// All runs, and what shows that two were at work at once.
#[derive(Debug, Default)]
pub(super) struct Runs<'a> {
    pub(super) all: Vec<Run<'a>>,
    pub(super) entangled: Vec<String>,
}

impl<'a> Runs<'a> {
    pub(super) fn of(calls: &'a [Call]) -> Self {
        let mut by_key: HashMap<Key, Vec<&Call>> = HashMap::new();
        for call in calls {
            by_key.entry(call.key).or_default().push(call);
        }
        let mut runs = Self::default();
        for (key, mut calls) in by_key {
            // Stable: of two calls in one millisecond the one that ended first stays first.
            calls.sort_by(|one, other| one.at_ms.total_cmp(&other.at_ms));
            runs.read(key, &calls);
        }
        runs.all.sort_by(|one, other| one.began_ms().total_cmp(&other.began_ms()));
        runs.entangled.sort_unstable();
        runs
    }

    fn read(&mut self, key: Key, calls: &[&'a Call]) {
        let mut before: Option<&Call> = None;
        for call in calls.iter().copied() {
            if before.is_some_and(|before| call.at_ms < before.end_ms()) {
                self.entangled.push(format!("two calls for {key} at once, {:.0} ms in", call.at_ms));
            }
            let goes_on = before.is_some_and(|before| before.succeeded() && before.step + 1 == call.step);
            match self.all.last_mut().filter(|run| goes_on && run.key == key) {
                Some(run) => run.calls.push(call),
                None if call.step == 0 => self.all.push(Run { key, calls: vec![call] }),
                None => {
                    self.entangled.push(format!(
                        "a call for {key} without the one that comes before it in a run, {:.0} ms in",
                        call.at_ms
                    ));
                    self.all.push(Run { key, calls: vec![call] });
                }
            }
            before = Some(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::sample::{KEY, call};
    use super::*;

    fn entangled(calls: &[Call]) -> usize {
        Runs::of(calls).entangled.len()
    }

    #[test]
    fn steps_in_a_row_are_a_run_and_a_failed_step_ends_it() {
        let mut failed = call(KEY, 1, 20.0);
        failed.status = Some(503);
        let calls = [
            call(KEY, 0, 10.0),
            failed,
            call(KEY, 0, 40.0),
            call(KEY, 1, 50.0),
            call(KEY, 2, 60.0),
            call(KEY, 0, 70.0),
        ];

        let runs = Runs::of(&calls);

        let lengths: Vec<usize> = runs.all.iter().map(|run| run.calls.len()).collect();
        assert_eq!((lengths, runs.entangled.len()), (vec![2, 3, 1], 0));
        assert!(runs.all[1].is_complete() && !runs.all[0].is_complete() && !runs.all[2].is_complete());
    }

    #[test]
    fn interleaved_runs_are_noticed_though_no_two_calls_overlap() {
        let calls = [call(KEY, 0, 10.0), call(KEY, 1, 20.0), call(KEY, 0, 30.0), call(KEY, 2, 40.0)];

        assert_eq!(entangled(&calls), 1);
    }

    #[test]
    fn overlapping_calls_are_noticed() {
        let mut long = call(KEY, 0, 10.0);
        long.took_ms = 30.0;

        assert_eq!(entangled(&[long, call(KEY, 0, 39.0)]), 1);
    }

    #[test]
    fn a_step_after_an_answer_that_was_lost_belongs_to_another_run() {
        let mut lost = call(KEY, 0, 10.0);
        lost.answered = false;

        assert_eq!(entangled(&[lost, call(KEY, 1, 20.0)]), 1);
    }

    #[test]
    fn runs_of_other_accounts_and_other_work_are_nobodys_business() {
        let other = Key { work: WorkType::Transactions, ..KEY };

        assert_eq!(entangled(&[call(KEY, 0, 10.0), call(other, 0, 12.0), call(KEY, 1, 20.0)]), 0);
    }
}
