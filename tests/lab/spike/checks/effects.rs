//! `no_double_effect`: each event counted once, each command's effect committed once, each run used once.

use std::collections::{HashMap, HashSet};

use contract::Status;

use super::super::history::{Call, History, Key};
use super::super::runs::Runs;
use super::Check;

/// A run that ended with its worker before it was committed is done again: one for each key and killed worker.
pub(super) fn no_double_effect(history: &History, runs: &Runs<'_>) -> Check {
    let calls: HashMap<&str, &Call> =
        history.calls.iter().map(|call| (call.request_id.as_str(), call)).collect();
    let mut problems = counted_otherwise(history);
    let mut used: HashSet<&str> = HashSet::new();
    for command in &history.rows.commands {
        let mut steps = HashSet::new();
        let succeeded = command.request_ids.iter().filter_map(|id| calls.get(id.as_str()));
        for call in succeeded.filter(|call| call.succeeded()) {
            if !used.insert(&call.request_id) {
                problems.push(format!("command {} has committed a call of another command", command.id));
            }
            if !steps.insert(call.step) && command.status == Status::Succeeded {
                problems.push(format!("command {} has committed more than one run", command.id));
            }
        }
    }
    let unused = unused_runs(runs, &used);
    for (key, n) in &unused {
        if *n > history.dead_workers() {
            problems.push(format!("{n} whole runs for {key} were committed by no command"));
        }
    }
    let whole = runs.all.iter().filter(|run| run.is_complete()).count();
    let by_none = unused.values().sum::<usize>();
    let seen = format!(
        "every event is counted once; of {whole} whole runs at the provider {} were committed by one command each, \
         {by_none} by none; workers killed: {}",
        whole - by_none,
        history.dead_workers()
    );
    Check::of("no_double_effect", &problems, seen)
}

/// Where the platform counts more or fewer events than its inbox has.
fn counted_otherwise(history: &History) -> Vec<String> {
    let keys: HashMap<&str, Key> =
        history.plan.events.iter().map(|event| (event.id.as_str(), event.key)).collect();
    let mut asked: HashMap<Key, usize> = HashMap::new();
    let identities: HashSet<&str> = history.rows.inbox.iter().map(|row| row.identity.as_str()).collect();
    for key in identities.iter().filter_map(|identity| keys.get(identity)) {
        *asked.entry(*key).or_default() += 1;
    }
    let mut problems = Vec::new();
    for sync in &history.rows.syncs {
        let meant = asked.remove(&sync.key()).unwrap_or_default();
        if sync.requested != meant {
            problems.push(format!(
                "{} was asked for {meant} times and counted {}",
                sync.key(),
                sync.requested
            ));
        }
    }
    problems.extend(asked.iter().map(|(key, n)| format!("{key} was asked for {n} times and never counted")));
    problems.sort_unstable();
    problems
}

fn unused_runs(runs: &Runs<'_>, used: &HashSet<&str>) -> HashMap<Key, usize> {
    let mut unused = HashMap::new();
    for run in runs.all.iter().filter(|run| run.is_complete()) {
        if !run.calls.iter().any(|call| used.contains(call.request_id.as_str())) {
            *unused.entry(run.key).or_default() += 1;
        }
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::super::super::history::Killed;
    use super::super::super::history::sample::{self, KEY, call};
    use super::*;

    fn check(damage: impl FnOnce(&mut History)) -> Check {
        let mut history = sample::history();
        damage(&mut history);
        no_double_effect(&history, &Runs::of(&history.calls))
    }

    #[test]
    fn an_event_that_is_counted_twice_or_never_is_noticed() {
        assert!(!check(|history| history.rows.syncs[0].requested = 4).held);
        assert!(!check(|history| history.rows.syncs.clear()).held);
    }

    #[test]
    fn a_command_that_commits_two_runs_is_noticed() {
        let check = check(|history| {
            let ids = std::mem::take(&mut history.rows.commands[1].request_ids);
            history.rows.commands[0].request_ids.extend(ids);
        });

        assert!(!check.held && check.detail.contains("more than one run"), "{}", check.detail);
    }

    #[test]
    fn a_run_that_two_commands_commit_is_noticed() {
        let check = check(|history| {
            history.rows.commands[1].request_ids = history.rows.commands[0].request_ids.clone();
        });

        assert!(!check.held && check.detail.contains("a call of another command"), "{}", check.detail);
    }

    /// A whole run of which no committed row knows.
    fn one_more_run(history: &mut History) {
        history
            .calls
            .extend([(0, 200.0), (1, 210.0), (2, 220.0)].map(|(step, at_ms)| call(KEY, step, at_ms)));
    }

    #[test]
    fn a_whole_run_that_nobody_commits_is_noticed_unless_a_worker_was_killed() {
        assert!(!check(one_more_run).held);
        let excused = check(|history| {
            one_more_run(history);
            history.kills.push(Killed { process: "snaptrade-worker-1", at_ms: 100.0, in_flight: 1 });
        });
        assert!(excused.held, "{excused:?}");
    }
}
