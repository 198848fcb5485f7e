//! SnapTrade's REST API, as far as account syncs need it.

mod client;
mod error;
mod model;
mod sign;

pub use client::{Client, Fetched, Options, User};
pub use model::{Activities, Activity, Balance, Currency, Freshness, Order, Orders, Position, Positions};
