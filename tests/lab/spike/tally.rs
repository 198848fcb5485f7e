//! What has happened so far, for the line that a person watches.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counts>);

#[derive(Clone, Debug, Default)]
struct Counts {
    sent: usize,
    given_up: usize,
    outcomes: BTreeMap<String, usize>,
    commands: Vec<Uuid>,
}

impl Tally {
    pub(super) fn sent(&self) {
        self.lock().sent += 1;
    }

    pub(super) fn answered(&self, outcome: &str, command: Option<Uuid>) {
        let mut counts = self.lock();
        *counts.outcomes.entry(outcome.to_owned()).or_default() += 1;
        counts.commands.extend(command);
    }

    pub(super) fn given_up(&self) {
        self.lock().given_up += 1;
    }

    /// One of the commands that senders were told of, by a number that may be any.
    pub(super) fn some_command(&self, choice: u64) -> Option<Uuid> {
        let counts = self.lock();
        let place = usize::try_from(choice).unwrap_or_default().checked_rem(counts.commands.len())?;
        counts.commands.get(place).copied()
    }

    /// How far the senders are.
    pub(super) fn line(&self, deliveries: usize) -> String {
        let counts = self.lock();
        let of = |outcome: &str| counts.outcomes.get(outcome).copied().unwrap_or_default();
        let mut line = format!(
            "sent {}/{deliveries}  accepted {}  duplicate {}  coalesced {}",
            counts.sent,
            of("queued"),
            of("duplicate"),
            of("coalesced")
        );
        if counts.given_up > 0 {
            let _ = write!(line, "  given up {}", counts.given_up); // A String takes any text.
        }
        line
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_was_sent_and_answered() {
        let tally = Tally::default();
        for outcome in ["queued", "duplicate", "duplicate"] {
            tally.sent();
            tally.answered(outcome, Some(Uuid::nil()));
        }

        assert_eq!(tally.line(5), "sent 3/5  accepted 1  duplicate 2  coalesced 0");
        tally.given_up();
        assert!(tally.line(5).ends_with("given up 1"));
    }

    #[test]
    fn any_number_chooses_a_command_once_there_is_one() {
        let tally = Tally::default();
        assert_eq!(tally.some_command(7), None);

        tally.answered("queued", Some(Uuid::from_u128(1)));

        assert_eq!(tally.some_command(u64::MAX), Some(Uuid::from_u128(1)));
    }
}
