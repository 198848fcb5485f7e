//! The command that the program `probe-worker` works on: it behaves as its payload says, then has one effect at
//! [`testkit::Effects`].

use contract::{Job, Workload};
use serde::{Deserialize, Serialize};

/// What a run does. In JSON: `{"key":"k-1","group":"g","url":"http://127.0.0.1:4000","act":{"sleep_ms":250}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// The idempotency key of its effect.
    pub key: String,
    /// Whose calls are counted together at the provider.
    pub group: String,
    /// Where the provider answers, without a trailing slash.
    pub url: String,
    /// What it does before the call.
    pub act: Act,
}

/// What happens before the call. Acts with which the run ends make no call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Nothing.
    Plain,
    /// Waits so many milliseconds.
    SleepMs(u64),
    /// Burns CPU for so many milliseconds on a thread of the runtime, as no handler should.
    SpinMs(u64),
    /// Burns CPU for so many milliseconds on a thread of its own, and stops when it is asked to.
    ComputeMs(u64),
    /// Waits for ever.
    Hang,
    /// Panics.
    Panic,
    /// Aborts the process.
    Abort,
    /// Overflows the stack, which aborts the process.
    Overflow,
    /// Takes so many mebibytes of memory and writes to each page. Where there are as many, the run goes on.
    MemoryMib(usize),
    /// Fails and asks for another attempt.
    Fail,
    /// Fails so many times and then goes on.
    FailTimes(u32),
    /// Ends as a dead letter.
    Reject,
    /// When claimed for the first time, not yet for so many milliseconds; then it goes on.
    NotYetMs(u64),
}

impl Job for Probe {
    const WORKLOAD: Workload = Workload::PaymentReconciliation;
    const KIND: &'static str = "chaos.probe";
    const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn payload(act: &Value) -> Value {
        json!({ "key": "k-1", "group": "g", "url": "http://127.0.0.1:1", "act": act })
    }

    #[test]
    fn an_act_is_a_word_or_a_word_with_a_number() {
        let act = |act: Value| from_value::<Probe>(payload(&act)).unwrap().act;

        assert_eq!(act(json!("plain")), Act::Plain);
        assert_eq!(act(json!({ "sleep_ms": 250 })), Act::SleepMs(250));
        assert_eq!(act(json!({ "fail_times": 2 })), Act::FailTimes(2));
    }

    #[test]
    fn what_is_unknown_is_refused() {
        let mut more = payload(&json!("plain"));
        more["priority"] = json!(0);

        assert!(from_value::<Probe>(more).is_err());
        assert!(from_value::<Probe>(payload(&json!("sing"))).is_err());
        assert!(from_value::<Probe>(payload(&json!({ "sleep_ms": 1, "spin_ms": 1 }))).is_err());
    }
}
