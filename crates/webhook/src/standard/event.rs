//! What a delivery is: the id that its sender gave it, and its type. What it means is up to whoever reads the
//! inbox.

use crate::object::Object;
use crate::{Identity, Reason};

/// An authenticated delivery, read as far as it can be read.
#[derive(Clone, Debug)]
pub struct Event {
    /// The sender's id, where it is a usable one.
    pub identity: Option<Identity>,
    /// What the sender calls the event; nothing where the body has no `type`, which is only advice.
    pub event_type: Option<String>,
    /// True where jsonb can hold the body: it is JSON, not too deep, and free of NUL characters.
    pub is_clean_json: bool,
    broken: Option<Reason>,
}

/// What an event means to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Keep it.
    Record,
    /// Set it aside for a person.
    Quarantine(Reason),
}

impl Event {
    /// Reads a delivery whose authenticity is proven; `id` is the value of [`ID_HEADER`](super::ID_HEADER).
    pub fn read(id: Option<&str>, body: &[u8]) -> Self {
        let identity = id.and_then(Identity::new);
        let object = Object::read(body);
        let broken = match (&object, &identity) {
            (None, _) => Some(Reason::NotJson),
            (Some(_), None) => Some(Reason::IdentityMissing),
            (Some(_), Some(_)) => None,
        };
        Self {
            identity,
            event_type: object.as_ref().and_then(|object| object.word("type")),
            is_clean_json: object.as_ref().is_some_and(Object::is_clean_json),
            broken,
        }
    }

    /// Decides.
    pub const fn meaning(&self) -> Meaning {
        match self.broken {
            Some(reason) => Meaning::Quarantine(reason),
            None => Meaning::Record,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = br#"{"type":"payment.settled","timestamp":"2026-05-01T00:00:00Z","data":{}}"#;

    #[test]
    fn a_delivery_has_the_id_of_its_header_and_the_type_of_its_body() {
        let event = Event::read(Some("msg_1"), BODY);

        assert_eq!(event.identity.clone().map(Identity::into_string).as_deref(), Some("msg_1"));
        assert_eq!(event.event_type.as_deref(), Some("payment.settled"));
        assert!(event.is_clean_json);
        assert_eq!(event.meaning(), Meaning::Record);
    }

    #[test]
    fn a_type_is_advice_and_not_needed() {
        for body in ["{}", r#"{"type":null}"#, r#"{"type":7}"#, r#"{"type":""}"#, r#"{"type":"a\u0000b"}"#] {
            let event = Event::read(Some("msg_1"), body.as_bytes());

            assert_eq!((event.event_type.as_deref(), event.meaning()), (None, Meaning::Record), "{body}");
        }
    }

    #[test]
    fn an_id_is_taken_byte_for_byte() {
        for id in ["msg_1", "MSG_1", "a.b", "*", "a:b", "../..", &"x".repeat(200)] {
            let event = Event::read(Some(id), BODY);
            assert_eq!(event.identity.map(Identity::into_string).as_deref(), Some(id));
        }
    }

    #[test]
    fn broken_content_is_set_aside_with_a_reason() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
        for body in ["", "{", "null", "[]", "7", "a=1&b=2", "\u{feff}{}", r#"{"a":1e400}"#, &deep] {
            let event = Event::read(Some("msg_1"), body.as_bytes());

            assert_eq!(event.meaning(), Meaning::Quarantine(Reason::NotJson), "{body:.60}");
            assert!(event.identity.is_some() && !event.is_clean_json, "{body:.60}");
        }
        assert_eq!(Event::read(Some("msg_1"), b"\xff").meaning(), Meaning::Quarantine(Reason::NotJson));
        for id in [None, Some(""), Some("a\nb"), Some("a\0"), Some(&*"x".repeat(201))] {
            let event = Event::read(id, BODY);
            assert_eq!(event.meaning(), Meaning::Quarantine(Reason::IdentityMissing), "{id:.20?}");
        }
        assert_eq!(Event::read(None, b"{").meaning(), Meaning::Quarantine(Reason::NotJson));
    }

    #[test]
    fn a_body_with_nul_characters_is_not_for_jsonb() {
        let event = Event::read(Some("msg_1"), br#"{"type":"a","data":"\u0000"}"#);

        assert!(!event.is_clean_json);
        assert_eq!(event.meaning(), Meaning::Record);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            id in proptest::option::of(".{0,250}"),
            body in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let _ = Event::read(id.as_deref(), &body).meaning();
        }
    }
}
