//! Every kind of payload that this version knows, for whoever has a payload and the name of its kind alone.

use std::fmt;

use serde_json::Value;

use crate::job::Job;
use crate::killbill::PaymentFacts;
use crate::snaptrade::AccountSync;

/// A payload that is not what its kind promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAJob {
    /// No version of ours knows this kind.
    UnknownKind(String),
    /// Read as its kind it makes no sense. The sentence names fields and types of ours, and may quote a short
    /// value of the payload.
    Unreadable {
        /// The kind it was read as.
        kind: &'static str,
        /// What is wrong.
        sentence: String,
    },
}

impl fmt::Display for NotAJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => {
                write!(f, "this version knows no kind `{kind}`, so it can't check the input")
            }
            Self::Unreadable { kind, sentence } => write!(f, "this is not a `{kind}`: {sentence}"),
        }
    }
}

impl std::error::Error for NotAJob {}

/// Reads a payload as the job of its kind, as the door does with a request, and answers it as the door would store
/// it.
pub fn checked(kind: &str, payload: &Value) -> Result<Value, NotAJob> {
    match kind {
        AccountSync::KIND => read::<AccountSync>(payload),
        PaymentFacts::KIND => read::<PaymentFacts>(payload),
        _ => Err(NotAJob::UnknownKind(kind.to_owned())),
    }
}

fn read<J: Job>(payload: &Value) -> Result<Value, NotAJob> {
    let job: Result<J, _> = serde_json::from_value(payload.clone());
    job.and_then(serde_json::to_value)
        .map_err(|error| NotAJob::Unreadable { kind: J::KIND, sentence: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACCOUNT: &str = "45a3056a-eef6-4904-a68e-d3f90c3e07c5";

    #[test]
    fn a_job_is_read_back_as_the_door_would_store_it() {
        let shouted = json!({ "account_id": ACCOUNT.to_uppercase(), "work_type": "holdings" });

        let job = checked(AccountSync::KIND, &shouted);

        assert_eq!(job, Ok(json!({ "account_id": ACCOUNT, "work_type": "holdings" })));
    }

    #[test]
    fn a_job_of_another_kind_with_a_field_too_many_or_of_no_kind_is_refused() {
        let sync = json!({ "account_id": ACCOUNT, "work_type": "holdings" });
        let mut more = sync.clone();
        more["priority"] = json!(0);

        for (kind, payload) in [
            (PaymentFacts::KIND, &sync),
            (AccountSync::KIND, &more),
            (AccountSync::KIND, &Value::Null),
            ("mailing", &sync),
        ] {
            assert!(checked(kind, payload).is_err(), "{kind}: {payload}");
        }
    }
}
