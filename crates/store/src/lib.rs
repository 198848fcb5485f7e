//! Postgres, the only place where something is true: inbox, ledger, queue tables, dead letters, projections.
//!
//! Statements are files under `sql/`, checked against the schema when this crate is compiled. All of them go
//! through [`Pool`], which gives each call a deadline and never hands on a connection that is still inside a
//! transaction.

pub mod account_sync;
pub mod command;
pub mod contract_check;
pub mod dead_letter;
pub mod effect;
pub mod elected_job;
pub mod inbox;
pub mod intake;
pub mod ledger;
pub mod limit;
pub mod migrate;
pub mod overview;
pub mod payment;
pub mod process;
pub mod queue;
pub mod repeat;
pub mod replay;
pub mod retention;
pub mod seal;
pub mod session;
pub mod snaptrade;
pub mod suspect;
pub mod wake;

mod error;
mod payment_feed;
mod pool;

pub use effect::Effect;
pub use error::{Error, Fault};
pub use pool::{Options, Pool, Pooler};
