//! What a delivery says: its id, its event, and what that means given the state of the account.

use contract::snaptrade::{AccountState, AccountSync, Action, EventType, WorkType};
use serde_json::Value;
use strum::IntoStaticStr;
use uuid::Uuid;

use crate::Identity;
use crate::canonical::{MAX_DEPTH, depth};

/// An authenticated delivery, read as far as it can be read.
#[derive(Clone, Debug)]
pub struct Event {
    /// The sender's id, where there is a usable one.
    pub identity: Option<Identity>,
    /// What the sender calls the event.
    pub event_type: Option<String>,
    /// The account it is about.
    pub account_id: Option<Uuid>,
    /// True where jsonb can hold the body: it is JSON, not too deep, and free of NUL characters.
    pub is_clean_json: bool,
    broken: Option<Reason>,
}

/// Why a delivery is set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// The body is not a JSON object of sane depth.
    NotJson,
    /// No id, or one that no sender would use.
    IdentityMissing,
    /// No event type, or one that the table doesn't have.
    UnknownEvent,
    /// The event needs an account and names none.
    AccountMissing,
    /// Nobody told us of this account.
    UnknownAccount,
}

/// What an event means to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Start this job.
    Sync(AccountSync),
    /// Keep it.
    Record,
    /// Set it aside for a person.
    Quarantine(Reason),
}

impl Event {
    /// Reads a body whose authenticity is proven.
    pub fn read(body: &[u8]) -> Self {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let object = if depth(text) > MAX_DEPTH { None } else { serde_json::from_str::<Value>(text).ok() };
        let Some(object) = object.filter(Value::is_object) else { return Self::not_json() };
        let string = |name: &str| object.get(name).and_then(Value::as_str);
        Self {
            // The misspelt name is the older one; some events carry both, with different values.
            identity: string("webhookId").or_else(|| string("webookId")).and_then(Identity::new),
            event_type: string("eventType").and_then(Identity::new).map(Identity::into_string),
            account_id: string("accountId").and_then(|id| id.parse().ok()),
            is_clean_json: !text.contains("\\u0000"),
            broken: None,
        }
    }

    const fn not_json() -> Self {
        Self {
            identity: None,
            event_type: None,
            account_id: None,
            is_clean_json: false,
            broken: Some(Reason::NotJson),
        }
    }

    /// Decides. `account` is the state of [`Event::account_id`], where that is known to us.
    pub fn meaning(&self, account: Option<AccountState>) -> Meaning {
        if let Some(reason) = self.broken {
            return Meaning::Quarantine(reason);
        }
        if self.identity.is_none() {
            return Meaning::Quarantine(Reason::IdentityMissing);
        }
        let Some(event) = self.event_type.as_deref().and_then(|name| name.parse::<EventType>().ok()) else {
            return Meaning::Quarantine(Reason::UnknownEvent);
        };
        match (event.action(), self.account_id) {
            (Action::Sync(_), None) => Meaning::Quarantine(Reason::AccountMissing),
            (Action::Sync(work_type), Some(account_id)) => match account {
                Some(AccountState::Open) if work_type == WorkType::Holdings => {
                    Meaning::Sync(AccountSync { work_type, account_id })
                }
                Some(_) => Meaning::Record,
                None => Meaning::Quarantine(Reason::UnknownAccount),
            },
            (Action::Close | Action::Pause | Action::Open | Action::Announce | Action::Record, _) => {
                Meaning::Record
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACCOUNT: &str = "45a3056a-eef6-4904-a68e-d3f90c3e07c5";

    fn event(event_type: &str) -> String {
        format!(r#"{{"webhookId":"w-1","eventType":"{event_type}","accountId":"{ACCOUNT}"}}"#)
    }

    fn meaning(body: &str, account: Option<AccountState>) -> Meaning {
        Event::read(body.as_bytes()).meaning(account)
    }

    #[test]
    fn holdings_of_an_open_account_are_synced() {
        let sync =
            AccountSync { work_type: WorkType::Holdings, account_id: ACCOUNT.parse().expect("a UUID") };

        assert_eq!(
            meaning(&event("ACCOUNT_HOLDINGS_UPDATED"), Some(AccountState::Open)),
            Meaning::Sync(sync)
        );
    }

    #[test]
    fn an_unknown_account_is_set_aside_and_a_closed_one_only_recorded() {
        let body = event("ACCOUNT_HOLDINGS_UPDATED");

        assert_eq!(meaning(&body, None), Meaning::Quarantine(Reason::UnknownAccount));
        assert_eq!(meaning(&body, Some(AccountState::Closed)), Meaning::Record);
        assert_eq!(meaning(&body, Some(AccountState::Paused)), Meaning::Record);
    }

    #[test]
    fn the_right_spelling_of_the_id_goes_before_the_wrong_one() {
        let identity = |body: &str| Event::read(body.as_bytes()).identity.map(Identity::into_string);

        assert_eq!(identity(r#"{"webookId":"old","webhookId":"new"}"#).as_deref(), Some("new"));
        assert_eq!(identity(r#"{"webookId":"old"}"#).as_deref(), Some("old"));
    }

    #[test]
    fn broken_content_is_set_aside_with_a_reason() {
        let long = format!(r#"{{"webhookId":"{}"}}"#, "x".repeat(201));
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        for (body, reason) in [
            ("", Reason::NotJson),
            ("{", Reason::NotJson),
            ("null", Reason::NotJson),
            ("[]", Reason::NotJson),
            ("\u{feff}{}", Reason::NotJson),
            (r#"{"webhookId":"\ud800"}"#, Reason::NotJson),
            (r#"{"webhookId":"w","x":1e400}"#, Reason::NotJson),
            (&deep, Reason::NotJson),
            ("{}", Reason::IdentityMissing),
            (r#"{"webhookId":""}"#, Reason::IdentityMissing),
            (r#"{"webhookId":7}"#, Reason::IdentityMissing),
            (r#"{"webhookId":"a\u0000b"}"#, Reason::IdentityMissing),
            (r#"{"webhookId":"a\nb"}"#, Reason::IdentityMissing),
            (&long, Reason::IdentityMissing),
            (r#"{"webhookId":"w"}"#, Reason::UnknownEvent),
            (r#"{"webhookId":"w","eventType":"account_holdings_updated"}"#, Reason::UnknownEvent),
            (r#"{"webhookId":"w","eventType":"ACCOUNT_HOLDINGS_UPDATED"}"#, Reason::AccountMissing),
            (
                r#"{"webhookId":"w","eventType":"ACCOUNT_HOLDINGS_UPDATED","accountId":"a"}"#,
                Reason::AccountMissing,
            ),
        ] {
            assert_eq!(meaning(body, Some(AccountState::Open)), Meaning::Quarantine(reason), "{body:.60}");
        }
        assert_eq!(
            Event::read(b"\xff\xfe").meaning(Some(AccountState::Open)),
            Meaning::Quarantine(Reason::NotJson)
        );
    }

    #[test]
    fn a_body_with_nul_characters_is_not_for_jsonb() {
        let body = r#"{"webhookId":"w","eventType":"USER_REGISTERED","userId":"a\u0000b"}"#;
        let event = Event::read(body.as_bytes());

        assert!(!event.is_clean_json);
        assert_eq!(event.meaning(None), Meaning::Record);
    }

    #[test]
    fn every_event_type_has_a_meaning() {
        use strum::VariantArray;

        for event_type in EventType::VARIANTS {
            let meaning = meaning(&event(&event_type.to_string()), Some(AccountState::Open));
            assert!(!matches!(meaning, Meaning::Quarantine(_)), "{event_type}: {meaning:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Event::read(&body).meaning(Some(AccountState::Open));
        }
    }
}
