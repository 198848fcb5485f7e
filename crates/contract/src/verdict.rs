//! What a handler may say about a message it has worked on.

use std::time::Duration;

use crate::dead_letter::DeadReason;
use crate::retry::RetryClass;
use crate::status::Blocked;

/// A handler's opinion. The runtime turns it into a queue operation.
///
/// Generic, because effects are types of `store`: only `queue` fixes `E`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<E> {
    /// The runtime commits the effect with ledger and archive in one fenced transaction.
    Done(E),
    /// Failed; another attempt may help. Burns one attempt.
    Retry(Cause),
    /// Not failed, only not its turn: provider cooldown, busy key, answer still pending.
    /// Burns nothing, is shown as blocked until then, and is bounded by age.
    NotYet {
        /// The reason that the status shows.
        why: Blocked,
        /// How long to stay away, where the provider said so. A span, not a time: the database's clock
        /// decides when it is over, whatever the clocks of the provider and of this process say.
        after: Option<Duration>,
        /// What was seen.
        cause: Cause,
    },
    /// Trying again cannot help; an operator has to look.
    Dead(DeadReason, Cause),
}

/// What went wrong, for people and for the failure log. It never holds a payload or a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// How the failure counts.
    pub class: RetryClass,
    /// A short stable word, such as `timeout` or the provider's own error code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// The provider's id of the request that failed, for a conversation with its support.
    pub request_id: Option<String>,
    /// No sooner than this, where the provider said so.
    pub not_before: Option<Duration>,
}

impl Cause {
    /// A cause of `class` with a stable `code` and one sentence.
    ///
    /// Both may come from outside: control characters are left out, and what is too long is cut off.
    pub fn new(class: RetryClass, code: impl AsRef<str>, message: impl AsRef<str>) -> Self {
        let (code, message) = (plain(code.as_ref(), LONGEST_CODE), plain(message.as_ref(), LONGEST_MESSAGE));
        Self { class, code, message, request_id: None, not_before: None }
    }

    /// The same cause with the provider's id of the request.
    #[must_use]
    pub fn with_request_id(mut self, request_id: Option<String>) -> Self {
        self.request_id = request_id.map(|id| plain(&id, LONGEST_CODE));
        self
    }
}

/// In characters.
const LONGEST_CODE: usize = 64;
/// In characters.
const LONGEST_MESSAGE: usize = 500;

/// Nothing in it can break a log line, a terminal or a row.
fn plain(text: &str, longest: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_from_outside_cannot_break_a_row_or_a_log_line() {
        let cause = Cause::new(RetryClass::Permanent, "a\u{0}b\n", "\u{1b}[31m".repeat(1000))
            .with_request_id(Some("x".repeat(1000)));

        assert_eq!(cause.code, "ab");
        assert_eq!(cause.message.len(), LONGEST_MESSAGE);
        assert!(!cause.message.contains('\u{1b}'));
        assert_eq!(cause.request_id.map(|id| id.len()), Some(LONGEST_CODE));
    }
}
