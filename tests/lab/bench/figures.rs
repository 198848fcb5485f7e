//! Figures made of many measurements. Of none there is none.

use std::time::Duration;

/// The middle one; of an even number the mean of the two in the middle.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

/// The value that so many of a hundred don't pass (nearest rank), in milliseconds.
pub(super) fn percentile_ms(durations: &[Duration], per_cent: usize) -> Option<f64> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(|duration| duration.as_secs_f64() * 1000.0)
}

/// As many of something as came to pass in a time, by the second.
pub(super) fn per_s(n: usize, took: Duration) -> f64 {
    count(n) / took.as_secs_f64()
}

/// A count to reckon with.
pub(super) fn count(n: usize) -> f64 {
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
