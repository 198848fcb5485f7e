//! How the next calls are answered.

use std::time::Duration;

use super::call::Answer;

/// What was asked for, less what has happened of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Script {
    pub(super) late: Duration,
    pub(super) lose: u32,
    /// How many calls, and the status that they get.
    pub(super) fail: (u32, u16),
    pub(super) is_hanging: bool,
}

impl Script {
    /// What the next call gets.
    pub(super) const fn next(&mut self) -> Answer {
        if self.fail.0 > 0 {
            self.fail.0 -= 1;
            return Answer::Failed(self.fail.1);
        }
        if self.is_hanging {
            return Answer::Hanging;
        }
        if self.lose > 0 {
            self.lose -= 1;
            return Answer::Lost;
        }
        Answer::Given
    }
}
