//! Kill Bill's push notifications, what each makes us do, what they say about a payment, and the job that takes that in.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

use crate::job::Job;
use crate::workload::Workload;

/// The event types of Kill Bill's push notifications. The list is open: an unknown one is quarantined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the sender's; `action` says what each means to us")]
pub enum EventType {
    AccountCreation,
    AccountChange,
    BlockingState,
    BroadcastService,
    SubscriptionCreation,
    SubscriptionPhase,
    SubscriptionChange,
    SubscriptionCancel,
    SubscriptionUncancel,
    SubscriptionBcdChange,
    SubscriptionQuantity,
    SubscriptionExpired,
    EntitlementCreation,
    EntitlementCancel,
    BundlePause,
    BundleResume,
    OverdueChange,
    InvoiceCreation,
    InvoiceAdjustment,
    InvoiceNotification,
    InvoicePaymentSuccess,
    InvoicePaymentFailed,
    PaymentSuccess,
    PaymentFailed,
    TagCreation,
    TagDeletion,
    CustomFieldCreation,
    CustomFieldDeletion,
    TenantConfigChange,
    TenantConfigDeletion,
}

/// What an event makes us do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It says something about a payment's transaction: number it in the payment's feed and wake the worker.
    ///
    /// The event's name is not the outcome: success is also sent for a pending transaction, failure for one
    /// whose outcome is unknown. The status inside decides.
    TakeFactIn,
    /// Kept in the inbox; nothing to do. An invoice's payment has an event of its own.
    Record,
}

impl EventType {
    /// The event table.
    pub const fn action(self) -> Action {
        match self {
            Self::PaymentSuccess | Self::PaymentFailed => Action::TakeFactIn,
            Self::AccountCreation
            | Self::AccountChange
            | Self::BlockingState
            | Self::BroadcastService
            | Self::SubscriptionCreation
            | Self::SubscriptionPhase
            | Self::SubscriptionChange
            | Self::SubscriptionCancel
            | Self::SubscriptionUncancel
            | Self::SubscriptionBcdChange
            | Self::SubscriptionQuantity
            | Self::SubscriptionExpired
            | Self::EntitlementCreation
            | Self::EntitlementCancel
            | Self::BundlePause
            | Self::BundleResume
            | Self::OverdueChange
            | Self::InvoiceCreation
            | Self::InvoiceAdjustment
            | Self::InvoiceNotification
            | Self::InvoicePaymentSuccess
            | Self::InvoicePaymentFailed
            | Self::TagCreation
            | Self::TagDeletion
            | Self::CustomFieldCreation
            | Self::CustomFieldDeletion
            | Self::TenantConfigChange
            | Self::TenantConfigDeletion => Action::Record,
        }
    }
}

/// The states of a payment's transaction.
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
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum TransactionStatus {
    /// Done.
    Success,
    /// Not decided yet.
    Pending,
    /// Declined.
    PaymentFailure,
    /// Never attempted.
    PluginFailure,
    /// It may or may not have happened.
    Unknown,
    /// Payments are switched off.
    PaymentSystemOff,
}

/// What a transaction does.
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
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the sender's")]
pub enum TransactionType {
    Authorize,
    Capture,
    Chargeback,
    Credit,
    Purchase,
    Refund,
    Void,
}

/// One transaction of a payment and the status that it has reached. The event's name is left out on purpose:
/// success is also sent for a pending transaction, failure for one whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Kill Bill's id of the payment.
    pub payment_id: Uuid,
    /// Kill Bill's id of the transaction.
    pub transaction_id: Uuid,
    /// What the transaction does.
    pub transaction_type: TransactionType,
    /// What became of it.
    pub status: TransactionStatus,
    /// The amount that was processed, digit for digit. Where nothing was, Kill Bill says 0, whatever was asked for.
    pub amount: Option<Decimal>,
    /// The currency that it was processed in: three capital letters.
    pub currency: Option<String>,
    /// Since when the status holds, as the sender says.
    pub effective_at: Option<DateTime<Utc>>,
}

/// Take a payment's facts in, up to and including this one. The message is a wake-up: what is to be taken in
/// is read from the payment's feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentFacts {
    /// Which of our tenants at Kill Bill.
    pub tenant: String,
    /// Kill Bill's id of the payment.
    pub payment_id: Uuid,
}

impl Job for PaymentFacts {
    const WORKLOAD: Workload = Workload::PaymentWebhookProcessing;
    const KIND: &'static str = "payment-webhook-processing";
    const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_thirty_event_types_are_known_by_the_senders_spelling() {
        assert_eq!(EventType::VARIANTS.len(), 30);
        assert_eq!("SUBSCRIPTION_BCD_CHANGE".parse(), Ok(EventType::SubscriptionBcdChange));
        assert_eq!("PAYMENT_SYSTEM_OFF".parse(), Ok(TransactionStatus::PaymentSystemOff));
    }

    #[test]
    fn only_a_payments_own_events_are_facts() {
        let facts: Vec<String> = EventType::VARIANTS
            .iter()
            .filter(|event| event.action() == Action::TakeFactIn)
            .map(ToString::to_string)
            .collect();

        assert_eq!(facts, ["PAYMENT_SUCCESS", "PAYMENT_FAILED"]);
    }
}
