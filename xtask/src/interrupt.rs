//! Ctrl-C, SIGTERM and SIGHUP as a flag that every wait looks at, so that what was started gets stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// What shells use for a program ended by SIGINT.
pub(crate) const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The error of a command that was told to stop before it was done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

pub(crate) fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| REQUESTED.store(true, Ordering::SeqCst)).context("listening for Ctrl-C")
}

pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

pub(crate) fn check() -> Result<(), Interrupted> {
    if requested() { Err(Interrupted) } else { Ok(()) }
}

/// Whether the error is no failure but the answer to a signal.
pub(crate) fn caused(error: &anyhow::Error) -> bool {
    error.chain().any(<dyn std::error::Error>::is::<Interrupted>)
}
