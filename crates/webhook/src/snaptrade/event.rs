//! What a delivery says: its id, its event, and what that means given the state of the account.

use chrono::{DateTime, Utc};
use contract::snaptrade::{AccountState, AccountSync, Action, EventType, Whose};
use uuid::Uuid;

use crate::object::Object;
use crate::{Identity, Reason};

/// An authenticated delivery, read as far as it can be read.
#[derive(Clone, Debug)]
pub struct Event {
    /// The sender's id, where there is a usable one.
    pub identity: Option<Identity>,
    /// What the sender calls the event.
    pub event_type: Option<String>,
    /// The account it is about.
    pub account_id: Option<Uuid>,
    /// The connection it is about, or that its account belongs to.
    pub connection_id: Option<Uuid>,
    /// When it happened, by the sender's clock.
    pub at: Option<DateTime<Utc>>,
    user_id: Option<String>,
    /// True where jsonb can hold the body: it is JSON, not too deep, and free of NUL characters.
    pub is_clean_json: bool,
    broken: Option<Reason>,
}

/// What an event means to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Start this job.
    Sync(AccountSync),
    /// These accounts are gone.
    Close(Whose),
    /// These accounts can't be read for now.
    Pause(Whose),
    /// These accounts can be read (again): sync them.
    Open(Whose),
    /// There is an account that we may not know yet.
    Announce {
        /// The account.
        account_id: Uuid,
        /// Whose it is.
        user_id: String,
    },
    /// Keep it.
    Record,
    /// Set it aside for a person.
    Quarantine(Reason),
}

impl Event {
    /// Reads a body whose authenticity is proven.
    pub fn read(body: &[u8]) -> Self {
        let Some(object) = Object::read(body) else { return Self::not_json() };
        Self {
            // The misspelt name is the older one; some events carry both, with different values.
            identity: object
                .string("webhookId")
                .or_else(|| object.string("webookId"))
                .and_then(Identity::new),
            event_type: object.word("eventType"),
            account_id: object.string("accountId").and_then(|id| id.parse().ok()),
            // OAuth applications get the same under another name.
            connection_id: object
                .string("brokerageAuthorizationId")
                .or_else(|| object.string("connectionId"))
                .and_then(|id| id.parse().ok()),
            at: object.string("eventTimestamp").and_then(|time| time.parse().ok()),
            user_id: object.word("userId"),
            is_clean_json: object.is_clean_json(),
            broken: None,
        }
    }

    const fn not_json() -> Self {
        Self {
            identity: None,
            event_type: None,
            account_id: None,
            connection_id: None,
            at: None,
            user_id: None,
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
        let of = |change: fn(Whose) -> Meaning| self.whose(event).map(change);
        let meaning = match event.action() {
            Action::Sync(work_type) => self.account_id.map(|account_id| match account {
                Some(AccountState::Open) => Meaning::Sync(AccountSync { work_type, account_id }),
                Some(AccountState::Paused | AccountState::Closed) => Meaning::Record,
                None => Meaning::Quarantine(Reason::UnknownAccount),
            }),
            Action::Close => of(Meaning::Close),
            Action::Pause => of(Meaning::Pause),
            Action::Open => of(Meaning::Open),
            Action::Announce => self
                .account_id
                .zip(self.user_id.clone())
                .map(|(account_id, user_id)| Meaning::Announce { account_id, user_id }),
            Action::Record => Some(Meaning::Record),
        };
        meaning.unwrap_or(Meaning::Quarantine(Reason::AccountMissing))
    }

    /// The widest circle that the event's kind speaks of; nothing where it isn't named.
    fn whose(&self, event: EventType) -> Option<Whose> {
        match event {
            EventType::UserDeleted => self.user_id.clone().map(Whose::User),
            EventType::AccountRemoved => self.account_id.map(Whose::Account),
            _ => self.connection_id.map(Whose::Connection),
        }
    }
}

#[cfg(test)]
mod tests {
    use contract::snaptrade::WorkType;
    use proptest::prelude::*;

    use super::*;

    const ACCOUNT: &str = "45a3056a-eef6-4904-a68e-d3f90c3e07c5";
    const CONNECTION: &str = "6bb1a40b-0000-4000-8000-000000000001";

    fn event(event_type: &str) -> String {
        format!(
            r#"{{"webhookId":"w-1","eventType":"{event_type}","accountId":"{ACCOUNT}",
                "brokerageAuthorizationId":"{CONNECTION}","userId":"u-1"}}"#
        )
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
    fn events_about_connections_and_users_speak_of_all_their_accounts() {
        let connection = Whose::Connection(CONNECTION.parse().expect("a UUID"));
        let account = Whose::Account(ACCOUNT.parse().expect("a UUID"));
        for (event_type, expected) in [
            ("CONNECTION_DELETED", Meaning::Close(connection.clone())),
            ("CONNECTION_BROKEN", Meaning::Pause(connection.clone())),
            ("CONNECTION_FIXED", Meaning::Open(connection.clone())),
            ("CONNECTION_ADDED", Meaning::Open(connection.clone())),
            ("CONNECTION_UPDATED", Meaning::Open(connection)),
            ("ACCOUNT_REMOVED", Meaning::Close(account)),
            ("USER_DELETED", Meaning::Close(Whose::User("u-1".to_owned()))),
            ("TRADE_DETECTION", Meaning::Record),
        ] {
            assert_eq!(meaning(&event(event_type), None), expected, "{event_type}");
        }
        let announced =
            Meaning::Announce { account_id: ACCOUNT.parse().expect("a UUID"), user_id: "u-1".to_owned() };
        assert_eq!(meaning(&event("NEW_ACCOUNT_AVAILABLE"), None), announced);
    }

    #[test]
    fn an_oauth_applications_event_names_its_connection_otherwise() {
        let body = format!(
            r#"{{"webhookId":"w","schemaVersion":"oauth_v1","eventType":"CONNECTION_BROKEN","connectionId":"{CONNECTION}"}}"#
        );

        assert_eq!(
            meaning(&body, None),
            Meaning::Pause(Whose::Connection(CONNECTION.parse().expect("a UUID")))
        );
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
