//! The store against a real server.

mod acl;
mod inbox;
mod ledger;
mod migrate;
mod pool;
mod queue;
mod samples;
