//! What a process says about itself: log lines, the metric table, and the trace context of a command.
//!
//! Metrics are scraped, never pushed. A secret or a payload has no way in here: labels come from fixed
//! lists, and log lines carry ids.

pub mod log;
pub mod metrics;
pub mod trace;

pub use metrics::Metrics;
pub use trace::Trace;
