//! The platform as its users meet it: gateways and workers on real stores, the sandbox at the socket.

mod crash;
mod door;
mod platform;
mod program;
mod start;
mod sync;
