//! Secrets and ids from the kernel's random source, in the spellings that settings use.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;

use anyhow::Context;

/// `bytes` random bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: usize) -> anyhow::Result<String> {
    Ok(to_hex(&random(bytes)?))
}

/// `bytes` random bytes in standard base64 with padding.
pub(crate) fn base64(bytes: usize) -> anyhow::Result<String> {
    Ok(to_base64(&random(bytes)?))
}

/// A random (version 4) UUID.
pub(crate) fn uuid() -> anyhow::Result<String> {
    let mut bytes = random(16)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = to_hex(&bytes);
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(groups.join("-"))
}

fn random(bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut buffer))
        .context("reading /dev/urandom")?;
    Ok(buffer)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}"); // A String takes any text.
        digits
    })
}

fn to_base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_usize, |group, byte| group << 8 | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = ALPHABET[group >> (18 - 6 * place) & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_standard_one() {
        let examples = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, encoded) in examples {
            assert_eq!(to_base64(plain.as_bytes()), encoded);
        }
        assert_eq!(to_base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn a_data_key_has_32_bytes() {
        assert_eq!(base64(32).expect("a random source").len(), 44);
    }

    #[test]
    fn a_uuid_says_that_it_is_random() {
        let uuid = uuid().expect("a random source");

        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }

    #[test]
    fn two_secrets_differ() {
        assert_ne!(hex(24).expect("a random source"), hex(24).expect("a random source"));
    }
}
