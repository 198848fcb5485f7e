//! When a process starts anew because of threads that it can't end.

/// A start costs the other runs more than sharing a core with one such thread.
const FEWEST: usize = 2;

/// Nobody knows how much memory an abandoned thread holds: many cores don't mean that many of them are harmless.
const MOST: usize = 8;

/// Decides, from the threads that compute for runs that have ended and the cores that the process may use. Once each
/// core has such a thread, useful work shares every one of them with what is useless.
#[must_use]
pub fn is_due(abandoned: usize, cores: usize) -> bool {
    abandoned >= cores.clamp(FEWEST, MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_process_starts_anew_once_each_core_has_an_abandoned_thread() {
        let due: Vec<usize> = (0..=5).filter(|abandoned| is_due(*abandoned, 4)).collect();

        assert_eq!(due, [4, 5]);
    }

    #[test]
    fn a_single_core_bears_one() {
        assert!(!is_due(1, 1));
        assert!(is_due(2, 1));
    }

    #[test]
    fn many_cores_do_not_bear_many_abandoned_threads() {
        assert!(!is_due(MOST - 1, 64));
        assert!(is_due(MOST, 64));
    }

    proptest! {
        #[test]
        fn a_process_that_abandoned_nothing_goes_on(cores in any::<usize>()) {
            prop_assert!(!is_due(0, cores));
        }
    }
}
