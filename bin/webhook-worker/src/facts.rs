//! Kill Bill's facts: read what a payment's feed holds beyond what was taken in, and take it in.
//!
//! The message is a wake-up. A run takes in everything that is there, whoever announced it, so that of several wake-ups
//! the later ones find nothing left.

use contract::killbill::{Fact, PaymentFacts};
use contract::{Cause, DeadReason, RetryClass, Verdict};
use queue::{Handler, Lease};
use store::payment::{self, Entry, Facts};
use store::{Effect, Pool};
use webhook::Reason;
use webhook::killbill::read_fact;

use crate::database_failed;

/// Entries that are read at a time. A body may have 256 KiB; real ones have less than one.
const PAGE: u32 = 128;

/// Takes payments' facts in.
pub struct KillbillFacts {
    pool: Pool,
}

impl KillbillFacts {
    /// A handler that reads feeds from `pool`.
    pub const fn new(pool: Pool) -> Self {
        Self { pool }
    }
}

impl Handler for KillbillFacts {
    type Job = PaymentFacts;

    async fn handle(&self, job: &PaymentFacts, lease: &Lease) -> Verdict<Effect> {
        loop {
            let entries =
                payment::waiting(&self.pool, &job.tenant, job.payment_id, lease.command(), PAGE).await;
            let entries = match entries {
                Ok(entries) => entries,
                Err(error) => return database_failed(&error),
            };
            if entries.is_empty() {
                return Verdict::Done(Effect::None);
            }
            let is_last = entries.len() < PAGE as usize;
            let Read { facts, own } = read(job, entries);
            if is_last && own.is_none() {
                return Verdict::Done(Effect::PaymentFacts(Box::new(facts)));
            }
            // A dead letter has no effect, and one effect holds no more than a page.
            match payment::take_in(&self.pool, lease.fence(), &facts).await {
                Ok(true) => {}
                // The runtime finds out by itself when it settles.
                Ok(false) => return Verdict::Done(Effect::None),
                Err(error) => return database_failed(&error),
            }
            if let Some(refusal) = own {
                return Verdict::Dead(refusal.dead_reason(), refusal.cause());
            }
        }
    }
}

/// Why an entry can't be read. The door has read all of them, so either was something damaged since, or that door was
/// newer than this worker.
#[derive(Clone, Copy)]
enum Refusal {
    /// The inbox has no JSON of it any more, or never had.
    BodyMissing,
    /// It speaks of another payment than the feed it stands in.
    OtherPayment,
    Unreadable(Reason),
}

impl Refusal {
    fn word(self) -> &'static str {
        match self {
            Self::BodyMissing => "body_missing",
            Self::OtherPayment => "other_payment",
            Self::Unreadable(reason) => reason.into(),
        }
    }

    const fn dead_reason(self) -> DeadReason {
        match self {
            Self::Unreadable(Reason::UnknownEvent | Reason::UnknownStatus) => DeadReason::UnsupportedKind,
            _ => DeadReason::PayloadInvalid,
        }
    }

    fn cause(self) -> Cause {
        Cause::new(RetryClass::Permanent, self.word(), "the webhook's fact can't be read from the inbox")
    }
}

struct Read {
    facts: Facts,
    /// Why the entry that made the command can't be read.
    own: Option<Refusal>,
}

fn read(job: &PaymentFacts, entries: Vec<Entry>) -> Read {
    let mut own = None;
    let facts = entries
        .into_iter()
        .map(|entry| {
            let fact = fact(job, entry.body.as_deref());
            if entry.is_own {
                own = fact.as_ref().err().copied();
            }
            (entry.seq, fact.map_err(Refusal::word))
        })
        .collect();
    Read { facts: Facts { tenant: job.tenant.clone(), payment_id: job.payment_id, facts }, own }
}

fn fact(job: &PaymentFacts, body: Option<&str>) -> Result<Fact, Refusal> {
    let fact = read_fact(body.ok_or(Refusal::BodyMissing)?.as_bytes()).map_err(Refusal::Unreadable)?;
    if fact.payment_id == job.payment_id { Ok(fact) } else { Err(Refusal::OtherPayment) }
}
