//! Payments that happen, and what Kill Bill tells of them: everything in the order in which it happened.

use chrono::{DateTime, SecondsFormat, TimeDelta};
use serde_json::json;
use uuid::Uuid;

use crate::Dice;

/// A payment that happened.
#[derive(Clone, Debug)]
pub struct Payment {
    /// Kill Bill's id.
    pub id: Uuid,
    /// The bodies of its notifications.
    pub notifications: Vec<String>,
    /// What they come to, by the word that the platform has for it.
    pub comes_to: &'static str,
}

/// One thing that Kill Bill tells: of which transaction, what it does, its status, and how much is asked for.
type Step = (usize, &'static str, &'static str, u32);

/// How payments go, and what each comes to. Every way is about as frequent as any other.
const WAYS: [(&str, &[Step]); 10] = [
    ("succeeded", &[(0, "PURCHASE", "PENDING", 15_000), (0, "PURCHASE", "SUCCESS", 15_000)]),
    (
        "failed",
        &[
            (0, "PURCHASE", "UNKNOWN", 15_000),
            (0, "PURCHASE", "PENDING", 15_000),
            (0, "PURCHASE", "PAYMENT_FAILURE", 15_000),
        ],
    ),
    (
        "succeeded",
        &[
            (0, "PURCHASE", "PLUGIN_FAILURE", 9_900),
            (1, "PURCHASE", "UNKNOWN", 9_900),
            (1, "PURCHASE", "PENDING", 9_900),
            (1, "PURCHASE", "SUCCESS", 9_900),
        ],
    ),
    (
        "succeeded",
        &[
            (0, "AUTHORIZE", "PENDING", 30_000),
            (0, "AUTHORIZE", "SUCCESS", 30_000),
            (1, "CAPTURE", "UNKNOWN", 10_000),
            (1, "CAPTURE", "PENDING", 10_000),
            (1, "CAPTURE", "SUCCESS", 10_000),
            (2, "CAPTURE", "PENDING", 20_000),
            (2, "CAPTURE", "SUCCESS", 20_000),
        ],
    ),
    (
        "reversed",
        &[
            (0, "PURCHASE", "PENDING", 15_000),
            (0, "PURCHASE", "UNKNOWN", 15_000),
            (0, "PURCHASE", "SUCCESS", 15_000),
            (1, "REFUND", "UNKNOWN", 5_000),
            (1, "REFUND", "PENDING", 5_000),
            (1, "REFUND", "SUCCESS", 5_000),
        ],
    ),
    ("pending", &[(0, "AUTHORIZE", "SUCCESS", 15_000), (1, "CAPTURE", "PENDING", 15_000)]),
    ("unknown", &[(0, "PURCHASE", "PAYMENT_SYSTEM_OFF", 15_000), (0, "PURCHASE", "UNKNOWN", 15_000)]),
    (
        "manual_reconcile",
        &[
            (0, "PURCHASE", "PENDING", 15_000),
            (0, "PURCHASE", "SUCCESS", 15_000),
            (0, "PURCHASE", "PAYMENT_FAILURE", 15_000),
        ],
    ),
    (
        "manual_reconcile",
        &[
            (0, "PURCHASE", "PENDING", 15_000),
            (0, "PURCHASE", "SUCCESS", 14_999),
            (1, "REFUND", "PENDING", 15_000),
            (1, "REFUND", "SUCCESS", 15_000),
        ],
    ),
    (
        "reversed",
        &[
            (0, "AUTHORIZE", "PENDING", 40_000),
            (0, "AUTHORIZE", "UNKNOWN", 40_000),
            (0, "AUTHORIZE", "SUCCESS", 40_000),
            (1, "CAPTURE", "UNKNOWN", 10_000),
            (1, "CAPTURE", "PENDING", 10_000),
            (1, "CAPTURE", "SUCCESS", 10_000),
            (2, "CAPTURE", "UNKNOWN", 10_000),
            (2, "CAPTURE", "PENDING", 10_000),
            (2, "CAPTURE", "SUCCESS", 10_000),
            (3, "CAPTURE", "UNKNOWN", 10_000),
            (3, "CAPTURE", "PENDING", 10_000),
            (3, "CAPTURE", "SUCCESS", 10_000),
            (4, "CAPTURE", "UNKNOWN", 10_000),
            (4, "CAPTURE", "PENDING", 10_000),
            (4, "CAPTURE", "SUCCESS", 10_000),
            (5, "REFUND", "PENDING", 40_000),
            (5, "REFUND", "SUCCESS", 40_000),
        ],
    ),
];

/// What is told of ten payments that follow one another.
pub const FACTS_OF_TEN: usize = 50;

/// So many payments; equal seeds give equal ones.
pub fn payments(seed: u64, n: usize) -> Vec<Payment> {
    let mut dice = Dice::new("payments", &[seed]);
    (0..n).map(|i| payment(&mut dice, i)).collect()
}

fn payment(dice: &mut Dice, i: usize) -> Payment {
    let (comes_to, steps) = WAYS[i % WAYS.len()];
    let (id, account) = (dice.uuid(), dice.uuid());
    let transactions: Vec<Uuid> = steps.iter().map(|_| dice.uuid()).collect();
    let started = DateTime::from_timestamp(1_777_604_645, 0).expect("a second of 2026");
    let notifications = steps
        .iter()
        .zip(0..)
        .map(|((transaction, kind, status, amount), minute)| {
            let is_processed = matches!(*status, "SUCCESS" | "PENDING");
            let metadata = json!({
                "paymentTransactionId": transactions[*transaction],
                // Where nothing was processed, that is what is told.
                "amount": if is_processed { *amount } else { 0 },
                "currency": "KRW",
                "status": status,
                "transactionType": kind,
                "effectiveDate": (started + TimeDelta::minutes(minute)).to_rfc3339_opts(SecondsFormat::Millis, true),
            });
            let notification = json!({
                // The name says whether nothing went wrong, which is not whether it went well.
                "eventType": if is_processed { "PAYMENT_SUCCESS" } else { "PAYMENT_FAILED" },
                "accountId": account,
                "objectType": "PAYMENT",
                "objectId": id,
                // JSON in a string, as the sender has it.
                "metaData": metadata.to_string(),
            });
            notification.to_string()
        })
        .collect();
    Payment { id, notifications, comes_to }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ten_payments_have_fifty_facts_and_no_two_alike() {
        assert_eq!(WAYS.iter().map(|(_, steps)| steps.len()).sum::<usize>(), FACTS_OF_TEN);
        for (_, steps) in WAYS {
            let told: BTreeSet<_> =
                steps.iter().map(|(transaction, _, status, _)| (transaction, status)).collect();
            assert_eq!(told.len(), steps.len(), "{steps:?}");
        }
    }

    #[test]
    fn equal_seeds_let_the_same_happen() {
        let told = |seed| {
            payments(seed, 3).into_iter().flat_map(|payment| payment.notifications).collect::<Vec<_>>()
        };

        assert_eq!(told(1), told(1));
        assert_ne!(told(1), told(2));
    }
}
