//! What the outside sees of this version: settings, documents, help, metrics.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faults;
mod runbook;
mod stage;
