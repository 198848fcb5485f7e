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
    /// No handler of its queue knows its kind.
    UnsupportedKind,
    /// Its message names no command of the ledger.
    CommandMissing,
    /// The database refused to store its effect.
    EffectRefused,
    /// It took its process down as often as its workload allows, with nothing else at work in it.
    WorkerCrashed,
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
