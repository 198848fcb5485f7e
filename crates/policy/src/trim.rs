//! How fast old rows are trimmed: batches shrink when the database is slow, and most of the time nothing is sent.

use std::time::Duration;

/// A round begins with a batch of this many rows.
pub const FIRST: u32 = 250;

const SMALLEST: u32 = 25;
const LARGEST: u32 = 1_000;

/// A batch that took longer was too large.
const SLOW: Duration = Duration::from_millis(250);
/// A batch that took less may grow.
const QUICK: Duration = Duration::from_millis(50);

/// Pauses are this many times as long as the batch before: trimming uses at most a fifth of one connection.
const REST: u32 = 4;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many rows it looks at.
    pub limit: u32,
    /// How long it waits.
    pub pause: Duration,
}

/// What follows a batch of `limit` rows that took so long.
#[must_use]
pub fn after_success(limit: u32, took: Duration) -> Pace {
    let limit = match took {
        took if took > SLOW => limit / 2,
        took if took < QUICK => limit.saturating_mul(2),
        _ => limit,
    };
    Pace { limit: limit.clamp(SMALLEST, LARGEST), pause: took.saturating_mul(REST).min(LONGEST_PAUSE) }
}

/// What follows a batch of `limit` rows that failed: the database has other worries.
#[must_use]
pub fn after_failure(limit: u32) -> Pace {
    Pace { limit: (limit / 4).max(SMALLEST), pause: LONGEST_PAUSE }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quick_database_gets_larger_batches_and_a_slow_one_smaller_ones() {
        let limits = |millis| {
            let next = |limit: &u32| Some(after_success(*limit, Duration::from_millis(millis)).limit);
            std::iter::successors(Some(FIRST), next).take(5).collect::<Vec<_>>()
        };

        assert_eq!(limits(10), [250, 500, 1000, 1000, 1000]);
        assert_eq!(limits(100), [250; 5]);
        assert_eq!(limits(900), [250, 125, 62, 31, 25]);
        assert_eq!(after_failure(1000), Pace { limit: 250, pause: LONGEST_PAUSE });
    }

    proptest! {
        #[test]
        fn batches_stay_within_bounds_and_rest_longer_than_they_work(limit: u32, millis in 0_u64..7_000) {
            let took = Duration::from_millis(millis);
            let pace = after_success(limit, took);

            prop_assert!((SMALLEST..=LARGEST).contains(&pace.limit));
            prop_assert_eq!(pace.pause, took * REST);
            prop_assert!((SMALLEST..=u32::MAX / 4).contains(&after_failure(limit).limit));
        }
    }
}
