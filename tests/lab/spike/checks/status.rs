//! `status_p99`: status reads do not suffer.

use std::time::Duration;

use super::super::history::{History, Read};
use super::Check;
use crate::figures::percentile_ms;

/// What 99 of 100 reads in a storm must not pass, from when they were due.
pub(in super::super) const FLOOR_MS: f64 = 50.0;

pub(super) fn status_p99(history: &History) -> Check {
    let mut problems = Vec::new();
    let unanswered = history.storm_reads.iter().filter(|read| read.took.is_none()).count();
    if unanswered > 0 {
        problems.push(format!("{unanswered} reads were answered by no gateway"));
    }
    let (idle, storm) = (p99_ms(&history.idle_reads), p99_ms(&history.storm_reads));
    match storm {
        Some(storm) if storm > FLOOR_MS => problems.push(format!(
            "99 of 100 reads took up to {storm:.1} ms, and {FLOOR_MS} ms is what they may take"
        )),
        Some(_) => {}
        None => problems.push("no status was read in the storm".to_owned()),
    }
    let seen = format!(
        "99 of 100 of {} reads took {:.1} ms or less while deliveries were made, and {:.1} ms before",
        history.storm_reads.len(),
        storm.unwrap_or_default(),
        idle.unwrap_or_default()
    );
    Check::of("status_p99", &problems, seen)
}

/// Of the reads that were answered.
pub(in super::super) fn p99_ms(reads: &[Read]) -> Option<f64> {
    let took: Vec<Duration> = reads.iter().filter_map(|read| read.took).collect();
    percentile_ms(&took, 99)
}

#[cfg(test)]
mod tests {
    use super::super::super::history::sample;
    use super::*;

    fn held(took: Option<Duration>) -> bool {
        let mut history = sample::history();
        history.storm_reads[0].took = took;
        status_p99(&history).held
    }

    #[test]
    fn slow_reads_and_reads_without_an_answer_are_noticed() {
        assert!(held(Some(Duration::from_millis(50))));
        assert!(!held(Some(Duration::from_millis(51))));
        assert!(!held(None));
    }

    #[test]
    fn a_storm_in_which_nothing_was_read_proves_nothing() {
        let mut history = sample::history();
        history.storm_reads.clear();

        assert!(!status_p99(&history).held);
    }
}
