//! The name and the limits of one pgmq queue.

use std::time::Duration;

/// One queue, its dead-letter queue, and how long a claim hides a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// The queue's name; pgmq's tables are `pgmq.q_<name>` and `pgmq.a_<name>`.
    pub name: &'static str,
    /// The queue that receives a copy of every dead letter.
    pub dead_letter: &'static str,
    /// How long one claim hides a message from the other workers. Heartbeats renew it, so it bounds how
    /// long a dead worker goes unnoticed, not how long a run may take.
    pub lease: Duration,
}

impl QueueSpec {
    /// pgmq prefixes the queue name to build table names and refuses longer ones.
    pub const MAX_NAME_LEN: usize = 47;

    /// Every spec is a `const`, so these checks run in the compiler.
    #[must_use]
    pub const fn checked(self) -> Self {
        assert!(
            plain(self.name) && plain(self.dead_letter),
            "a queue name is lower-case ASCII, digits, underscores"
        );
        assert!(self.name.len() <= Self::MAX_NAME_LEN, "queue name too long");
        assert!(self.dead_letter.len() <= Self::MAX_NAME_LEN, "dead letter name too long");
        assert!(
            is_name_with_dead(self.dead_letter, self.name),
            "a dead-letter queue is named like its queue, plus `_dead`"
        );
        assert!(
            self.lease.as_secs() >= 1,
            "a lease of no time hides nothing: every reader would get the message"
        );
        self
    }
}

/// pgmq lower-cases table names, so two names that differ by case would share one table.
const fn plain(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if !(bytes[i].is_ascii_lowercase() || bytes[i].is_ascii_digit() || bytes[i] == b'_') {
            return false;
        }
        i += 1;
    }
    !bytes.is_empty()
}

const fn is_name_with_dead(dead_letter: &str, name: &str) -> bool {
    let (dead, name, suffix) = (dead_letter.as_bytes(), name.as_bytes(), b"_dead");
    if dead.len() != name.len() + suffix.len() {
        return false;
    }
    let mut i = 0;
    while i < dead.len() {
        let expected = if i < name.len() { name[i] } else { suffix[i - name.len()] };
        if dead[i] != expected {
            return false;
        }
        i += 1;
    }
    true
}
