//! What stands for Supabase's accounts: keys that sign users' tokens, and a publisher of their public halves.

mod publisher;
mod signing;

pub use publisher::{Answer, Publisher};
pub use signing::{SigningKey, base64, hs256_token, message};
