//! What a payment's facts come to, in whatever order and however often they are told.
//!
//! Each fact moves its transaction up a lattice, from nothing over what is open to how it ended, and never down. What
//! facts contradict one another about can't be moved up: it waits for a person.

use std::collections::BTreeMap;

use contract::killbill::{Fact, TransactionStatus, TransactionType};
use rust_decimal::Decimal;
use strum::{Display, IntoStaticStr};
use uuid::Uuid;

/// What the transactions of a payment come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// Nothing is known yet of how any transaction goes.
    Init,
    /// A transaction is not decided yet.
    Pending,
    /// A transaction may or may not have happened; it must not be tried again.
    Unknown,
    /// All have ended, and none has succeeded.
    Failed,
    /// All have ended, and at least one has succeeded.
    Succeeded,
    /// As before, and a void, a refund or a chargeback is among those that have succeeded. How much came back is in
    /// the amounts.
    Reversed,
    /// Facts contradict one another, and no further fact mends that.
    ManualReconcile(Conflict),
}

/// What two facts about one transaction contradict each other about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Conflict {
    /// It ended in two ways.
    Status,
    /// What it does.
    TransactionType,
    /// How much was processed.
    Amount,
    /// In which currency.
    Currency,
}

impl State {
    /// What the facts contradict one another about.
    pub const fn conflict(self) -> Option<Conflict> {
        match self {
            Self::ManualReconcile(conflict) => Some(conflict),
            _ => None,
        }
    }
}

/// Folds all facts about one payment.
pub fn fold<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> State {
    let mut transactions: BTreeMap<Uuid, Transaction<'a>> = BTreeMap::new();
    for fact in facts {
        transactions.entry(fact.transaction_id).or_default().absorb(fact);
    }
    let transactions = || transactions.values();
    if let Some(conflict) = transactions().filter_map(Transaction::conflict).min() {
        return State::ManualReconcile(conflict);
    }
    match transactions().filter_map(Transaction::open).max() {
        Some(Open::Unknown) => return State::Unknown,
        Some(Open::Pending) => return State::Pending,
        None => {}
    }
    let succeeded = || transactions().filter(|transaction| transaction.has_succeeded());
    if succeeded().any(Transaction::reverses) {
        State::Reversed
    } else if succeeded().next().is_some() {
        State::Succeeded
    } else if transactions().any(|transaction| transaction.end != Told::Never) {
        State::Failed
    } else {
        State::Init
    }
}

/// What is known of one transaction.
#[derive(Default)]
struct Transaction<'a> {
    kind: Told<TransactionType>,
    open: Option<Open>,
    end: Told<TransactionStatus>,
    amount: Told<Decimal>,
    currency: Told<&'a str>,
}

/// Not decided. Of two such facts the more careful one counts, whichever came later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Open {
    Pending,
    Unknown,
}

/// What facts say about one thing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Told<T> {
    #[default]
    Never,
    Alike(T),
    Differently,
}

impl<T: Copy + PartialEq> Told<T> {
    fn absorb(&mut self, value: T) {
        *self = match *self {
            Self::Never => Self::Alike(value),
            Self::Alike(known) if known == value => return,
            Self::Alike(_) | Self::Differently => Self::Differently,
        };
    }
}

impl<'a> Transaction<'a> {
    fn absorb(&mut self, fact: &'a Fact) {
        use TransactionStatus::{PaymentFailure, PaymentSystemOff, Pending, PluginFailure, Success, Unknown};

        self.kind.absorb(fact.transaction_type);
        match fact.status {
            PaymentSystemOff => {}
            Pending => self.open = self.open.max(Some(Open::Pending)),
            Unknown => self.open = self.open.max(Some(Open::Unknown)),
            Success | PaymentFailure | PluginFailure => self.end.absorb(fact.status),
        }
        // All others are sent with the amount 0, whatever was asked for.
        if matches!(fact.status, Success | Pending) {
            if let Some(amount) = fact.amount {
                self.amount.absorb(amount);
            }
            if let Some(currency) = &fact.currency {
                self.currency.absorb(currency);
            }
        }
    }

    fn conflict(&self) -> Option<Conflict> {
        if self.end == Told::Differently {
            Some(Conflict::Status)
        } else if self.kind == Told::Differently {
            Some(Conflict::TransactionType)
        } else if self.amount == Told::Differently {
            Some(Conflict::Amount)
        } else if self.currency == Told::Differently {
            Some(Conflict::Currency)
        } else {
            None
        }
    }

    fn open(&self) -> Option<Open> {
        self.open.filter(|_| self.end == Told::Never)
    }

    fn has_succeeded(&self) -> bool {
        self.end == Told::Alike(TransactionStatus::Success)
    }

    fn reverses(&self) -> bool {
        use TransactionType::{Chargeback, Refund, Void};

        matches!(self.kind, Told::Alike(Void | Refund | Chargeback))
    }
}

#[cfg(test)]
mod tests;
