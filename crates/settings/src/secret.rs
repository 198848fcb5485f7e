//! Comparing secrets without telling by the time it takes how much of them was right.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// True where both are the same. Digests have one length, so a wrong length takes no less time either.
pub fn is_same_secret(given: &[u8], expected: &[u8]) -> bool {
    Sha256::digest(given).ct_eq(&Sha256::digest(expected)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_bytes_are_the_same() {
        assert!(is_same_secret(b"0123456789abcdef", b"0123456789abcdef"));
        for wrong in [&b""[..], b"0123456789abcde", b"0123456789abcdef ", b"0123456789ABCDEF"] {
            assert!(!is_same_secret(wrong, b"0123456789abcdef"));
        }
    }
}
