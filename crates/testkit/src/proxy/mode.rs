//! What a proxy can be told to do, and the count of what it did.

use std::time::Duration;

/// What happens to new connections and to the bytes of living ones, until another mode is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Everything passes.
    #[default]
    Pass,
    /// The server hears its clients; what it answers stays in the proxy until the mode changes.
    HoldAnswers,
    /// Everything passes, in each direction so much later than it came.
    Delay(Duration),
    /// What is said is taken and lost, in both directions, and nobody hears of it: no answer, no end, no reset. A new
    /// connection is accepted and never answered. Whoever has lost a byte in it stays unheard for as long as the
    /// connection lives, also when the mode changes; then the other side learns of its end.
    BlackHole,
    /// New connections are accepted and reset at once. The living ones go on.
    Refuse,
    /// Only so many bytes at a time pass, in each direction, each after a pause.
    Drip {
        /// At least one.
        bytes: usize,
        /// The pause before each.
        every: Duration,
    },
}

/// How often each fault has acted. Chunks are what was read at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    /// Chunks of answers, and their ends, that were held back.
    pub held: u64,
    /// Chunks, and ends, that had to wait.
    pub delayed: u64,
    /// Connections that were accepted in silence, and chunks that were lost.
    pub swallowed: u64,
    /// Connections that were reset when they came.
    pub refused: u64,
    /// Living connections that were reset by [`super::Proxy::reset`] or [`super::Proxy::switch`].
    pub reset: u64,
    /// Connections whose answers were ended.
    pub half_closed: u64,
    /// Drops that passed.
    pub dripped: u64,
    /// Connections that were reset in place of the answer that the server had given.
    pub answers_lost: u64,
}
