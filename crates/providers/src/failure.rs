//! A call that did not succeed, in the terms in which a handler has to decide.

use std::time::Duration;

use contract::{Blocked, Cause, DeadReason, RetryClass, Verdict};

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Failure {
    /// What to do next.
    pub advice: Advice,
    /// The provider's error code, or a short word of ours.
    pub code: String,
    /// One sentence, without anything secret.
    pub message: String,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// What to do after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Try again; the provider may have named a time.
    Retry(Option<Duration>),
    /// The provider asked us to stay away, for so long where it said so.
    StayAway(Option<Duration>),
    /// What was asked for is still being prepared.
    Wait(Option<Duration>),
    /// The same call will fail the same way.
    GiveUp,
}

impl Failure {
    /// The verdict of a run that this failure ends.
    pub fn verdict<E>(self) -> Verdict<E> {
        let class = match self.advice {
            Advice::Retry(_) => RetryClass::Transient,
            Advice::StayAway(_) => RetryClass::Throttled,
            Advice::Wait(_) => RetryClass::NotReady,
            Advice::GiveUp => RetryClass::Permanent,
        };
        let cause = Cause::new(class, self.code, self.message).with_request_id(self.request_id);
        match self.advice {
            Advice::Retry(not_before) => Verdict::Retry(Cause { not_before, ..cause }),
            Advice::StayAway(after) => Verdict::NotYet { why: Blocked::ProviderCooldown, after, cause },
            Advice::Wait(after) => Verdict::NotYet { why: Blocked::NotReady, after, cause },
            Advice::GiveUp => Verdict::Dead(DeadReason::ProviderRejected, cause),
        }
    }
}
