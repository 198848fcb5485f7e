//! Why a command was given up, and what an operator may do about it.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The reason code of a dead letter. Each has a section in `docs/runbook.md` and a test that produces it.
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
pub enum DeadReason {
    /// It failed as often as its workload allows.
    AttemptsExhausted,
    /// It was told "not yet" for longer than its workload allows.
    WaitedTooLong,
    /// The provider throttled it for longer than a day.
    ProviderCooldown,
    /// The provider refused it for good.
    ProviderRejected,
    /// Its payload is not what its kind promises.
    PayloadInvalid,
    /// No handler of its queue knows its kind, or the kind of what it is about.
    UnsupportedKind,
    /// Its message names no command of the ledger.
    CommandMissing,
    /// The database refused to store its effect.
    EffectRefused,
    /// It took its process down as often as its workload allows, with nothing else at work in it.
    WorkerCrashed,
}

impl DeadReason {
    /// True where the end counts as an attempt: a run said it. A crash says nothing and is counted apart.
    pub const fn is_attempt(self) -> bool {
        !matches!(self, Self::WorkerCrashed)
    }
}

/// What may be done with a dead letter.
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
pub enum ReplayPolicy {
    /// Send the frozen input through the queue once more.
    ReplaySameInput,
    /// Send a repaired input through the queue; the original and the difference are kept.
    RepairThenReplay,
    /// Decide that it need not run.
    Suppress,
    /// Settle it by hand and record how.
    ManualReconcile,
}

impl DeadReason {
    /// What may help against it. What may be done with one dead letter is what its workload allows as well:
    /// see [`crate::WorkloadSpec::ways_out`].
    pub const fn ways_out(self) -> &'static [ReplayPolicy] {
        use ReplayPolicy::{ManualReconcile, RepairThenReplay, ReplaySameInput, Suppress};
        match self {
            // The fault may lie outside, where it passes or was mended, or in what the input names.
            Self::AttemptsExhausted | Self::WaitedTooLong | Self::ProviderRejected | Self::WorkerCrashed => {
                &[ReplaySameInput, RepairThenReplay, Suppress, ManualReconcile]
            }
            // Nothing is wrong with the input. A run whose effect was refused has also made its calls with it:
            // another input would make them once more for something else.
            Self::ProviderCooldown | Self::UnsupportedKind | Self::EffectRefused => {
                &[ReplaySameInput, Suppress, ManualReconcile]
            }
            // The same input is refused the same way.
            Self::PayloadInvalid => &[RepairThenReplay, Suppress, ManualReconcile],
            // There is nothing to run.
            Self::CommandMissing => &[Suppress],
        }
    }
}

/// What was decided about a dead letter. It is decided once.
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
pub enum LetterState {
    /// Nothing yet.
    Open,
    /// Its command was sent through the queue once more.
    Replayed,
    /// Its command need not run.
    Suppressed,
    /// Its command was settled by hand.
    Reconciled,
}

impl ReplayPolicy {
    /// The state that it brings a dead letter into.
    pub const fn decides(self) -> LetterState {
        match self {
            Self::ReplaySameInput | Self::RepairThenReplay => LetterState::Replayed,
            Self::Suppress => LetterState::Suppressed,
            Self::ManualReconcile => LetterState::Reconciled,
        }
    }
}
