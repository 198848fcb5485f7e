//! What each sender's webhooks look like: how they prove who sent them, what identifies a delivery, and what
//! it means to us.
//!
//! **Invariant:** nothing in here does I/O. A body is untrusted until its sender's proof holds, and its content
//! may be broken even then: broken content is quarantined, never refused.

pub mod canonical;
pub mod killbill;
pub mod snaptrade;
pub mod standard;

mod identity;
mod object;
mod reason;
mod repeated_key;

pub use identity::Identity;
pub use reason::Reason;

/// The sender proved nothing, or something else: no row, no answer but 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unauthenticated;
