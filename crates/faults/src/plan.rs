//! What a process was told: which points act when, and which guards are missing.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::names::{GUARDS, POINTS};

/// What a point does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// SIGKILL to the own process: nothing of it runs after this.
    Kill,
    /// Never goes on.
    Stall,
    /// SIGSTOP to the own process: it goes on in the same line once somebody continues it.
    Stop,
    Panic,
    /// SIGABRT, as a failed allocation or an overflown stack does.
    Abort,
    /// The enclosing function fails.
    Err,
}

const ACTIONS: [Action; 6] =
    [Action::Kill, Action::Stall, Action::Stop, Action::Panic, Action::Abort, Action::Err];

impl Action {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stall => "stall",
            Self::Stop => "stop",
            Self::Panic => "panic",
            Self::Abort => "abort",
            Self::Err => "err",
        }
    }
}

/// All that a process was told.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    triggers: Vec<Trigger>,
    lacking: Vec<Lacking>,
}

#[derive(Debug)]
struct Trigger {
    point: &'static str,
    nth: u64,
    action: Action,
    reached: AtomicU64,
}

#[derive(Debug)]
struct Lacking {
    guard: &'static str,
    was_asked: AtomicBool,
}

/// What is wrong with what it was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake(String);

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Plan {
    /// Reads both lists; an empty one names nothing.
    pub(crate) fn read(points: &str, guards: &str) -> Result<Self, Mistake> {
        let triggers = entries(points).map(Trigger::read).collect::<Result<_, _>>()?;
        let lacking = entries(guards).map(|name| {
            let guard = known("guard", GUARDS, name)?;
            Ok(Lacking { guard, was_asked: AtomicBool::new(false) })
        });
        Ok(Self { triggers, lacking: lacking.collect::<Result<_, _>>()? })
    }

    /// What the point does, now that it was reached once more.
    pub(crate) fn reach(&self, point: &str) -> Option<Action> {
        let mut action = None;
        for trigger in self.triggers.iter().filter(|trigger| trigger.point == point) {
            if trigger.reached.fetch_add(1, Ordering::Relaxed) + 1 == trigger.nth {
                action = action.or(Some(trigger.action));
            }
        }
        action
    }

    /// Whether the guard is missing, and whether that is news.
    pub(crate) fn lacks(&self, guard: &str) -> Option<IsFirst> {
        let lacking = self.lacking.iter().find(|lacking| lacking.guard == guard)?;
        Some(IsFirst(!lacking.was_asked.swap(true, Ordering::Relaxed)))
    }
}

/// True the first time that a missing guard is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IsFirst(pub(crate) bool);

impl Trigger {
    /// `name[:nth][:action]`.
    fn read(entry: &str) -> Result<Self, Mistake> {
        let mut parts = entry.split(':');
        let point = known("point", POINTS, parts.next().unwrap_or_default())?;
        let mut rest = parts.peekable();
        let nth = match rest.peek().map(|part| part.parse::<u64>()) {
            Some(Ok(0)) => {
                return Err(Mistake(format!("`{entry}`: a point is reached a first time, not a zeroth")));
            }
            Some(Ok(nth)) => {
                rest.next();
                nth
            }
            _ => 1,
        };
        let action = match rest.next() {
            None => Action::Kill,
            Some(word) => ACTIONS.into_iter().find(|action| action.word() == word).ok_or_else(|| {
                let words = ACTIONS.map(Action::word).join(", ");
                Mistake(format!("`{entry}`: `{word}` is neither a number nor one of {words}"))
            })?,
        };
        if rest.next().is_some() {
            return Err(Mistake(format!("`{entry}` has more parts than name, number and action")));
        }
        Ok(Self { point, nth, action, reached: AtomicU64::new(0) })
    }
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    let list = Some(list).filter(|list| !list.trim().is_empty());
    list.into_iter().flat_map(|list| list.split(',')).map(str::trim)
}

fn known(what: &str, names: &'static [&'static str], name: &str) -> Result<&'static str, Mistake> {
    names
        .iter()
        .copied()
        .find(|known| *known == name)
        .ok_or_else(|| Mistake(format!("no {what} is called `{name}`; there are: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(plan: &Plan, point: &str, times: usize) -> Vec<Option<Action>> {
        (0..times).map(|_| plan.reach(point)).collect()
    }

    fn mistake(points: &str, guards: &str) -> String {
        Plan::read(points, guards).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_name_alone_kills_the_first_time() {
        let plan = Plan::read("wk.after_claim", "").unwrap();

        assert_eq!(reached(&plan, "wk.after_claim", 2), [Some(Action::Kill), None]);
    }

    #[test]
    fn a_point_acts_at_the_nth_time_and_never_again() {
        let plan = Plan::read("wk.after_claim:3:stall", "").unwrap();

        assert_eq!(reached(&plan, "wk.after_claim", 5), [None, None, Some(Action::Stall), None, None]);
    }

    #[test]
    fn number_and_action_may_each_be_left_out() {
        let plan = Plan::read("gw.in_tx:2,gw.after_commit:err", "").unwrap();

        assert_eq!(reached(&plan, "gw.in_tx", 2), [None, Some(Action::Kill)]);
        assert_eq!(plan.reach("gw.after_commit"), Some(Action::Err));
    }

    #[test]
    fn a_point_may_act_several_times_and_others_do_not_count() {
        let plan = Plan::read("wk.heartbeat:1:panic, wk.heartbeat:3:abort", "").unwrap();

        assert_eq!(plan.reach("wk.after_claim"), None);
        assert_eq!(reached(&plan, "wk.heartbeat", 3), [Some(Action::Panic), None, Some(Action::Abort)]);
    }

    #[test]
    fn nothing_acts_that_was_not_named() {
        let plan = Plan::read("", " ").unwrap();

        assert!(POINTS.iter().all(|point| plan.reach(point).is_none()));
        assert!(GUARDS.iter().all(|guard| plan.lacks(guard).is_none()));
    }

    #[test]
    fn a_missing_guard_is_news_once() {
        let plan = Plan::read("", "commit_first,release_check").unwrap();

        assert_eq!(plan.lacks("commit_first"), Some(IsFirst(true)));
        assert_eq!(plan.lacks("commit_first"), Some(IsFirst(false)));
        assert_eq!(plan.lacks("release_check"), Some(IsFirst(true)));
        assert_eq!(plan.lacks("sorted_batches"), None);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = mistake("wk.after_clam", "");
        assert!(
            error.contains("no point is called `wk.after_clam`") && error.contains("wk.after_claim,"),
            "{error}"
        );

        let error = mistake("", "fences");
        assert!(error.contains("no guard is called `fences`") && error.contains("commit_first,"), "{error}");
    }

    #[test]
    fn what_is_no_such_entry_is_refused() {
        for points in [
            "wk.after_claim:0",
            "wk.after_claim:",
            "wk.after_claim:kill:2",
            "wk.after_claim:-1",
            "wk.after_claim:1:explode",
            "wk.after_claim:1:kill:now",
            "wk.after_claim,",
            ",",
            ":1",
        ] {
            assert!(mistake(points, "").contains('`'), "{points}");
        }
    }
}
