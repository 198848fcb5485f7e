//! Commands: what callers ask for, and the ledger's word on it, never the queue's.

pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
mod view;

pub(crate) use view::View;
