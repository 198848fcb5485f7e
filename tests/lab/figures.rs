//! Figures made of many measurements. Of none there is none.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// One figure of several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Nothing of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let least = values.iter().copied().min_by(f64::total_cmp);
        let most = values.iter().copied().max_by(f64::total_cmp);
        Some(Self { min: least?, max: most?, median: median(values)? })
    }

    /// Of each key's values.
    pub(crate) fn by_key<K: Ord>(values: impl IntoIterator<Item = (K, f64)>) -> BTreeMap<K, Self> {
        let mut grouped: BTreeMap<K, Vec<f64>> = BTreeMap::new();
        for (key, value) in values {
            grouped.entry(key).or_default().push(value);
        }
        grouped.into_iter().filter_map(|(key, values)| Some((key, Self::of(values)?))).collect()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} [{:.0}–{:.0}]", self.median, self.min, self.max)
    }
}

/// What most durations don't pass, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of them.
    pub p50_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
}

impl Percentiles {
    /// Nothing of nothing.
    pub(crate) fn of(durations: &[Duration]) -> Option<Self> {
        Some(Self { p50_ms: percentile_ms(durations, 50)?, p99_ms: percentile_ms(durations, 99)? })
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.2} ms, p99 {:.2} ms", self.p50_ms, self.p99_ms)
    }
}

/// The middle one; of an even number the mean of the two in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

/// The value that so many of a hundred don't pass (nearest rank), in milliseconds.
pub(crate) fn percentile_ms(durations: &[Duration], per_cent: usize) -> Option<f64> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().map(milliseconds)
}

/// In milliseconds, with their parts.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// As many of something as came to pass in a time, by the second.
pub(crate) fn per_s(n: usize, took: Duration) -> f64 {
    count(n) / took.as_secs_f64()
}

/// A count to reckon with.
pub(crate) fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_an_outlier() {
        assert_eq!(median([5.0, 1.0, 1000.0]), Some(5.0));
        assert_eq!(median([4.0, 2.0]), Some(3.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn a_spread_has_the_ends_and_the_middle_of_each_keys_values() {
        let spreads = Spread::by_key([("a", 3.0), ("b", 7.0), ("a", 1.0), ("a", 2.0)]);

        assert_eq!(spreads["a"], Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(spreads["b"], Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let durations: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();

        assert_eq!(percentile_ms(&durations, 50), Some(50.0));
        assert_eq!(percentile_ms(&durations, 99), Some(99.0));
        assert_eq!(percentile_ms(&durations, 100), Some(100.0));
        assert_eq!(percentile_ms(&durations[..1], 1), Some(100.0));
        assert_eq!(percentile_ms(&[], 99), None);
    }

    #[test]
    fn a_rate_is_by_the_second() {
        assert!((per_s(300, Duration::from_millis(1500)) - 200.0).abs() < 1e-9);
    }
}
