//! How long to wait before trying again.

use std::time::Duration;

use contract::WorkloadSpec;

/// Doubling beyond this changes nothing: the cap is reached long before, and 2^n overflows soon after.
const LARGEST_EXPONENT: u32 = 24;

/// Exponential backoff with full jitter: anything from nothing to the ceiling, which doubles with every
/// failure until the workload's cap. `roll` in [0, 1) comes from outside, which keeps the function pure.
#[must_use]
pub fn full_jitter(spec: &WorkloadSpec, failures: u32, roll: f64) -> Duration {
    ceiling(spec, failures).mul_f64(roll.clamp(0.0, 1.0))
}

/// The longest wait after `failures` earlier ones.
#[must_use]
pub fn ceiling(spec: &WorkloadSpec, failures: u32) -> Duration {
    let doubled = spec.backoff_first.saturating_mul(1 << failures.min(LARGEST_EXPONENT));
    doubled.min(spec.backoff_cap)
}

#[cfg(test)]
mod tests {
    use contract::Workload;
    use proptest::prelude::*;

    use super::*;

    const SPEC: &WorkloadSpec = Workload::SnaptradeAccountSync.spec();

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let seconds: Vec<u64> = (0..12).map(|failures| ceiling(SPEC, failures).as_secs()).collect();

        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800, 1800]);
    }

    #[test]
    fn ten_thousand_failures_wait_for_the_cap_and_no_longer() {
        assert_eq!(ceiling(SPEC, 10_000), SPEC.backoff_cap);
    }

    proptest! {
        #[test]
        fn no_roll_and_no_count_passes_the_cap(failures in any::<u32>(), roll in any::<f64>()) {
            for workload in Workload::ALL {
                let roll = if roll.is_nan() { 0.0 } else { roll };
                prop_assert!(full_jitter(workload.spec(), failures, roll) <= workload.spec().backoff_cap);
            }
        }
    }
}
