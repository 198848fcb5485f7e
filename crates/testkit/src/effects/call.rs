//! What is known of one call.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a caller may say about a call, beside its body.
pub mod header {
    /// Equal keys have one effect.
    pub const KEY: &str = "idempotency-key";
    /// Calls of one group are expected not to overlap, or only so much.
    pub const GROUP: &str = "x-group";
    /// The lease that the call was made under, `msg_id/read_ct`.
    pub const FENCE: &str = "x-fence";
    /// The caller's attempt, from 1.
    pub const ATTEMPT: &str = "x-attempt";
}

/// A call, as it was when it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// By the wall clock.
    pub at: DateTime<Utc>,
    /// See [`header::KEY`].
    pub key: Option<String>,
    /// See [`header::GROUP`].
    pub group: Option<String>,
    /// See [`header::FENCE`].
    pub fence: Option<String>,
    /// See [`header::ATTEMPT`].
    pub attempt: Option<u32>,
    /// The effect that the caller is told of.
    pub effect: Option<Uuid>,
    /// An earlier call with the key had the effect.
    pub is_repeat: bool,
    /// Calls of the group that were in work, with it.
    pub in_flight_group: Option<u32>,
    /// What is to become of it.
    pub answer: Answer,
}

/// What a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The effect.
    Given,
    /// The end of its connection.
    Lost,
    /// This status.
    Failed(u16),
    /// The effect, once calls don't hang any more.
    Hanging,
}

impl Call {
    /// True where it had an effect of its own.
    pub const fn has_effect(&self) -> bool {
        self.effect.is_some() && !self.is_repeat
    }
}
