//! Guards that are taken away on purpose. Each has a fault that must then be seen to break something: a check that
//! nothing can fail has not checked.

use super::Tier;
use super::scene::Lack;

/// A guard that is missing while a fault happens.
#[derive(Clone, Copy)]
pub(super) struct Control {
    /// The guard.
    pub(super) name: &'static str,
    pub(super) lacks: Lack,
    /// The fault that shows it.
    pub(super) fault: &'static str,
    /// What is then said to have broken; anything else would be another mistake.
    pub(super) breaks: &'static str,
    pub(super) tier: Tier,
}

const fn guard(name: &'static str) -> Lack {
    Lack { guard: Some(name), patch: None }
}

const fn patch(sql: &'static str) -> Lack {
    Lack { guard: None, patch: Some(sql) }
}

/// All of them.
pub(super) const ALL: &[Control] = &[
    Control {
        name: "fence",
        lacks: patch(include_str!("lacks/fence.sql")),
        fault: "F11",
        breaks: "whose holder made no call",
        tier: Tier::Smoke,
    },
    Control {
        name: "one_dead_letter_transaction",
        lacks: Lack {
            guard: Some("one_dead_letter_transaction"),
            patch: Some(include_str!("lacks/one_dead_letter_transaction.sql")),
        },
        fault: "F07",
        breaks: "every job has ended",
        tier: Tier::Smoke,
    },
    Control {
        name: "release_check",
        lacks: guard("release_check"),
        fault: "F24",
        breaks: "were left open",
        tier: Tier::Full,
    },
    Control {
        name: "crash_apart",
        lacks: patch(include_str!("lacks/crash_apart.sql")),
        fault: "F17",
        breaks: "counted as an attempt",
        tier: Tier::Full,
    },
    Control {
        name: "parked_apart",
        lacks: patch(include_str!("lacks/parked_apart.sql")),
        fault: "F37",
        breaks: "claims read",
        tier: Tier::Full,
    },
    Control {
        name: "sorted_batches",
        lacks: Lack { guard: Some("sorted_batches"), patch: Some(include_str!("lacks/sorted_batches.sql")) },
        fault: "F34",
        breaks: "waited in a circle",
        tier: Tier::Full,
    },
    Control {
        name: "one_release",
        lacks: patch(include_str!("lacks/one_release.sql")),
        fault: "F74",
        breaks: "calls at once",
        tier: Tier::Smoke,
    },
    Control {
        name: "commit_first",
        lacks: guard("commit_first"),
        fault: "F58",
        breaks: "was promised and is not there",
        tier: Tier::Smoke,
    },
];
