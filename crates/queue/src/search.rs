//! Where and how far a claim looks.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use store::queue::{Ask, Claims, LANES};

/// Every so many claims begin with the least important class.
const LOWEST_FIRST_EVERY: u32 = 10;

/// A lane is searched from its beginning this often; in between from where the last find lay.
const WHOLE_EVERY: Duration = Duration::from_secs(1);

/// Under an old snapshot a search from the beginning passes every row that was taken since. It is done so much more
/// seldom than it takes, up to a bound: whatever it takes, it costs a claimer a hundredth of its time.
const WHOLE_SHARE: u32 = 100;

/// What was committed too late for the mark is found within this time at the latest.
const WHOLE_AT_LATEST: Duration = Duration::from_secs(10);

/// What was sent before the last find, and committed after it, may lie this far behind it.
const SLACK: TimeDelta = TimeDelta::seconds(1);

/// Looked at beyond what is wanted, while what is in front waits for keys.
const FAR: u32 = 200;

/// What the claims of one process have seen of its queue.
#[derive(Debug, Default)]
pub struct Search {
    turns: u32,
    last_whole: Option<Instant>,
    /// How long the last search from the beginning took; unknown while it is under way.
    whole_took: Option<Duration>,
    last_found: [Option<DateTime<Utc>>; LANES],
    is_far: bool,
}

impl Search {
    /// The next claim, for up to `limit` messages.
    pub fn next(&mut self, limit: u32, now: Instant) -> Ask {
        self.turns = self.turns.wrapping_add(1);
        let pause = (self.whole_took.unwrap_or_default() * WHOLE_SHARE).clamp(WHOLE_EVERY, WHOLE_AT_LATEST);
        let is_whole = self.last_whole.is_none_or(|last| now.duration_since(last) >= pause);
        if is_whole {
            self.last_whole = Some(now);
            self.whole_took = None;
        }
        Ask {
            limit,
            look: if self.is_far { limit.max(FAR) } else { limit },
            since: if is_whole {
                [None; LANES]
            } else {
                self.last_found.map(|found| found.map(|at| at - SLACK))
            },
            lowest_first: self.turns.is_multiple_of(LOWEST_FIRST_EVERY),
        }
    }

    /// Learns from what it found, and from how long that took.
    pub fn note(&mut self, claims: &Claims, now: Instant) {
        if let (Some(last), None) = (self.last_whole, self.whole_took) {
            self.whole_took = Some(now.duration_since(last));
        }
        self.is_far = claims.parked > 0;
        for message in &claims.messages {
            let found = &mut self.last_found[message.lane.min(LANES - 1)];
            *found = (*found).max(Some(message.due_at));
        }
    }
}

#[cfg(test)]
mod tests {
    use store::queue::{Claimed, Fence};

    use super::*;

    fn claims(lane: usize, due_at: DateTime<Utc>, parked: u32) -> Claims {
        let fence = Fence { queue: "q", msg_id: 1, read_ct: 1 };
        let message = Claimed { fence, lane, due_at, claimed_at: due_at, kind: None, command: None };
        Claims { messages: vec![message], parked, next_due: None }
    }

    #[test]
    fn a_lane_is_searched_from_the_last_find_and_once_a_second_from_its_beginning() {
        let (mut search, start, due) = (Search::default(), Instant::now(), Utc::now());
        assert_eq!(search.next(1, start).since, [None; LANES]);
        search.note(&claims(1, due, 0), start);
        search.note(&claims(1, due - TimeDelta::seconds(9), 0), start);

        let soon = search.next(1, start + Duration::from_millis(999));
        assert_eq!(soon.since, [None, Some(due - SLACK), None, None]);
        assert_eq!(search.next(1, start + WHOLE_EVERY).since, [None; LANES]);
    }

    #[test]
    fn a_search_from_the_beginning_that_takes_long_is_seldom_but_never_given_up() {
        for (took, pause) in [(9, 1000), (40, 4000), (100, 10_000), (5000, 10_000)] {
            let (mut search, start) = (Search::default(), Instant::now());
            let after = |ms| start + Duration::from_millis(ms);
            search.next(1, start);
            search.note(&claims(1, Utc::now(), 0), after(took));
            search.note(&claims(1, Utc::now(), 0), after(took + 900));

            assert_ne!(search.next(1, after(pause - 1)).since, [None; LANES], "{took} ms");
            assert_eq!(search.next(1, after(pause)).since, [None; LANES], "{took} ms");
        }
    }

    #[test]
    fn every_tenth_claim_begins_with_the_least_important() {
        let (mut search, now) = (Search::default(), Instant::now());
        let first: Vec<u32> = (1..=30).filter(|_| search.next(1, now).lowest_first).collect();

        assert_eq!(first.len(), 3);
    }

    #[test]
    fn it_looks_beyond_what_waits_for_keys_until_that_is_behind_it() {
        let (mut search, now) = (Search::default(), Instant::now());
        assert_eq!(search.next(5, now).look, 5);
        search.note(&claims(1, Utc::now(), 5), now);
        assert_eq!(search.next(5, now).look, FAR);
        search.note(&claims(1, Utc::now(), 0), now);
        assert_eq!(search.next(5, now).look, 5);
    }
}
