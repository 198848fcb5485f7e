//! The time of a drill, on two clocks that are read together once: a monotonic one to wait by, and the wall clock
//! that database and provider write into their records.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::figures::milliseconds;

/// When the first delivery is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
    began_at: Duration,
}

impl Clock {
    /// Begins so long from now.
    pub(super) fn starting_in(lead: Duration) -> Self {
        let began_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + lead;
        Self { began: Instant::now() + lead, began_at }
    }

    /// Milliseconds since 1970, as records count.
    pub(super) fn epoch_ms(&self) -> f64 {
        milliseconds(self.began_at)
    }

    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.began + at
    }

    /// Since the beginning; before it, less than nothing.
    pub(super) fn now_ms(&self) -> f64 {
        let now = Instant::now();
        milliseconds(now.saturating_duration_since(self.began))
            - milliseconds(self.began.saturating_duration_since(now))
    }
}
