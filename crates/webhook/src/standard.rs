//! Any sender that follows Standard Webhooks: the signature covers id, time and raw body, and the id is a header.
//!
//! Only the symmetric scheme (`v1`, HMAC-SHA256) is known; entries of other versions are passed over.

mod event;
mod signature;

pub use event::{Event, Meaning};
pub use signature::{Rejection, Sources, TOLERANCE_SECONDS};

/// How the source is called in routes, rows and metrics; which sender it is, is the tenant.
pub const SOURCE: &str = "standard";

/// The header that carries the delivery's id; it stays the same when the sender tries again.
pub const ID_HEADER: &str = "webhook-id";

/// The header that carries the time of the attempt, in Unix seconds.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";

/// The header that carries the signatures, with spaces between them.
pub const SIGNATURE_HEADER: &str = "webhook-signature";
