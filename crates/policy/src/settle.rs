//! Turns a handler's verdict into what happens to the message.

use std::time::Duration;

use contract::{Blocked, Cause, DeadReason, RetryClass, Verdict, WorkloadSpec};

use crate::backoff::full_jitter;

/// What is known of a message before this run.
///
/// The counts are the ledger's: pgmq's read count also grows with crashes and hand-backs, so it can't be
/// the judge.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    /// Failed runs that burnt an attempt, this one not counted.
    pub failures: u32,
    /// Answers "not yet" in a row, this one not counted.
    pub waits: u32,
    /// How long ago the first of them was.
    pub waiting: Duration,
}

/// What happens to a message after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement<E> {
    /// The effect, the ledger and the archive in one commit.
    Succeed(E),
    /// Counted as failed; due again after a pause.
    Delay {
        /// From the database's now.
        after: Duration,
        /// What went wrong.
        cause: Cause,
    },
    /// Nothing counted; due again after a pause, shown as blocked until then.
    Park {
        /// The reason that the status shows.
        why: Blocked,
        /// From the database's now.
        after: Duration,
        /// What was seen.
        cause: Cause,
    },
    /// Given up.
    DeadLetter {
        /// The reason code.
        reason: DeadReason,
        /// What went wrong last.
        cause: Cause,
    },
}

/// Decides. `roll` in [0, 1) spreads the pauses.
#[must_use]
pub fn settle<E>(spec: &WorkloadSpec, history: History, verdict: Verdict<E>, roll: f64) -> Settlement<E> {
    match verdict {
        Verdict::Done(effect) => Settlement::Succeed(effect),
        Verdict::Dead(reason, cause) => Settlement::DeadLetter { reason, cause },
        Verdict::NotYet { why, cause, .. } if history.waiting >= spec.not_yet_at_most(why) => {
            Settlement::DeadLetter { reason: given_up_waiting(why), cause }
        }
        Verdict::NotYet { why, after, cause } => {
            let after =
                after.map_or_else(|| full_jitter(spec, history.waits, roll), |after| later(after, roll));
            Settlement::Park { why, after, cause }
        }
        Verdict::Retry(cause)
            if cause.class == RetryClass::Permanent || history.failures + 1 >= spec.max_attempts =>
        {
            Settlement::DeadLetter { reason: cause.class.dead_reason(), cause }
        }
        Verdict::Retry(cause) => {
            let after = full_jitter(spec, history.failures, roll).max(cause.not_before.unwrap_or_default());
            Settlement::Delay { after, cause }
        }
    }
}

const fn given_up_waiting(why: Blocked) -> DeadReason {
    match why {
        Blocked::ProviderCooldown => DeadReason::ProviderCooldown,
        _ => DeadReason::WaitedTooLong,
    }
}

/// Everybody who was told the same time must not come back at the same moment: up to a tenth later,
/// never sooner.
fn later(after: Duration, roll: f64) -> Duration {
    after
        + after
            .mul_f64(0.1 * roll.clamp(0.0, 1.0))
            .max(Duration::from_millis(250).mul_f64(roll.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use contract::Workload;
    use proptest::prelude::*;

    use super::*;

    const SPEC: &WorkloadSpec = Workload::SnaptradeAccountSync.spec();

    fn failed() -> Cause {
        Cause::new(RetryClass::Transient, "timeout", "the provider did not answer in time")
    }

    fn not_yet(after: Option<Duration>) -> Verdict<()> {
        Verdict::NotYet { why: Blocked::ProviderCooldown, after, cause: failed() }
    }

    #[test]
    fn the_last_attempt_goes_to_the_dead_letter_queue() {
        let history = History { failures: SPEC.max_attempts - 1, ..History::default() };
        let settlement = settle::<()>(SPEC, history, Verdict::Retry(failed()), 0.5);

        assert_eq!(
            settlement,
            Settlement::DeadLetter { reason: DeadReason::AttemptsExhausted, cause: failed() }
        );
    }

    #[test]
    fn a_failure_waits_and_the_providers_time_is_kept() {
        let cause = Cause { not_before: Some(Duration::from_secs(90)), ..failed() };
        let settlement = settle::<()>(SPEC, History::default(), Verdict::Retry(cause.clone()), 0.5);

        assert_eq!(settlement, Settlement::Delay { after: Duration::from_secs(90), cause });
    }

    #[test]
    fn a_message_in_cooldown_waits_without_burning_an_attempt() {
        let history = History { failures: SPEC.max_attempts - 1, ..History::default() };

        match settle(SPEC, history, not_yet(Some(Duration::from_mins(1))), 0.0) {
            Settlement::Park { why: Blocked::ProviderCooldown, after, .. } => assert_eq!(after.as_secs(), 60),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_message_told_not_yet_for_a_day_is_given_up() {
        let history = History { waiting: Duration::from_hours(24), waits: 40, failures: 0 };

        match settle(SPEC, history, not_yet(None), 0.5) {
            Settlement::DeadLetter { reason, .. } => assert_eq!(reason, DeadReason::ProviderCooldown),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_helped_is_given_up_at_once() {
        let verdict = Verdict::<()>::Dead(DeadReason::PayloadInvalid, failed());

        match settle(SPEC, History::default(), verdict, 0.5) {
            Settlement::DeadLetter { reason, .. } => assert_eq!(reason, DeadReason::PayloadInvalid),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_permanent_failure_is_not_tried_again() {
        let refused = Cause::new(RetryClass::Permanent, "1011", "no such account");

        match settle::<()>(SPEC, History::default(), Verdict::Retry(refused), 0.5) {
            Settlement::DeadLetter { reason, .. } => assert_eq!(reason, DeadReason::ProviderRejected),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn nobody_comes_back_before_the_providers_time(seconds in 0u64..86_400, roll in 0.0..1.0f64) {
            let asked = Duration::from_secs(seconds);
            match settle(SPEC, History::default(), not_yet(Some(asked)), roll) {
                Settlement::Park { after, .. } => prop_assert!(after >= asked && after <= asked.mul_f64(1.1) + Duration::from_millis(250)),
                other => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn every_chain_of_failures_ends(rolls in proptest::collection::vec(0.0..1.0f64, 20)) {
            for (failures, roll) in (0..).zip(rolls) {
                let history = History { failures, ..History::default() };
                match settle::<()>(SPEC, history, Verdict::Retry(failed()), roll) {
                    Settlement::Delay { after, .. } => prop_assert!(after <= SPEC.backoff_cap),
                    Settlement::DeadLetter { .. } => return Ok(()),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            prop_assert!(false, "twenty failures and still trying");
        }
    }
}
