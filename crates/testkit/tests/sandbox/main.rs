//! The sandbox at its socket, as a client meets it.

mod client;
mod contract;
mod faults;
mod killbill;
mod record;
