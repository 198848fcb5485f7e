//! How many calls are in work at once, per provider and per key of it (an account).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Calls in work. A call counts from the moment its head has arrived until its answer is ready or its caller
/// is gone. The answer's way back is left out, so that a caller who makes one call after the other never
/// overlaps with itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlap {
    /// Right now.
    pub now: u32,
    /// The most there ever were.
    pub peak: u32,
}

impl Overlap {
    fn enter(&mut self) -> u32 {
        self.now += 1;
        self.peak = self.peak.max(self.now);
        self.now
    }
}

/// The overlap of one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderOverlap {
    /// All of its calls.
    pub all: Overlap,
    /// Its calls by account.
    pub keys: BTreeMap<Uuid, Overlap>,
}

/// The counters of all providers.
#[derive(Default)]
pub(super) struct Overlaps(Mutex<HashMap<&'static str, ProviderOverlap>>);

impl Overlaps {
    /// Counts a call in. Returns how many there are with it: at the provider, and for the key.
    pub(super) fn enter(&self, provider: &'static str, key: Option<Uuid>) -> (u32, Option<u32>) {
        let mut providers = self.lock();
        let counters = providers.entry(provider).or_default();
        (counters.all.enter(), key.map(|key| counters.keys.entry(key).or_default().enter()))
    }

    /// Counts a call out that [`Overlaps::enter`] counted in.
    pub(super) fn leave(&self, provider: &'static str, key: Option<Uuid>) {
        let mut providers = self.lock();
        let counters = providers.entry(provider).or_default();
        counters.all.now -= 1;
        if let Some(key) = key {
            counters.keys.entry(key).or_default().now -= 1;
        }
    }

    pub(super) fn of(&self, provider: &str) -> Overlap {
        self.lock().get(provider).map_or_else(Overlap::default, |counters| counters.all)
    }

    pub(super) fn of_key(&self, provider: &str, key: Uuid) -> Overlap {
        self.lock().get(provider).and_then(|counters| counters.keys.get(&key).copied()).unwrap_or_default()
    }

    pub(super) fn all(&self) -> BTreeMap<&'static str, ProviderOverlap> {
        self.lock().iter().map(|(provider, counters)| (*provider, counters.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, ProviderOverlap>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_stays_when_the_calls_have_left() {
        let overlaps = Overlaps::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));

        assert_eq!(overlaps.enter("snaptrade", Some(one)), (1, Some(1)));
        assert_eq!(overlaps.enter("snaptrade", Some(one)), (2, Some(2)));
        assert_eq!(overlaps.enter("snaptrade", Some(other)), (3, Some(1)));
        overlaps.leave("snaptrade", Some(one));
        overlaps.leave("snaptrade", Some(one));
        overlaps.leave("snaptrade", Some(other));

        assert_eq!(overlaps.of("snaptrade"), Overlap { now: 0, peak: 3 });
        assert_eq!(overlaps.of_key("snaptrade", one), Overlap { now: 0, peak: 2 });
        assert_eq!(overlaps.of("novu"), Overlap::default());
    }
}
