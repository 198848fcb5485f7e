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
    pub fn new(class: RetryClass, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, code: code.into(), message: message.into(), request_id: None, not_before: None }
    }

    /// The same cause with the provider's id of the request.
    #[must_use]
    pub fn with_request_id(mut self, request_id: Option<String>) -> Self {
        self.request_id = request_id;
        self
    }
}
