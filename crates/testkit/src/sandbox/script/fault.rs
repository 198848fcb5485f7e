//! The ways in which a call can go wrong.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What happens to a call that a rule hits. It happens behind authentication and quota: a fault never hides a
/// bad signature, and a call that it hits still counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// An error instead of the answer, in the form that the provider gives its errors.
    #[serde(rename_all = "snake_case")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The provider's own code.
        code: String,
        /// The sentence for people.
        detail: String,
        /// The `Retry-After` header, as it is sent: seconds, a date, or nonsense.
        #[serde(default)]
        retry_after: Option<String>,
        /// Seconds until the quota resets. When set, the answer says that nothing of the quota remains.
        #[serde(default)]
        reset_s: Option<u64>,
    },
    /// The right answer, but late.
    #[serde(rename = "latency_ms", with = "millis")]
    Latency(Duration),
    /// The work is done, then the connection is closed without an answer.
    LostAnswer,
    /// 200 with a body that is not JSON.
    Garbage,
    /// 200 without a body.
    Empty,
}

impl Fault {
    /// SnapTrade has not finished the account's first sync.
    pub fn populating() -> Self {
        Self::status(425, "3012", "The resource is currently being populated. Please try again later.")
    }

    /// The brokerage behind SnapTrade doesn't answer, or its sync lock is held.
    pub fn broker_down() -> Self {
        let detail = "Unable to sync with brokerage account. Invalid response from Brokerage API.";
        Self::status(503, "3002", detail)
    }

    /// SnapTrade's quota is used up for so many seconds.
    pub fn throttled(seconds: u64) -> Self {
        Self::Status {
            status: 429,
            code: "0000".to_owned(),
            detail: format!("Request was throttled. Expected available in {seconds} seconds."),
            retry_after: None,
            reset_s: Some(seconds),
        }
    }

    /// SnapTrade itself failed.
    pub fn unexpected() -> Self {
        Self::status(500, "1000", "Encountered an unexpected exception.")
    }

    fn status(status: u16, code: &str, detail: &str) -> Self {
        let (code, detail) = (code.to_owned(), detail.to_owned());
        Self::Status { status, code, detail, retry_after: None, reset_s: None }
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
