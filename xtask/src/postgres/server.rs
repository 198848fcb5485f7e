//! A server that is up for as long as one command runs.

use std::process::Child;

use super::Cluster;

/// A running server; dropping it stops the server.
#[derive(Debug)]
pub(crate) struct Server {
    cluster: Cluster,
    child: Child,
}

impl Server {
    pub(crate) fn start(cluster: Cluster) -> anyhow::Result<Self> {
        let child = cluster.start()?;
        Ok(Self { cluster, child })
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        super::stop(&mut self.child);
    }
}
