//! Which keys count, and when they are fetched: pure decisions over a time that comes from outside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::keys::KeySet;

/// A token with an unknown key may be a forgery, so a flood of them must not become a flood of fetches.
const PAUSE: Duration = Duration::from_secs(10);

/// Older keys are fetched anew, so that a withdrawn one is forgotten.
const STALE: Duration = Duration::from_mins(10);

/// How long the last known keys outlive their publisher.
const LONGEST: Duration = Duration::from_hours(24);

/// The keys that were fetched last.
#[derive(Default)]
pub(super) struct Cache {
    held: Option<Held>,
    /// When the last fetch began, whatever came of it.
    begun: Option<Instant>,
    failing: bool,
}

struct Held {
    keys: Arc<KeySet>,
    since: Instant,
}

impl Cache {
    /// The keys that count: none before the first fetch, nor after a day of failed ones.
    pub(super) fn keys(&self, now: Instant) -> Option<&Arc<KeySet>> {
        let held = self.held.as_ref().filter(|held| held.age(now) < LONGEST)?;
        Some(&held.keys)
    }

    /// Whether it is time to fetch, though no token asks for it.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.held.as_ref().is_none_or(|held| held.age(now) >= STALE)
    }

    /// Begins a fetch, unless the last one began just now.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let begins = self.begun.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if begins {
            self.begun = Some(now);
        }
        begins
    }

    /// Takes the keys of a fetch that began at `since` in place of the old ones.
    pub(super) fn keep(&mut self, keys: KeySet, since: Instant) {
        self.held = Some(Held { keys: Arc::new(keys), since });
    }

    /// Notes how a fetch went; true where the one before it went otherwise, which is worth a line in the log.
    pub(super) fn turns(&mut self, failing: bool) -> bool {
        std::mem::replace(&mut self.failing, failing) != failing
    }
}

impl Held {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    fn filled(now: Instant) -> Cache {
        let mut cache = Cache::default();
        assert!(cache.begin(now));
        cache.keep(KeySet::default(), now);
        cache
    }

    #[test]
    fn a_fetch_begins_no_sooner_than_a_pause_after_the_last_one() {
        let start = Instant::now();
        let mut cache = filled(start);

        assert!(!cache.begin(start));
        assert!(!cache.begin(start + PAUSE.saturating_sub(MOMENT)));
        assert!(cache.begin(start + PAUSE));
        assert!(!cache.begin(start + PAUSE + MOMENT));
    }

    #[test]
    fn a_failed_fetch_counts_for_the_pause_too() {
        let start = Instant::now();
        let mut cache = Cache::default();

        assert!(cache.begin(start));
        assert!(!cache.begin(start + PAUSE.saturating_sub(MOMENT)));
        assert!(cache.keys(start).is_none());
    }

    #[test]
    fn keys_get_stale_and_end_after_a_day() {
        let start = Instant::now();
        let cache = filled(start);

        assert!(!cache.is_stale(start + STALE.saturating_sub(MOMENT)));
        assert!(cache.is_stale(start + STALE));
        assert!(cache.keys(start + LONGEST.saturating_sub(MOMENT)).is_some());
        assert!(cache.keys(start + LONGEST).is_none());
    }

    #[test]
    fn only_the_first_of_several_failures_and_the_end_of_them_are_news() {
        let mut cache = Cache::default();

        let news: Vec<bool> =
            [false, true, true, true, false, false, true].map(|failing| cache.turns(failing)).into();
        assert_eq!(news, [false, true, false, false, true, false, true]);
    }

    #[test]
    fn a_clock_that_steps_back_does_no_harm() {
        let start = Instant::now() + LONGEST;
        let mut cache = filled(start);
        let before = start.checked_sub(PAUSE).expect("a day after the clock's beginning");

        assert!(cache.keys(before).is_some());
        assert!(!cache.is_stale(before));
        assert!(!cache.begin(before));
    }
}
