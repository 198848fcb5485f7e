//! `accepted_ends_once`: what was promised has one row, one command, and one end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::super::history::{CommandRow, History, InboxRow};
use super::Check;

/// Which events came to no end, and which to more than one.
#[derive(Debug, Default)]
pub(in super::super) struct Ends {
    /// Why, by the event's place.
    pub(in super::super) lost: BTreeMap<usize, String>,
    pub(in super::super) doubled: BTreeMap<usize, String>,
    /// Commands that no event asked for.
    orphans: Vec<String>,
    promised: usize,
}

impl Ends {
    pub(in super::super) fn of(history: &History) -> Self {
        let mut rows: HashMap<&str, Vec<&InboxRow>> = HashMap::new();
        for row in &history.rows.inbox {
            rows.entry(&row.identity).or_default().push(row);
        }
        let commands: HashMap<Uuid, &CommandRow> =
            history.rows.commands.iter().map(|command| (command.id, command)).collect();
        let promises = promises(history);
        let mut ends = Self { promised: promises.len(), ..Self::default() };
        for (event, told) in promises {
            let id = &history.plan.events[event].id;
            let rows = rows.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            if rows.len() > 1 {
                ends.doubled.insert(event, format!("event {id} has {} rows in the inbox", rows.len()));
            } else if told.len() > 1 {
                ends.doubled.insert(event, format!("event {id} was answered with {} commands", told.len()));
            }
            let Some(row) = rows.first() else {
                ends.lost.insert(event, format!("event {id} was accepted and is not in the inbox"));
                continue;
            };
            let Some(command) = row.command.and_then(|command| commands.get(&command)) else {
                ends.lost.insert(event, format!("event {id} has no command"));
                continue;
            };
            match end_of(command) {
                End::Once => {}
                End::Never(why) => {
                    ends.lost.insert(event, format!("command {} of event {id} {why}", command.id));
                }
                End::Often => {
                    let what = format!("command {} of event {id} has more than one message", command.id);
                    ends.doubled.insert(event, what);
                }
            }
        }
        ends.orphans = orphans(history);
        ends
    }
}

enum End {
    Once,
    Never(String),
    Often,
}

fn end_of(command: &CommandRow) -> End {
    if !command.status.is_terminal() || command.finished_ms.is_none() {
        return End::Never(format!("is {}", command.status));
    }
    match (command.queued, command.archived) {
        (0, 1) if command.buried <= 1 => End::Once,
        (0, 0) => End::Never("has ended without a message in the archive".to_owned()),
        _ => End::Often,
    }
}

/// Events that some delivery was told to be accepted, each with all commands that were named.
fn promises(history: &History) -> BTreeMap<usize, BTreeSet<Uuid>> {
    let mut promises: BTreeMap<usize, BTreeSet<Uuid>> = BTreeMap::new();
    for delivered in &history.delivered {
        if let Some(accepted) = &delivered.accepted {
            promises.entry(delivered.event).or_default().extend(accepted.command);
        }
    }
    promises
}

fn orphans(history: &History) -> Vec<String> {
    let asked: HashSet<Uuid> = history.rows.inbox.iter().filter_map(|row| row.command).collect();
    let commands = history.rows.commands.iter().filter(|command| !asked.contains(&command.id));
    commands.map(|command| format!("no event asked for command {}", command.id)).collect()
}

pub(super) fn accepted_ends_once(history: &History, ends: &Ends) -> Check {
    let given_up = history.delivered.iter().filter(|delivered| delivered.accepted.is_none()).count();
    let mut problems: Vec<String> = ends.lost.values().chain(ends.doubled.values()).cloned().collect();
    problems.extend(ends.orphans.iter().cloned());
    if given_up > 0 {
        problems.push(format!("{given_up} deliveries were never accepted, and their senders gave up"));
    }
    let seen = format!(
        "{} events were accepted in {} deliveries; each has one row in the inbox, and all of their {} commands have \
         ended with one archived message",
        ends.promised,
        history.delivered.len(),
        history.rows.commands.len()
    );
    Check::of("accepted_ends_once", &problems, seen)
}

#[cfg(test)]
mod tests {
    use contract::Status;

    use super::super::super::history::sample::{self, FIRST};
    use super::*;

    fn check(damage: impl FnOnce(&mut History)) -> (Check, Ends) {
        let mut history = sample::history();
        damage(&mut history);
        let ends = Ends::of(&history);
        (accepted_ends_once(&history, &ends), ends)
    }

    #[test]
    fn an_event_without_its_row_is_lost() {
        let (check, ends) = check(|history| drop(history.rows.inbox.remove(0)));

        assert!(!check.held && check.detail.contains("event one was accepted and is not in the inbox"));
        assert_eq!((ends.lost.len(), ends.doubled.len()), (1, 0));
    }

    #[test]
    fn a_command_that_has_not_ended_loses_every_event_that_is_part_of_it() {
        let (check, ends) = check(|history| history.rows.commands[1].status = Status::Running);

        assert!(!check.held && check.detail.contains("is running"), "{}", check.detail);
        assert_eq!(ends.lost.len(), 2);
    }

    #[test]
    fn an_end_without_a_message_in_the_archive_is_no_end() {
        assert!(!check(|history| history.rows.commands[0].archived = 0).0.held);
    }

    #[test]
    fn an_event_with_two_rows_two_commands_or_two_messages_is_doubled() {
        let twice_in_the_inbox = check(|history| {
            let row = history.rows.inbox[0].clone();
            history.rows.inbox.push(row);
        });
        let twice_promised = check(|history| {
            history.delivered[1].accepted.as_mut().expect("accepted").command = Some(Uuid::from_u128(9));
        });
        let twice_sent = check(|history| history.rows.commands[0].queued = 1);

        for (check, ends) in [twice_in_the_inbox, twice_promised, twice_sent] {
            assert!(!check.held, "{check:?}");
            assert_eq!((ends.lost.len(), ends.doubled.len()), (0, 1), "{check:?}");
        }
    }

    #[test]
    fn a_command_that_nobody_asked_for_is_noticed() {
        let (check, _) = check(|history| {
            let mut command = history.rows.commands[0].clone();
            command.id = Uuid::from_u128(9);
            history.rows.commands.push(command);
        });

        assert!(!check.held && check.detail.contains("no event asked for"), "{}", check.detail);
    }

    #[test]
    fn a_delivery_that_was_never_accepted_is_noticed() {
        let (check, ends) = check(|history| history.delivered[0].accepted = None);

        assert!(!check.held && ends.lost.is_empty(), "{check:?}");
    }

    #[test]
    fn a_dead_letter_is_an_end() {
        let (check, _) = check(|history| {
            let command = history.rows.commands.iter_mut().find(|command| command.id == FIRST).unwrap();
            (command.status, command.buried) = (Status::DeadLettered, 1);
        });

        assert!(check.held, "{check:?}");
    }
}
