//! The platform as its users meet it: gateways and workers on real stores, the sandbox at the socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conformance;
mod crash;
mod door;
mod platform;
mod program;
mod start;
mod sync;
