//! What to do with a message whose earlier claims ended without a word.
//!
//! Such an end is no proof: a killed process takes its innocent neighbours with it. So the first one changes nothing,
//! and only a message that ran alone when its process went down is charged.

use contract::WorkloadSpec;

/// What is known of a message's earlier claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Claims that ended without a word.
    pub silent_ends: u32,
    /// Crashes that it was charged with.
    pub crashes: u32,
    /// True where it ran alone in its last claim, and that one ended without a word.
    pub was_alone: bool,
}

/// How a message is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Beside the others.
    Beside,
    /// With nothing else in its process.
    Alone,
    /// Not any more: it has taken down as many processes as its workload allows.
    GiveUp,
}

/// The silent end after which a message runs alone.
const SUSPECT_FROM: u32 = 2;

impl Record {
    /// Crashes to be charged, the last claim's included.
    #[must_use]
    pub const fn charged(self) -> u32 {
        self.crashes + self.was_alone as u32
    }
}

/// Decides.
#[must_use]
pub const fn course(spec: &WorkloadSpec, record: Record) -> Course {
    if record.charged() >= spec.max_crashes {
        Course::GiveUp
    } else if record.silent_ends >= SUSPECT_FROM {
        Course::Alone
    } else {
        Course::Beside
    }
}

#[cfg(test)]
mod tests {
    use contract::Workload;
    use proptest::prelude::*;

    use super::*;

    const SPEC: &WorkloadSpec = Workload::SnaptradeAccountSync.spec();

    /// A message that is killed in every claim, by itself or by its neighbours: how often it runs, and how it ends.
    fn life(kills_itself: bool, claims: u32) -> (Vec<Course>, u32) {
        let (mut record, mut courses) = (Record::default(), Vec::new());
        for _ in 0..claims {
            record = Record { crashes: record.charged(), ..record };
            let course = course(SPEC, Record { was_alone: false, ..record });
            courses.push(course);
            if course == Course::GiveUp || (course == Course::Alone && !kills_itself) {
                break;
            }
            record =
                Record { silent_ends: record.silent_ends + 1, was_alone: course == Course::Alone, ..record };
        }
        (courses, record.crashes)
    }

    #[test]
    fn what_kills_its_process_runs_twice_beside_others_then_alone_then_never_again() {
        use Course::{Alone, Beside, GiveUp};

        assert_eq!(life(true, 10), (vec![Beside, Beside, Alone, Alone, Alone, GiveUp], SPEC.max_crashes));
    }

    #[test]
    fn a_neighbour_of_what_kills_is_charged_nothing() {
        assert_eq!(life(false, 10), (vec![Course::Beside, Course::Beside, Course::Alone], 0));
    }

    proptest! {
        #[test]
        fn nobody_is_given_up_without_having_run_alone_that_often(silent_ends in 0u32..1000) {
            prop_assert_ne!(course(SPEC, Record { silent_ends, ..Record::default() }), Course::GiveUp);
        }
    }
}
