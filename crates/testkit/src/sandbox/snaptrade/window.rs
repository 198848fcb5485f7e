//! The quota: so many calls in any so many seconds. It is told the time, so that tests can pass it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// SnapTrade counts the trailing minute.
const PERIOD: Duration = Duration::from_mins(1);

/// The calls of the trailing period. A call that was refused is not among them.
pub(super) struct Window {
    quota: u32,
    period: Duration,
    calls: VecDeque<Instant>,
}

/// What the window says to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Whether the call may go on.
    pub(super) admitted: bool,
    /// Calls in a period.
    pub(super) limit: u32,
    /// Calls that could follow at once.
    pub(super) remaining: u32,
    /// Seconds, rounded up, until the oldest call leaves the window and makes room.
    pub(super) reset_s: u64,
}

impl Window {
    /// An empty window for so many calls a minute.
    pub(super) fn new(quota: u32) -> Self {
        Self { quota, period: PERIOD, calls: VecDeque::new() }
    }

    /// From now on so many calls in any such period. What was counted stays counted.
    pub(super) fn resize(&mut self, quota: u32, period: Duration) {
        (self.quota, self.period) = (quota, period);
    }

    /// Counts a call if there is room for it. Time must not go backwards between calls.
    pub(super) fn take(&mut self, now: Instant) -> Slot {
        let admitted = self.room(now) > 0;
        if admitted {
            self.calls.push_back(now);
        }
        Slot { admitted, ..self.look(now) }
    }

    /// What a call would be told now, without counting it.
    pub(super) fn look(&mut self, now: Instant) -> Slot {
        let remaining = self.room(now);
        let wait = self.calls.front().map_or(self.period, |oldest| self.period.saturating_sub(now - *oldest));
        let reset_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Slot { admitted: remaining > 0, limit: self.quota, remaining, reset_s }
    }

    fn room(&mut self, now: Instant) -> u32 {
        while self.calls.front().is_some_and(|oldest| now.duration_since(*oldest) >= self.period) {
            self.calls.pop_front();
        }
        let counted = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.quota.saturating_sub(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_last_call_of_the_quota_is_admitted_and_the_next_is_not() {
        let mut window = Window::new(2);
        let start = Instant::now();

        assert_eq!(window.take(start), Slot { admitted: true, limit: 2, remaining: 1, reset_s: 60 });
        let second = window.take(start + seconds(10.0));
        assert_eq!(second, Slot { admitted: true, limit: 2, remaining: 0, reset_s: 50 });
        let third = window.take(start + seconds(53.5));
        assert_eq!(third, Slot { admitted: false, limit: 2, remaining: 0, reset_s: 7 });
    }

    #[test]
    fn room_comes_back_call_by_call_and_not_all_at_once() {
        let mut window = Window::new(2);
        let start = Instant::now();
        window.take(start);
        window.take(start + seconds(30.0));

        assert!(!window.take(start + seconds(59.9)).admitted);
        assert!(window.take(start + seconds(60.0)).admitted);
        assert!(!window.take(start + seconds(60.1)).admitted);
        assert!(window.take(start + seconds(90.0)).admitted);
    }

    #[test]
    fn a_refused_call_does_not_push_the_reset_away() {
        let mut window = Window::new(1);
        let start = Instant::now();
        window.take(start);

        for second in 1..60 {
            let slot = window.take(start + Duration::from_secs(second));
            assert_eq!((slot.admitted, slot.reset_s), (false, 60 - second));
        }
        assert!(window.take(start + PERIOD).admitted);
    }

    #[test]
    fn a_resized_window_holds_what_was_counted_against_its_new_size() {
        let mut window = Window::new(100);
        let start = Instant::now();
        window.take(start);

        window.resize(1, seconds(2.0));

        assert!(!window.take(start + seconds(1.0)).admitted);
        assert!(window.take(start + seconds(2.0)).admitted);
    }

    #[test]
    fn looking_counts_nothing() {
        let mut window = Window::new(1);
        let now = Instant::now();

        assert_eq!(window.look(now), Slot { admitted: true, limit: 1, remaining: 1, reset_s: 60 });
        assert!(window.take(now).admitted);
    }
}
