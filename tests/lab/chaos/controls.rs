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
    Control { name: "fence", lacks: patch(include_str!("lacks/fence.sql")), fault: "F11", tier: Tier::Smoke },
    Control {
        name: "one_dead_letter_transaction",
        lacks: Lack {
            guard: Some("one_dead_letter_transaction"),
            patch: Some(include_str!("lacks/one_dead_letter_transaction.sql")),
        },
        fault: "F07",
        tier: Tier::Smoke,
    },
    Control { name: "release_check", lacks: guard("release_check"), fault: "F24", tier: Tier::Full },
    Control {
        name: "crash_apart",
        lacks: patch(include_str!("lacks/crash_apart.sql")),
        fault: "F17",
        tier: Tier::Full,
    },
    Control {
        name: "parked_apart",
        lacks: patch(include_str!("lacks/parked_apart.sql")),
        fault: "F37",
        tier: Tier::Full,
    },
    Control {
        name: "sorted_batches",
        lacks: Lack { guard: Some("sorted_batches"), patch: Some(include_str!("lacks/sorted_batches.sql")) },
        fault: "F34",
        tier: Tier::Full,
    },
    Control {
        name: "one_release",
        lacks: patch(include_str!("lacks/one_release.sql")),
        fault: "F74",
        tier: Tier::Smoke,
    },
    Control { name: "commit_first", lacks: guard("commit_first"), fault: "F58", tier: Tier::Smoke },
];
