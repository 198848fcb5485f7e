//! The door. A request passes, in this order: an in-flight permit, a body limit, proof of who sent it, one
//! transaction, and only then its answer.
//!
//! **Invariants:** nothing is acknowledged before it is committed; "duplicate" is only said because a committed
//! row says so; a failure of ours is 503, never 4xx; nothing is read from a body before its sender is proven,
//! except what the proof itself needs.

mod body;
mod caller;
mod commands;
mod context;
mod door;
mod options;
mod problem;
mod snaptrade;

pub use door::{Door, router};
pub use options::Options;
