//! SnapTrade: `Signature` over canonical JSON (or a secret in the body), an id with a famous misspelling, and
//! events about accounts.

mod event;
mod signature;

pub use event::{Event, Meaning};
pub use signature::Verifier;

/// How the source is called in routes, rows and metrics.
pub const SOURCE: &str = "snaptrade";

/// The header that carries the signature.
pub const SIGNATURE_HEADER: &str = "signature";
