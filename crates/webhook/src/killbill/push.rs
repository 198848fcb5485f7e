//! The members of a push notification, and the JSON text that its `metaData` holds.

use contract::killbill::{Action, EventType, Fact};
use serde_json::Value;

use super::{SOURCE, fact};
use crate::canonical::{Charset, canonical};
use crate::object::Object;
use crate::repeated_key::has_repeated_key;
use crate::{Identity, Reason};

/// A push that can be read in one way only. Every member may be null.
#[derive(Debug)]
pub(super) struct Push<'a> {
    event_type: Option<&'a str>,
    account_id: Option<&'a str>,
    object_type: Option<&'a str>,
    object_id: Option<&'a str>,
    /// The canonical form of the text inside the string: numbers stand there as they were written.
    metadata: Option<String>,
}

impl<'a> Push<'a> {
    pub(super) fn of(object: &'a Object<'_>) -> Result<Self, Reason> {
        if object.is_ambiguous() {
            return Err(Reason::AmbiguousJson);
        }
        let metadata = match object.member("metaData") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => read_metadata(text)?,
            Some(_) => return Err(Reason::MetadataInvalid),
        };
        Ok(Self {
            event_type: object.string("eventType"),
            account_id: object.string("accountId"),
            object_type: object.string("objectType"),
            object_id: object.string("objectId"),
            metadata,
        })
    }

    /// What it says about a payment; nothing where it is about something else.
    pub(super) fn fact(&self) -> Result<Option<Fact>, Reason> {
        let event = self.event_type.and_then(|name| name.parse::<EventType>().ok());
        match event.ok_or(Reason::UnknownEvent)?.action() {
            Action::TakeFactIn => fact::of(self.object_id, self.metadata.as_deref()).map(Some),
            Action::Record => Ok(None),
        }
    }

    /// Identifies a push about a payment: one transaction reaches one status once.
    pub(super) fn identity_of_fact(&self, tenant: &str, fact: &Fact) -> Identity {
        let (payment_id, transaction_id) = (fact.payment_id.to_string(), fact.transaction_id.to_string());
        let parts = [
            tenant,
            self.event_type.unwrap_or_default(),
            &payment_id,
            &transaction_id,
            fact.status.into(),
            fact.transaction_type.into(),
        ];
        Identity::derived(SOURCE, &parts.map(Some))
    }

    /// Identifies any other push by all that it says. One without metadata says the same each time, so `window`
    /// tells later ones apart.
    ///
    /// The account is part of it because two accounts may be told the same about an object that has no id yet.
    pub(super) fn identity(&self, tenant: &str, window: u64) -> Identity {
        let window = window.to_string();
        let parts = [
            Some(tenant),
            self.event_type,
            self.account_id,
            self.object_type,
            self.object_id,
            self.metadata.as_deref(),
            self.metadata.is_none().then_some(&window),
        ];
        Identity::derived(SOURCE, &parts)
    }
}

/// The text `null` is what null is.
fn read_metadata(text: &str) -> Result<Option<String>, Reason> {
    let canonical = canonical(text, Charset::Utf8).ok_or(Reason::MetadataInvalid)?;
    match has_repeated_key(text) {
        None => Err(Reason::MetadataInvalid),
        Some(true) => Err(Reason::AmbiguousJson),
        Some(false) => Ok(Some(canonical).filter(|text| text != "null")),
    }
}
