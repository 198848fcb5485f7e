//! What all connections of a proxy look at.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use super::loss::Trap;
use super::mode::{Fired, Mode};

/// What is wanted, and what was done.
pub(super) struct State {
    pub(super) server: watch::Sender<SocketAddr>,
    pub(super) mode: watch::Sender<Mode>,
    /// Raised by one for the connections that live then; so is `half_closes`.
    pub(super) resets: watch::Sender<u64>,
    pub(super) half_closes: watch::Sender<u64>,
    pub(super) trap: watch::Sender<Option<Arc<Trap>>>,
    pub(super) fired: watch::Sender<Fired>,
}

impl State {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self {
            server: watch::Sender::new(server),
            mode: watch::Sender::default(),
            resets: watch::Sender::default(),
            half_closes: watch::Sender::default(),
            trap: watch::Sender::default(),
            fired: watch::Sender::default(),
        }
    }

    pub(super) fn count(&self, fault: impl FnOnce(&mut Fired)) {
        self.fired.send_modify(fault);
    }
}
