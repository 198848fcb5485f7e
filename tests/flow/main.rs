//! The platform as its users meet it: gateways and workers on real stores, the sandbox at the socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod commands;
mod conformance;
mod crash;
mod dead_letters;
mod descriptors;
mod dispatch;
mod door;
mod killbill;
mod lacks;
mod payments;
mod platform;
mod pooler;
mod program;
mod recycle;
mod spike;
mod standard;
mod start;
mod sync;
mod upkeep;
mod users;
