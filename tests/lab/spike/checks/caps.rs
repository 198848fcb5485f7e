//! `caps_kept`: nobody held more places than there are, and none is held when all is over.

use super::super::history::{Call, History, Left};
use super::Check;

pub(super) fn caps_kept(history: &History) -> Check {
    let mut problems = Vec::new();
    let most = history.calls.iter().map(|call| call.in_flight).max().unwrap_or_default();
    if most > history.cap {
        problems.push(format!("{most} calls were in flight at once, and {} is the cap", history.cap));
    }
    for sample in history.samples.iter().filter(|sample| sample.over_cap > 0) {
        problems.push(format!(
            "{} keys had more holders than places, {:.0} ms in",
            sample.over_cap, sample.at_ms
        ));
    }
    let Left { holds, in_use, lines, .. } = history.rows.left;
    if (holds, in_use, lines) != (0, 0, 0) {
        problems.push(format!(
            "when all was over {holds} places were held, {in_use} counted as held, and {lines} messages stood in line"
        ));
    }
    let seen = format!(
        "at most {most} of {} calls were in flight; in {} looks no key had more holders than places, and in the end \
         none had any",
        history.cap,
        history.samples.len()
    );
    Check::of("caps_kept", &problems, seen)
}

/// Calls that came while an earlier answer asked everybody to stay away. Shared cooldowns are to make it none.
pub(in super::super) fn in_cooldown(calls: &[Call]) -> usize {
    let mut cooldowns: Vec<(f64, f64)> = calls
        .iter()
        .filter_map(|call| Some((call.end_ms(), call.end_ms() + f64::from(call.asked_wait_s?) * 1000.0)))
        .collect();
    cooldowns.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut times: Vec<f64> = calls.iter().map(|call| call.at_ms).collect();
    times.sort_by(f64::total_cmp);
    let (mut next, mut until, mut inside) = (0, f64::NEG_INFINITY, 0);
    for at in times {
        while let Some((from, to)) = cooldowns.get(next).filter(|(from, _)| *from < at) {
            debug_assert!(from <= to);
            until = until.max(*to);
            next += 1;
        }
        inside += usize::from(at < until);
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::super::super::history::sample::{self, KEY, call};
    use super::*;

    fn check(damage: impl FnOnce(&mut History)) -> Check {
        let mut history = sample::history();
        damage(&mut history);
        caps_kept(&history)
    }

    #[test]
    fn more_calls_in_flight_than_places_for_runs_are_noticed() {
        assert!(!check(|history| history.calls[3].in_flight = 3).held);
    }

    #[test]
    fn a_key_with_too_many_holders_is_noticed() {
        assert!(!check(|history| history.samples[0].over_cap = 1).held);
    }

    #[test]
    fn a_place_that_leaked_is_noticed() {
        assert!(!check(|history| history.rows.left.holds = 1).held);
        assert!(!check(|history| history.rows.left.in_use = 1).held);
        assert!(!check(|history| history.rows.left.lines = 1).held);
    }

    #[test]
    fn a_call_between_a_throttle_and_its_end_is_in_cooldown() {
        let mut throttled = call(KEY, 0, 0.0);
        throttled.asked_wait_s = Some(1);
        let calls =
            [throttled, call(KEY, 0, 4.0), call(KEY, 0, 6.0), call(KEY, 0, 1004.0), call(KEY, 0, 1006.0)];

        assert_eq!(in_cooldown(&calls), 2);
        assert_eq!(in_cooldown(&calls[1..]), 0);
    }
}
