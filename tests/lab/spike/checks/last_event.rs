//! `last_event_followed_by_run`: after the last event of an account a run has read all of it.

use std::collections::HashMap;

use contract::Status;
use uuid::Uuid;

use super::super::history::{History, InboxRow, Key};
use super::super::runs::Runs;
use super::Check;

/// By the ledger, by what the platform counts, and by the provider's record, which knows nothing of the two.
pub(super) fn last_event_followed_by_run(history: &History, runs: &Runs<'_>) -> Check {
    let last = last_events(history);
    let statuses: HashMap<Uuid, Status> =
        history.rows.commands.iter().map(|command| (command.id, command.status)).collect();
    let mut last_run: HashMap<Key, f64> = HashMap::new();
    for run in runs.all.iter().filter(|run| run.is_complete()) {
        let began = last_run.entry(run.key).or_insert(f64::NEG_INFINITY);
        *began = began.max(run.began_ms());
    }
    let mut problems = Vec::new();
    for (key, row) in &last {
        let status = row.command.and_then(|command| statuses.get(&command));
        if status != Some(&Status::Succeeded) {
            let status = status.map_or_else(|| "gone".to_owned(), ToString::to_string);
            problems.push(format!("the command of the last event for {key} is {status}"));
        }
        if last_run.get(key).is_none_or(|began| *began < row.accepted_ms) {
            problems.push(format!("no whole run for {key} began after its last event"));
        }
    }
    for sync in history.rows.syncs.iter().filter(|sync| sync.ok_through < sync.requested) {
        problems.push(format!(
            "{} was asked for {} times and done through {}",
            sync.key(),
            sync.requested,
            sync.ok_through
        ));
    }
    problems.sort_unstable();
    let seen = format!(
        "for each of {} accounts and kinds of work a whole run began after the last event was taken in, and was \
         committed",
        last.len()
    );
    Check::of("last_event_followed_by_run", &problems, seen)
}

fn last_events(history: &History) -> HashMap<Key, &InboxRow> {
    let keys: HashMap<&str, Key> =
        history.plan.events.iter().map(|event| (event.id.as_str(), event.key)).collect();
    let mut last: HashMap<Key, &InboxRow> = HashMap::new();
    for row in &history.rows.inbox {
        let Some(key) = keys.get(row.identity.as_str()) else { continue };
        let newest = last.entry(*key).or_insert(row);
        if row.accepted_ms > newest.accepted_ms {
            *newest = row;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::super::history::sample;
    use super::*;

    fn check(damage: impl FnOnce(&mut History)) -> Check {
        let mut history = sample::history();
        damage(&mut history);
        last_event_followed_by_run(&history, &Runs::of(&history.calls))
    }

    #[test]
    fn an_event_that_came_after_the_last_run_began_is_noticed() {
        let check = check(|history| history.rows.inbox[2].accepted_ms = 61.0);

        assert!(!check.held && check.detail.contains("no whole run"), "{}", check.detail);
    }

    #[test]
    fn a_last_run_that_failed_half_way_does_not_count() {
        assert!(!check(|history| history.calls[8].status = Some(500)).held);
    }

    #[test]
    fn a_last_event_whose_command_was_given_up_is_noticed() {
        assert!(!check(|history| history.rows.commands[1].status = Status::DeadLettered).held);
    }

    #[test]
    fn requests_that_were_counted_and_not_done_are_noticed() {
        assert!(!check(|history| history.rows.syncs[0].ok_through = 2).held);
    }
}
