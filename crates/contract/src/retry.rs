//! The five ways in which a run can fail, and what each costs.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::dead_letter::DeadReason;

/// Why a run did not succeed, in the one dimension that decides what happens next.
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
pub enum RetryClass {
    /// Something broke that may work next time: a timeout, a 5xx, a lost connection.
    Transient,
    /// The provider said "too many"; nothing is wrong with the command.
    Throttled,
    /// What the work needs is not there yet.
    NotReady,
    /// Somebody else changed the same thing at the same time.
    Conflict,
    /// The same input will fail the same way.
    Permanent,
}

impl RetryClass {
    /// The reason of the dead letter once the class's patience is used up.
    pub const fn dead_reason(self) -> DeadReason {
        match self {
            Self::Transient | Self::Conflict => DeadReason::AttemptsExhausted,
            Self::Throttled => DeadReason::ProviderCooldown,
            Self::NotReady => DeadReason::WaitedTooLong,
            Self::Permanent => DeadReason::ProviderRejected,
        }
    }
}
