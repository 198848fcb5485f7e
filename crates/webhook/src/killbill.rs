//! Kill Bill: no signature and no event id, so the route proves the sender and the content makes the identity;
//! what an event says lies in JSON inside a string.

mod admission;
mod event;
mod fact;
mod push;

pub use admission::Admission;
pub use event::{Event, Meaning};
pub use fact::read_fact;

/// How the source is called in routes, rows and metrics.
pub const SOURCE: &str = "killbill";

/// The header that the internal route adds to what it lets through, and that every other route takes away.
pub const ADMISSION_HEADER: &str = "x-callback-admission";

/// True where a path's segment may name one of our tenants at Kill Bill, whose callbacks carry no tenant.
pub fn is_tenant(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain) && !matches!(name, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_name_is_one_plain_segment_of_a_path() {
        for name in ["main", "KR-1", "seoul.branch_2", "...", "-", &"x".repeat(64)] {
            assert!(is_tenant(name), "{name}");
        }
        for name in
            ["", ".", "..", "a/b", "..%2f", "%2e%2e", "a b", "a\0", "a:b", "*", "é", "a\n", &"x".repeat(65)]
        {
            assert!(!is_tenant(name), "{name:?}");
        }
    }
}
