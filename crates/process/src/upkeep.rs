//! What every long-running process does beside its work: it is in the list of processes, and stands for the jobs that
//! one process does for all.

use std::sync::Arc;
use std::time::Duration;

use store::process::Identity;
use store::{Options, Pool};
use telemetry::Metrics;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::exit::Error;
use crate::{presence, trimming, watching};

/// How long saying goodbye may take while the database is away: leases end by themselves, and a row that stays behind
/// is seen to be silent.
const GOODBYE: Duration = Duration::from_secs(2);

/// The upkeep of one process, in tasks of its own.
pub struct Upkeep {
    gone: CancellationToken,
    presence: JoinHandle<()>,
    jobs: [JoinHandle<()>; 2],
}

impl Upkeep {
    /// Starts it on a connection of its own. Elected jobs end with `stop`; the process stays in the list until
    /// [`Upkeep::end`].
    pub fn start(
        options: &Options,
        identity: Identity,
        metrics: &Arc<Metrics>,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let pool = Pool::prepare(options, &format!("{} upkeep", identity.kind), 1)
            .map_err(|error| Error::failed("preparing database connections", error))?;
        let gone = CancellationToken::new();
        let name = identity.id.clone();
        let jobs = [
            tokio::spawn(trimming::trim(pool.clone(), name.clone(), metrics.clone(), stop.clone())),
            tokio::spawn(watching::watch(pool.clone(), name, metrics.clone(), stop.clone())),
        ];
        let presence = tokio::spawn(presence::show(pool, identity, gone.clone()));
        Ok(Self { gone, presence, jobs })
    }

    /// Waits for the jobs to end and takes the process out of the list: its work is done.
    pub async fn end(mut self) {
        let goodbye = async {
            for job in &mut self.jobs {
                let _ = job.await;
            }
            self.gone.cancel();
            let _ = (&mut self.presence).await;
        };
        if tokio::time::timeout(GOODBYE, goodbye).await.is_err() {
            tracing::warn!("leaving without a goodbye: the database does not answer");
        }
    }
}
