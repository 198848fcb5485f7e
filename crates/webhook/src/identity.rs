//! What identifies a delivery: the sender's own id, or one that is made from what the delivery consists of.

use std::fmt::Write;

use sha2::{Digest, Sha256};

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
        Self::of_digest("sha256", sha256)
    }

    /// For a delivery of a sender that has no ids. Each part stands behind its length, so that no character can
    /// move from one part to the next unnoticed, and no part is something else than an empty one.
    ///
    /// What this makes of the same parts never changes: rows of yesterday answer retries of today.
    pub(crate) fn derived(source: &str, parts: &[Option<&str>]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update([u8::from(part.is_some())]);
            if let Some(part) = part {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        Self::of_digest(source, &hash.finalize().into())
    }

    /// The bytes that are compared.
    pub fn into_string(self) -> String {
        self.0
    }

    fn of_digest(kind: &str, sha256: &[u8; 32]) -> Self {
        let mut id = format!("{kind}:");
        for byte in sha256 {
            write!(id, "{byte:02x}").expect("a String takes every byte");
        }
        Self(id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn derived(parts: &[Option<&str>]) -> String {
        Identity::derived("test", parts).into_string()
    }

    #[test]
    fn the_senders_id_is_kept_byte_for_byte_or_not_at_all() {
        for id in ["a", "A", "é", "e\u{301}", "../..", "a:b", "*", &"x".repeat(200)] {
            assert_eq!(Identity::new(id).map(Identity::into_string).as_deref(), Some(id));
        }
        for id in ["", "a\nb", "a\0", "\u{85}", &"x".repeat(201)] {
            assert_eq!(Identity::new(id), None, "{id:.20?}");
        }
    }

    #[test]
    fn a_derived_identity_is_the_same_for_ever() {
        // Reckoned by hand: 01, eight bytes of length, the bytes; 00 for no part.
        assert_eq!(
            derived(&[Some("a"), None, Some("b:c")]),
            "test:af0b052259c2c5aec029cfe5239f6e98ea5a3740404b31203c13c4b9ccc3c7b5"
        );
    }

    #[test]
    fn characters_cannot_move_between_parts() {
        assert_ne!(derived(&[Some("a"), Some("b:c")]), derived(&[Some("a:b"), Some("c")]));
        assert_ne!(derived(&[Some("ab"), Some("")]), derived(&[Some(""), Some("ab")]));
        assert_ne!(derived(&[Some("a"), None]), derived(&[Some("a"), Some("")]));
        assert_ne!(derived(&[Some("a"), None]), derived(&[None, Some("a")]));
        assert_ne!(derived(&[Some("a")]), derived(&[Some("a"), None]));
        assert_ne!(derived(&[Some("é")]), derived(&[Some("e\u{301}")]));
    }

    fn parts() -> impl Strategy<Value = Vec<Option<String>>> {
        // Few letters, so that equal and shifted parts are common; NUL and 1 imitate marks and lengths.
        proptest::collection::vec(proptest::option::of("[ab\\x00\\x01:]{0,4}"), 0..5)
    }

    proptest! {
        #[test]
        fn only_equal_parts_have_equal_identities(one in parts(), other in parts()) {
            let [first, second] =
                [&one, &other].map(|parts| derived(&parts.iter().map(Option::as_deref).collect::<Vec<_>>()));
            prop_assert_eq!(first == second, one == other);
        }

        #[test]
        fn another_cut_of_the_same_text_is_another_identity(text in "[ -~]{1,12}", a in 0_usize..13, b in 0_usize..13) {
            let [(a, c), (b, d)] = [a, b].map(|at| text.split_at(at.min(text.len())));
            prop_assert_eq!(derived(&[Some(a), Some(c)]) == derived(&[Some(b), Some(d)]), a == b);
        }
    }
}
