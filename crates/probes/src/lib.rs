//! HTTP listeners with deadlines, and the three routes that every process has on its internal one: `/livez`,
//! `/readyz`, `/metrics`.

mod health;
mod listener;
mod routes;

pub use health::{Check, Health, Pulse};
pub use listener::{Deadlines, serve};
pub use routes::router;
