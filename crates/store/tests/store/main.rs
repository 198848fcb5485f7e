//! The store against a real server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod account_sync;
mod acl;
mod command;
mod inbox;
mod ledger;
mod limit;
mod migrate;
mod payment;
mod payment_feed;
mod pgmq_of_supabase;
mod pool;
mod process;
mod queue;
mod repeat;
mod replay;
mod retention;
mod samples;
mod session;
mod snaptrade;
mod submit;
mod wrappers;
