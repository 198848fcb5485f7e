//! What a claimed message turns out to be.

use contract::{Cause, DeadReason, Job, RetryClass};
use store::queue::{Claimed, Ledger};

/// A message that was looked at.
pub(crate) enum Message<J> {
    /// Work for our handler.
    Job(J),
    /// Its command needs no run any more.
    Closed,
    /// Written by a newer version; a newer worker will understand it.
    Newer(Cause),
    /// Nobody will ever understand it.
    Unreadable(DeadReason, Cause),
}

/// Looks at a message.
pub(crate) fn read<J: Job>(claimed: &Claimed) -> Message<J> {
    let Some(ledger) = &claimed.command else {
        let cause = permanent("command_missing", "the message names no command of the ledger");
        return Message::Unreadable(DeadReason::CommandMissing, cause);
    };
    if ledger.is_closed {
        return Message::Closed;
    }
    let kind = claimed.kind.as_deref().unwrap_or("an unreadable message");
    if kind != J::KIND || ledger.kind != J::KIND {
        let sentence =
            format!("this queue's handler knows `{}`, not `{kind}` for `{}`", J::KIND, ledger.kind);
        return Message::Unreadable(DeadReason::UnsupportedKind, permanent("unsupported_kind", sentence));
    }
    if ledger.version > J::VERSION {
        let sentence =
            format!("payload version {} is newer than this worker's {}", ledger.version, J::VERSION);
        return Message::Newer(Cause::new(RetryClass::NotReady, "newer_version", sentence));
    }
    payload(ledger)
}

fn payload<J: Job>(ledger: &Ledger) -> Message<J> {
    match J::deserialize(&ledger.payload) {
        Ok(job) => Message::Job(job),
        Err(error) => {
            // serde's message would quote the payload; its category does not.
            let sentence = format!("the payload is not a {} ({:?} error)", J::KIND, error.classify());
            Message::Unreadable(DeadReason::PayloadInvalid, permanent("payload_invalid", sentence))
        }
    }
}

fn permanent(code: &str, sentence: impl AsRef<str>) -> Cause {
    Cause::new(RetryClass::Permanent, code, sentence)
}
