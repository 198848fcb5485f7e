//! Supabase's user tokens, proven by the signing keys that it publishes. What a user may do is decided elsewhere.
//!
//! **Invariants:** only asymmetric keys count; a token is read only after its signature holds; without keys
//! nobody is let in.

mod cache;
mod claims;
mod keys;
mod options;
mod signature;
mod token;
mod users;

pub use claims::User;
pub use options::Options;
pub use users::{Rejection, Users};
