//! Says things to the person at the terminal.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};

/// A line of progress or a result. Whether anybody still reads it doesn't matter: in `up | tee log`, Ctrl-C
/// ends `tee` first, and what runs must be stopped all the same.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// A line about what went wrong.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}
