//! Why an authentic delivery is set aside.

use strum::{IntoStaticStr, VariantArray};

/// Why a delivery is set aside. Each has a line in `docs/runbook.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// The body is not a JSON object of sane depth.
    NotJson,
    /// No id, or one that no sender would use.
    IdentityMissing,
    /// No event type, or one that the sender's table doesn't have.
    UnknownEvent,
    /// The event needs an account and names none.
    AccountMissing,
    /// Nobody told us of this account.
    UnknownAccount,
    /// The event needs the object that it is about and names none, or names it by no UUID.
    ObjectMissing,
    /// What the event carries besides is not JSON, or lacks what its type promises.
    MetadataInvalid,
    /// A key stands twice in one object: parsers disagree about which one counts.
    AmbiguousJson,
    /// A status that the sender's table doesn't have.
    UnknownStatus,
    /// The database refuses a value that the event holds; nothing in this crate finds that out.
    NotStorable,
}
