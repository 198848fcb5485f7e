//! Chooses ports on 127.0.0.1 and keeps them across restarts, so that a bookmarked URL stays good.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// The port of each listener by name, such as `gateway-1.public`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Ports {
    chosen: BTreeMap<String, u16>,
}

impl Ports {
    /// The port used last time if it is still free, else another free one.
    pub(crate) fn pick(&mut self, name: &str) -> anyhow::Result<u16> {
        self.pick_if(name, is_free)
    }

    fn pick_if(&mut self, name: &str, is_free: impl Fn(u16) -> bool) -> anyhow::Result<u16> {
        if let Some(port) = self.chosen.get(name).copied().filter(|port| is_free(*port)) {
            return Ok(port);
        }
        let port = self.unused()?;
        self.chosen.insert(name.to_owned(), port);
        Ok(port)
    }

    /// A free port that no other listener of ours was promised.
    fn unused(&self) -> anyhow::Result<u16> {
        // Refused ones stay bound meanwhile, so that the kernel offers others.
        let mut refused = Vec::new();
        loop {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .context("looking for a free port on 127.0.0.1")?;
            let port = listener.local_addr().context("reading the port that was found")?.port();
            if !self.chosen.values().any(|taken| *taken == port) {
                return Ok(port);
            }
            refused.push(listener);
        }
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_kept() {
        let mut ports = Ports::default();
        let first = ports.pick("gateway-1.public").expect("a port");

        assert_eq!(ports.pick_if("gateway-1.public", |_| true).expect("a port"), first);
    }

    #[test]
    fn a_port_that_somebody_took_is_replaced() {
        let mut ports = Ports::default();
        let first = ports.pick("sandbox").expect("a port");

        assert_ne!(ports.pick_if("sandbox", |_| false).expect("a port"), first);
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");

        assert!(!is_free(listener.local_addr().expect("an address").port()));
    }

    #[test]
    fn no_two_listeners_are_given_the_same_port() {
        let mut ports = Ports::default();
        let picked: std::collections::BTreeSet<u16> =
            (0..50).map(|n| ports.pick(&format!("worker-{n}")).expect("a port")).collect();

        assert_eq!(picked.len(), 50);
    }
}
