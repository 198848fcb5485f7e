//! What each sender's webhooks look like: how they prove who sent them, what identifies a delivery, and what
//! it means to us.
//!
//! **Invariant:** nothing in here does I/O. A body is untrusted until its sender's proof holds, and its content
//! may be broken even then: broken content is quarantined, never refused.

pub mod canonical;
pub mod snaptrade;

mod secret;

pub use secret::is_same_secret;

/// The sender proved nothing, or something else: no row, no answer but 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unauthenticated;

/// What identifies a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(String);

impl Identity {
    /// Longer ids are no ids; a UUID has 36 bytes.
    pub const MAX_LEN: usize = 200;

    /// An id as the sender wrote it, byte for byte. Nothing where it is empty, too long, or holds control
    /// characters.
    pub fn new(id: &str) -> Option<Self> {
        let fits = !id.is_empty() && id.len() <= Self::MAX_LEN && !id.chars().any(char::is_control);
        fits.then(|| Self(id.to_owned()))
    }

    /// For a delivery without a usable id: what it consists of identifies it.
    pub fn of_body(sha256: &[u8; 32]) -> Self {
        use std::fmt::Write;

        let mut id = String::from("sha256:");
        for byte in sha256 {
            write!(id, "{byte:02x}").expect("a String takes every byte");
        }
        Self(id)
    }

    /// The bytes that are compared.
    pub fn into_string(self) -> String {
        self.0
    }
}
