//! HTTP listeners with deadlines, what surrounds a request on them and how it is refused, and the three routes that
//! every process has on its internal one: `/livez`, `/readyz`, `/metrics`.

mod context;
mod health;
mod listener;
pub mod problem;
mod routes;

pub use context::{Context, current_correlation_id, surround};
pub use health::{Check, Health, Pulse};
pub use listener::{Deadlines, serve};
pub use routes::router;
