//! What a push notification is: its derived identity, its event, and what that means to us.

use std::time::Duration;

use contract::killbill::Fact;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::push::Push;
use crate::object::Object;
use crate::{Identity, Reason};

/// An admitted delivery, read as far as it can be read.
#[derive(Clone, Debug)]
pub struct Event {
    /// Derived from what the event says: the sender gives events no id.
    pub identity: Identity,
    /// What the sender calls the event. It is not the outcome.
    pub event_type: Option<String>,
    /// True where jsonb can hold the body: it is JSON, not too deep, and free of NUL characters.
    pub is_clean_json: bool,
    /// What it says about a payment.
    pub fact: Option<Fact>,
    broken: Option<Reason>,
}

/// What an event means to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Number it in the payment's feed and wake the worker.
    TakeFactIn {
        /// Kill Bill's id of the payment.
        payment_id: Uuid,
    },
    /// Keep it.
    Record,
    /// Set it aside for a person.
    Quarantine(Reason),
}

impl Event {
    /// Reads a body that was admitted as one of `tenant`.
    ///
    /// Byte-equal events that carry no data are one event where they were received in the same `window`, and two
    /// otherwise: a second change of an account looks just like a repetition of the first.
    pub fn read(tenant: &str, body: &[u8], received_at_unix_s: u64, window: Duration) -> Self {
        let object = Object::read(body);
        let push = object.as_ref().ok_or(Reason::NotJson).and_then(Push::of);
        let reading = push.as_ref().map_err(|reason| *reason).and_then(Push::fact);
        let identity = match (&push, &reading) {
            (Ok(push), Ok(Some(fact))) => push.identity_of_fact(tenant, fact),
            (Ok(push), Ok(None) | Err(Reason::UnknownEvent)) => {
                push.identity(tenant, received_at_unix_s / window.as_secs().max(1))
            }
            _ => Identity::of_body(&Sha256::digest(body).into()),
        };
        Self {
            identity,
            event_type: object.as_ref().and_then(|object| object.word("eventType")),
            is_clean_json: object.as_ref().is_some_and(Object::is_clean_json),
            broken: reading.as_ref().err().copied(),
            fact: reading.ok().flatten(),
        }
    }

    /// Decides.
    pub const fn meaning(&self) -> Meaning {
        match (self.broken, &self.fact) {
            (Some(reason), _) => Meaning::Quarantine(reason),
            (None, Some(fact)) => Meaning::TakeFactIn { payment_id: fact.payment_id },
            (None, None) => Meaning::Record,
        }
    }
}

#[cfg(test)]
mod tests;
