//! The door. A request passes, in this order: an in-flight permit, a body limit, proof of who sent it, one
//! transaction that it shares with what came at the same time, and only then its answer.
//!
//! **Invariants:** nothing is acknowledged before it is committed; "duplicate" is only said because a committed
//! row says so; a failure of ours is 503, never 4xx; nothing is read from a body before its sender is proven,
//! except what the proof itself needs.

mod batch;
mod body;
mod caller;
mod commands;
mod door;
pub mod openapi;
mod options;
mod problem;
mod repeats;
pub mod routes;
mod segment;
mod subject;
mod syncs;
mod webhooks;

pub use door::Door;
pub use options::Options;
pub use settings::Services;
