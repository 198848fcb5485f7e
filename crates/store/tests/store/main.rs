//! The store against a real server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod account_sync;
mod acl;
mod inbox;
mod ledger;
mod migrate;
mod pool;
mod queue;
mod replay;
mod samples;
