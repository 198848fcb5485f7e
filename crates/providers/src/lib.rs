//! Clients of outside systems. Every call has a deadline and a size limit, follows no redirect, and ends in a
//! value or in a [`Failure`] that says what to do next.

pub mod snaptrade;
pub mod supabase;

mod decimal;
mod failure;
mod http;

pub use failure::{Advice, Failure};
