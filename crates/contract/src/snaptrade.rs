//! SnapTrade's webhook events, what each makes us do, and the job that an account sync is.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

use crate::job::Job;
use crate::workload::Workload;

/// The event types of SnapTrade's webhooks. The list is open: an unknown one is quarantined, not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the provider's; `action` says what each means to us")]
pub enum EventType {
    UserRegistered,
    UserDeleted,
    ConnectionAttempted,
    ConnectionAdded,
    ConnectionDeleted,
    ConnectionBroken,
    ConnectionFixed,
    ConnectionUpdated,
    ConnectionFailed,
    NewAccountAvailable,
    AccountTransactionsInitialUpdate,
    AccountTransactionsUpdated,
    AccountRemoved,
    AccountHoldingsUpdated,
    TradeDetection,
    TradeUpdate,
}

/// What an event makes us do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Fetch one kind of data of one account.
    Sync(WorkType),
    /// The accounts it names are gone; a waiting sync of theirs is pointless.
    Close,
    /// The connection can't be read until its owner repairs it.
    Pause,
    /// The connection can be read (again): open its accounts and sync them.
    Open,
    /// An account exists that we don't know yet.
    Announce,
    /// Kept in the inbox; nothing to do.
    Record,
}

impl EventType {
    /// The event table.
    pub const fn action(self) -> Action {
        match self {
            Self::AccountHoldingsUpdated => Action::Sync(WorkType::Holdings),
            Self::AccountTransactionsInitialUpdate | Self::AccountTransactionsUpdated => {
                Action::Sync(WorkType::Transactions)
            }
            Self::AccountRemoved | Self::ConnectionDeleted | Self::UserDeleted => Action::Close,
            Self::ConnectionBroken => Action::Pause,
            Self::ConnectionAdded | Self::ConnectionFixed | Self::ConnectionUpdated => Action::Open,
            Self::NewAccountAvailable => Action::Announce,
            Self::UserRegistered
            | Self::ConnectionAttempted
            | Self::ConnectionFailed
            | Self::TradeDetection
            | Self::TradeUpdate => Action::Record,
        }
    }
}

/// Whose accounts an event speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// One account.
    Account(Uuid),
    /// All accounts of a connection.
    Connection(Uuid),
    /// All accounts of a user.
    User(String),
}

/// Whether an account may be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AccountState {
    /// Yes.
    Open,
    /// Not until its owner repairs the connection.
    Paused,
    /// Never again.
    Closed,
}

/// Which data of an account a sync fetches.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WorkType {
    /// Positions, balances and recent orders.
    Holdings,
    /// The account's activities.
    Transactions,
}

/// Fetch one kind of data of one account and store it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSync {
    /// Which data.
    pub work_type: WorkType,
    /// SnapTrade's id of the account.
    pub account_id: Uuid,
}

impl Job for AccountSync {
    const WORKLOAD: Workload = Workload::SnaptradeAccountSync;
    const KIND: &'static str = "snaptrade-account-sync";
    const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sixteen_event_types_are_known_by_the_providers_spelling() {
        assert_eq!(EventType::VARIANTS.len(), 16);
        assert_eq!("ACCOUNT_HOLDINGS_UPDATED".parse(), Ok(EventType::AccountHoldingsUpdated));
        assert_eq!(
            EventType::AccountTransactionsInitialUpdate.to_string(),
            "ACCOUNT_TRANSACTIONS_INITIAL_UPDATE"
        );
    }

    #[test]
    fn removed_and_deleted_close_and_repaired_opens() {
        for (name, action) in [
            ("ACCOUNT_REMOVED", Action::Close),
            ("CONNECTION_DELETED", Action::Close),
            ("CONNECTION_BROKEN", Action::Pause),
            ("CONNECTION_FIXED", Action::Open),
            ("NEW_ACCOUNT_AVAILABLE", Action::Announce),
            ("TRADE_DETECTION", Action::Record),
        ] {
            assert_eq!(name.parse::<EventType>().map(EventType::action), Ok(action), "{name}");
        }
    }
}
