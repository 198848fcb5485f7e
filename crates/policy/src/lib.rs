//! Control laws as pure functions of state, event and time.
//!
//! **Invariant:** nothing in here does I/O, reads a clock or rolls dice; times and rolls are arguments, so
//! the same inputs always give the same decision.

pub mod backoff;
pub mod crash;
pub mod difference;
pub mod payment;
pub mod recycle;
pub mod replay;
pub mod settle;
pub mod trim;
