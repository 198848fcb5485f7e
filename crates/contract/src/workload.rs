//! The eight workloads: one row each, from which queue, worker, setting, metric label and runbook heading
//! take their names.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::dead_letter::DeadReason;
use crate::dead_letter::ReplayPolicy::{self, ManualReconcile, RepairThenReplay, ReplaySameInput, Suppress};
use crate::env::{Key, keys};
use crate::queue::QueueSpec;
use crate::status::Blocked;

/// A kind of work with a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant's row in `spec` says what it is")]
pub enum Workload {
    SpicedbRelationshipSync,
    PaymentReconciliation,
    PaymentWebhookProcessing,
    DocumentRendering,
    SettlementExport,
    NotificationDispatch,
    CaregiverMatchingOptimization,
    SnaptradeAccountSync,
}

/// How important a command is at the door and in its queue; `P0` goes first and is shed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Critical: payments and their facts.
    P0 = 0,
    /// High.
    P1 = 1,
    /// Normal.
    P2 = 2,
    /// Scheduled, bulk and replayed work.
    P3 = 3,
}

impl Class {
    /// The number that the ledger stores.
    pub const fn number(self) -> i16 {
        self as i16
    }
}

/// What a workload promises: where its messages wait, who runs them, and for how long they are tried.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadSpec {
    /// The stable name at the door, in the ledger, in metric labels and in the runbook.
    pub kind: &'static str,
    /// Where its messages wait.
    pub queue: QueueSpec,
    /// The class of a command that nothing else classifies.
    pub class: Class,
    /// The binary that runs it.
    pub worker: &'static str,
    /// The setting that says how many runs one worker process has at a time. It has no default.
    pub concurrency: &'static Key,
    /// Failed runs before the command is dead-lettered.
    pub max_attempts: u32,
    /// Runs that took their process down, charged one by one, before the command is dead-lettered.
    pub max_crashes: u32,
    /// A run that takes longer is ended and counts as failed.
    pub run_deadline: Duration,
    /// The ceiling of the first backoff; each further failure doubles it.
    pub backoff_first: Duration,
    /// The ceiling of every backoff.
    pub backoff_cap: Duration,
    /// How long a command may be told "not yet" for a reason that has no bound of its own.
    pub not_yet_at_most: Duration,
    /// What an operator may do with its dead letters.
    pub replay: &'static [ReplayPolicy],
}

impl WorkloadSpec {
    /// How long "not yet" may be answered for `why`, counted from the first such answer in a row.
    ///
    /// A provider may ask any workload to stay away for a day; a payment's two open states have the
    /// bounds of the payment provider's own clean-up job.
    pub const fn not_yet_at_most(&self, why: Blocked) -> Duration {
        match why {
            Blocked::ProviderCooldown => longer(self.not_yet_at_most, hours(24)),
            Blocked::PaymentPending => hours(7 * 24),
            Blocked::PaymentUnknown => hours(6 * 24),
            Blocked::NotReady | Blocked::NewerVersion | Blocked::LimitReached | Blocked::Paused => {
                self.not_yet_at_most
            }
        }
    }

    /// What an operator may do with a dead letter of this workload that died for `reason`: what the workload
    /// allows and what can help. It is never nothing.
    pub fn ways_out(&self, reason: DeadReason) -> Vec<ReplayPolicy> {
        // A message without a command promised nobody anything, so no workload has a say in it.
        let has_a_say = !matches!(reason, DeadReason::CommandMissing);
        let helpful = reason.ways_out().iter().copied();
        helpful.filter(|policy| !has_a_say || self.replay.contains(policy)).collect()
    }

    const fn checked(self) -> Self {
        assert!(self.max_attempts > 0, "a message needs at least one attempt");
        assert!(self.max_crashes > 0, "a message needs at least one crash before it is given up");
        assert!(self.run_deadline.as_secs() > 0 && self.backoff_first.as_secs() > 0, "times are positive");
        assert!(
            self.backoff_first.as_secs() <= self.backoff_cap.as_secs(),
            "the first backoff is within the cap"
        );
        assert!(!self.replay.is_empty(), "a dead letter needs a way out");
        self
    }
}

impl Workload {
    /// Every workload, in the order of the contract's table.
    pub const ALL: [Self; 8] = [
        Self::SpicedbRelationshipSync,
        Self::PaymentReconciliation,
        Self::PaymentWebhookProcessing,
        Self::DocumentRendering,
        Self::SettlementExport,
        Self::NotificationDispatch,
        Self::CaregiverMatchingOptimization,
        Self::SnaptradeAccountSync,
    ];

    /// The workload's row.
    pub const fn spec(self) -> &'static WorkloadSpec {
        &SPECS[self as usize]
    }

    /// The stable name, such as `document-rendering`.
    pub const fn kind(self) -> &'static str {
        self.spec().kind
    }

    /// The queue its messages wait in.
    pub const fn queue(self) -> &'static QueueSpec {
        &self.spec().queue
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// No workload has this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWorkload(pub String);

impl fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no workload is called `{}`; the kinds are", self.0)?;
        Workload::ALL.iter().try_for_each(|workload| write!(f, " {workload}"))
    }
}

impl std::error::Error for UnknownWorkload {}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(kind: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.kind() == kind)
            .ok_or_else(|| UnknownWorkload(kind.to_owned()))
    }
}

const SPECS: [WorkloadSpec; 8] = [
    WorkloadSpec {
        kind: "spicedb-relationship-sync",
        queue: queue("sanmopia_spicedb_relationships", "sanmopia_spicedb_relationships_dead"),
        class: Class::P1,
        worker: "spicedb-sync-worker",
        concurrency: &keys::WORKER_AUTHORIZATION_SYNC_CONCURRENCY,
        max_attempts: 10,
        max_crashes: 3,
        run_deadline: seconds(30),
        backoff_first: seconds(1),
        backoff_cap: seconds(300),
        not_yet_at_most: hours(24),
        replay: &[ReplaySameInput, RepairThenReplay, Suppress],
    }
    .checked(),
    WorkloadSpec {
        kind: "payment-reconciliation",
        queue: queue("sanmopia_payment_reconciliation", "sanmopia_payment_reconciliation_dead"),
        class: Class::P0,
        worker: "payment-worker",
        concurrency: &keys::WORKER_PAYMENT_CONCURRENCY,
        max_attempts: 12,
        max_crashes: 3,
        run_deadline: seconds(45),
        backoff_first: seconds(5),
        backoff_cap: seconds(1800),
        not_yet_at_most: hours(7 * 24),
        replay: &[ReplaySameInput, ManualReconcile],
    }
    .checked(),
    WorkloadSpec {
        kind: "payment-webhook-processing",
        queue: queue("sanmopia_payment_webhook_processing", "sanmopia_payment_webhook_processing_dead"),
        class: Class::P0,
        worker: "webhook-worker",
        concurrency: &keys::WORKER_WEBHOOK_CONCURRENCY,
        max_attempts: 12,
        max_crashes: 3,
        run_deadline: seconds(30),
        backoff_first: seconds(1),
        backoff_cap: seconds(600),
        not_yet_at_most: hours(7 * 24),
        replay: &[ReplaySameInput, RepairThenReplay, Suppress, ManualReconcile],
    }
    .checked(),
    WorkloadSpec {
        kind: "document-rendering",
        queue: queue("sanmopia_document_rendering", "sanmopia_document_rendering_dead"),
        class: Class::P1,
        worker: "render-worker",
        concurrency: &keys::WORKER_DOCUMENT_RENDER_CONCURRENCY,
        max_attempts: 5,
        max_crashes: 3,
        run_deadline: seconds(600),
        backoff_first: seconds(5),
        backoff_cap: seconds(600),
        not_yet_at_most: hours(6),
        replay: &[ReplaySameInput, RepairThenReplay, Suppress],
    }
    .checked(),
    WorkloadSpec {
        kind: "settlement-export",
        queue: queue("sanmopia_settlement_export", "sanmopia_settlement_export_dead"),
        class: Class::P1,
        worker: "settlement-worker",
        concurrency: &keys::WORKER_SETTLEMENT_EXPORT_CONCURRENCY,
        max_attempts: 5,
        max_crashes: 3,
        run_deadline: seconds(3600),
        backoff_first: seconds(10),
        backoff_cap: seconds(600),
        not_yet_at_most: hours(24),
        replay: &[ReplaySameInput, Suppress, ManualReconcile],
    }
    .checked(),
    WorkloadSpec {
        kind: "notification-dispatch",
        queue: queue("sanmopia_notification_dispatch", "sanmopia_notification_dispatch_dead"),
        class: Class::P2,
        worker: "notification-worker",
        concurrency: &keys::WORKER_NOTIFICATION_CONCURRENCY,
        max_attempts: 8,
        max_crashes: 3,
        run_deadline: seconds(60),
        backoff_first: seconds(5),
        backoff_cap: seconds(1800),
        not_yet_at_most: hours(24),
        replay: &[ReplaySameInput, Suppress],
    }
    .checked(),
    WorkloadSpec {
        kind: "caregiver-matching-optimization",
        queue: queue(
            "sanmopia_caregiver_matching_optimization",
            "sanmopia_caregiver_matching_optimization_dead",
        ),
        class: Class::P1,
        worker: "matching-worker",
        concurrency: &keys::WORKER_MATCHING_CONCURRENCY,
        max_attempts: 3,
        max_crashes: 2,
        run_deadline: seconds(900),
        backoff_first: seconds(10),
        backoff_cap: seconds(600),
        not_yet_at_most: hours(6),
        replay: &[ReplaySameInput, Suppress],
    }
    .checked(),
    WorkloadSpec {
        kind: "snaptrade-account-sync",
        queue: queue("sanmopia_snaptrade_account_sync", "sanmopia_snaptrade_account_sync_dead"),
        class: Class::P1,
        worker: "webhook-worker",
        concurrency: &keys::WORKER_SNAPTRADE_SYNC_CONCURRENCY,
        max_attempts: 8,
        max_crashes: 3,
        run_deadline: seconds(600),
        backoff_first: seconds(5),
        backoff_cap: seconds(1800),
        not_yet_at_most: hours(24),
        replay: &[ReplaySameInput, Suppress],
    }
    .checked(),
];

/// A free `const` is always evaluated, so a row out of place stops the build.
const _: () = {
    let mut i = 0;
    while i < Workload::ALL.len() {
        assert!(Workload::ALL[i] as usize == i, "`ALL` and `SPECS` are in the order of the variants");
        i += 1;
    }
};

const fn queue(name: &'static str, dead_letter: &'static str) -> QueueSpec {
    QueueSpec { name, dead_letter, lease: seconds(60) }.checked()
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn hours(n: u64) -> Duration {
    Duration::from_secs(n * 3600)
}

const fn longer(a: Duration, b: Duration) -> Duration {
    if a.as_secs() > b.as_secs() { a } else { b }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for workload in Workload::ALL {
            assert_eq!(workload.kind().parse(), Ok(workload));
        }
    }

    #[test]
    fn an_unknown_kind_is_answered_with_the_known_ones() {
        let error = "mailing".parse::<Workload>().expect_err("there is no such workload").to_string();

        assert!(error.contains("`mailing`") && error.contains("notification-dispatch"), "{error}");
    }

    #[test]
    fn kinds_queues_and_settings_are_distinct() {
        for (i, a) in Workload::ALL.iter().enumerate() {
            for b in &Workload::ALL[i + 1..] {
                assert_ne!(a.kind(), b.kind());
                assert_ne!(a.queue().name, b.queue().name);
                assert_ne!(a.spec().concurrency.name, b.spec().concurrency.name);
            }
        }
    }

    #[test]
    fn every_dead_letter_has_a_way_out() {
        for workload in Workload::ALL {
            for reason in DeadReason::VARIANTS {
                assert!(!workload.spec().ways_out(*reason).is_empty(), "{workload}: {reason}");
            }
        }
    }

    #[test]
    fn what_cannot_help_is_not_offered() {
        let ways_out = |workload: Workload, reason| workload.spec().ways_out(reason);

        let facts = Workload::PaymentWebhookProcessing;
        assert!(!ways_out(facts, DeadReason::PayloadInvalid).contains(&ReplaySameInput));
        assert!(!ways_out(facts, DeadReason::EffectRefused).contains(&RepairThenReplay));
        let payments = Workload::PaymentReconciliation;
        assert_eq!(ways_out(payments, DeadReason::PayloadInvalid), [ManualReconcile]);
        assert_eq!(ways_out(payments, DeadReason::CommandMissing), [Suppress]);
    }

    #[test]
    fn a_provider_may_keep_any_workload_waiting_for_a_day() {
        for workload in Workload::ALL {
            assert!(workload.spec().not_yet_at_most(Blocked::ProviderCooldown) >= hours(24), "{workload}");
        }
    }

    #[test]
    fn an_unclear_payment_is_given_up_before_a_pending_one() {
        let spec = Workload::PaymentReconciliation.spec();

        assert_eq!(spec.not_yet_at_most(Blocked::PaymentUnknown), hours(6 * 24));
        assert_eq!(spec.not_yet_at_most(Blocked::PaymentPending), hours(7 * 24));
    }
}
