//! What the outside may know about a command: its public status, and why it waits.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Where a command stands. A terminal status never goes back by itself.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// In the ledger; its message is not due yet.
    Accepted,
    /// Its message waits for a worker.
    Queued,
    /// A worker holds its message and has beaten at least once.
    Running,
    /// Failed at least once; another attempt is planned.
    Retrying,
    /// Not its turn: see [`Blocked`] for why and until when.
    Blocked,
    /// Terminal: the work is done, exactly once.
    Succeeded,
    /// Terminal until an operator acts: see the dead letter's reason.
    DeadLettered,
    /// An operator sent it back to its queue.
    Replayed,
    /// Terminal: an operator decided that it need not run.
    Suppressed,
    /// Terminal: an operator settled it by hand.
    Reconciled,
    /// Terminal: a later event made it pointless.
    Superseded,
    /// Terminal: its caller took it back.
    Cancelled,
}

impl Status {
    /// True where nothing happens any more unless somebody acts.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Accepted
            | Self::Queued
            | Self::Running
            | Self::Retrying
            | Self::Blocked
            | Self::Replayed => false,
            Self::Succeeded
            | Self::DeadLettered
            | Self::Suppressed
            | Self::Reconciled
            | Self::Superseded
            | Self::Cancelled => true,
        }
    }
}

/// Why a command that has not failed is not running.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Blocked {
    /// The provider asked to be left alone until a time.
    ProviderCooldown,
    /// What the work needs is still being prepared elsewhere.
    NotReady,
    /// The payment provider has not decided yet.
    PaymentPending,
    /// The payment may or may not have happened.
    PaymentUnknown,
    /// The message was written by a newer version than the worker that claimed it.
    NewerVersion,
    /// As many run already as a key that it needs lets in.
    LimitReached,
    /// An operator paused its queue or a key that it needs.
    Paused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_back_as_it_was_written() {
        for status in Status::VARIANTS {
            assert_eq!(status.to_string().parse(), Ok(*status));
        }
    }

    #[test]
    fn the_words_of_the_public_contract_are_kept() {
        assert_eq!(Status::DeadLettered.to_string(), "dead_lettered");
        assert_eq!(Blocked::ProviderCooldown.to_string(), "provider_cooldown");
    }
}
