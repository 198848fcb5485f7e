//! `faults_fired`: the drill was as hard as it was planned. One in which nothing went wrong has shown nothing.

use std::collections::HashMap;

use super::super::history::{History, Key, PlannedFault};
use super::super::plan::Event;
use super::super::provider::{LOST_ANSWERS, SERVER_ERRORS};
use super::super::runs::{Run, Runs};
use super::Check;
use crate::figures::count;

/// Of what was planned, as much must have happened.
const ENOUGH: f64 = 0.5;

pub(super) fn faults_fired(history: &History, runs: &Runs<'_>) -> Check {
    let let_in = history.calls.iter().filter(|call| !call.throttled()).count();
    let throttled = history.calls.len() - let_in;
    let mut problems = Vec::new();
    let mut fired = |fault, share: f64, what: &str| {
        let fired = history.calls.iter().filter(|call| call.fault == Some(fault)).count();
        if count(fired) < (count(let_in) * share * ENOUGH).floor().max(1.0) {
            problems.push(format!("{fired} of {let_in} calls met {what}, and {:.0} % should", share * 100.0));
        }
        fired
    };
    let errors = fired(PlannedFault::ServerError, SERVER_ERRORS, "an error of the server");
    let lost = fired(PlannedFault::LostAnswer, LOST_ANSWERS, "a lost answer");
    if throttled == 0 {
        problems.push("no call was throttled".to_owned());
    }
    let during_runs = events_during_runs(history, runs);
    if during_runs == 0 {
        problems.push("no event came while a run of its account was at work".to_owned());
    }
    problems.extend(kills_that_missed(history));
    let seen = format!(
        "of {let_in} calls that the quota let in {errors} met an error of the server and {lost} lost their answers; \
         {throttled} calls were throttled; {during_runs} events came during a run of their account; processes \
         killed: {}",
        history.kills.len()
    );
    Check::of("faults_fired", &problems, seen)
}

fn events_during_runs(history: &History, runs: &Runs<'_>) -> usize {
    let taken_in: HashMap<&str, f64> =
        history.rows.inbox.iter().map(|row| (row.identity.as_str(), row.accepted_ms)).collect();
    let mut runs_of: HashMap<Key, Vec<&Run<'_>>> = HashMap::new();
    for run in &runs.all {
        runs_of.entry(run.key).or_default().push(run);
    }
    let came_during_a_run = |event: &&Event| {
        let (Some(at), Some(runs)) = (taken_in.get(event.id.as_str()), runs_of.get(&event.key)) else {
            return false;
        };
        runs.iter().any(|run| run.began_ms() < *at && *at < run.end_ms())
    };
    history.plan.events.iter().filter(came_during_a_run).count()
}

fn kills_that_missed(history: &History) -> Vec<String> {
    let mut missed: Vec<String> = Vec::new();
    for planned in &history.plan.kills {
        match history.kills.iter().find(|kill| kill.process == planned.process) {
            None => missed.push(format!("{} was not killed", planned.process)),
            Some(kill) if kill.is_worker() && kill.in_flight == 0 => {
                missed.push(format!("{} was killed with nothing in flight", kill.process));
            }
            Some(_) => {}
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::history::Killed;
    use super::super::super::history::sample;
    use super::super::super::plan::Kill;
    use super::*;

    fn held(damage: impl FnOnce(&mut History)) -> bool {
        let mut history = sample::history();
        damage(&mut history);
        faults_fired(&history, &Runs::of(&history.calls)).held
    }

    #[test]
    fn a_fault_that_did_not_fire_is_noticed() {
        assert!(!held(|history| history.calls[1].fault = None));
        assert!(!held(|history| history.calls[2].fault = None));
        assert!(!held(|history| history.calls[0].status = Some(200)));
    }

    #[test]
    fn a_drill_without_an_event_during_a_run_is_noticed() {
        assert!(!held(|history| {
            for row in &mut history.rows.inbox {
                row.accepted_ms = 0.5;
            }
        }));
    }

    #[test]
    fn a_planned_kill_must_have_hit_work() {
        let process = "snaptrade-worker-1";
        let planned = Kill { at: Duration::ZERO, process };
        let killed = |in_flight| Killed { process, at_ms: 50.0, in_flight };

        assert!(held(|history| {
            history.plan.kills.push(planned);
            history.kills.push(killed(1));
        }));
        assert!(!held(|history| {
            history.plan.kills.push(planned);
            history.kills.push(killed(0));
        }));
        assert!(!held(|history| history.plan.kills.push(planned)));
    }
}
