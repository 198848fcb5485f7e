//! A worker process: one runner, one internal listener, and their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use contract::Workload;
use contract::env::keys;
use probes::{Deadlines, Health};
use queue::{Handler, Runner};
use settings::{Env, Noted, Services};
use store::Pool;
use store::process::Identity;
use telemetry::Metrics;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::dependency::{keep_checking, require};
use crate::exit::Error;
use crate::presence::identity;
use crate::start::Options;
use crate::upkeep::Upkeep;

/// How patient the internal listener is with a client's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// What every worker is told.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Where health and metrics are read.
    pub listen: SocketAddr,
    /// The database.
    pub store: store::Options,
    /// How it works on its queue.
    pub queue: queue::Options,
    /// Who may ask for a dispatch.
    pub services: Services,
}

impl WorkerOptions {
    /// Reads the settings of a worker of `workload`.
    pub fn read(env: &mut Env, workload: Workload) -> Result<Self, Noted> {
        let listen = env.listen(&keys::WORKER_LISTEN);
        let store = store::Options::read(env, &keys::WORKER_DATABASE_URL);
        let queue = queue::Options::read(env, workload);
        let services = Services::read(env);
        Ok(Self { listen: listen?, store: store?, queue: queue?, services: services? })
    }
}

/// What a worker's handler may use.
#[derive(Clone)]
pub struct Resources {
    /// Connections for the process' main work.
    pub pool: Pool,
    /// The process' metrics.
    pub metrics: Arc<Metrics>,
}

/// Works until `stop`, or until it has to be started again. The internal listener answers from the beginning; the
/// first claim waits for a database with the right schema, within the start budget.
pub async fn work<H: Handler>(
    common: &Options,
    options: WorkerOptions,
    handler: impl FnOnce(&Resources) -> H,
    stop: CancellationToken,
) -> Result<(), Error> {
    let stop = stop.child_token();
    let name = options.queue.workload.spec().worker;
    let metrics = Arc::new(Metrics::new(name, env!("CARGO_PKG_VERSION")));
    let health = Health::new();
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|error| Error::failed(format!("listening on {}", options.listen), error))?;
    let (deadlines, after) =
        (Deadlines { header: HEADER_TIMEOUT, stop: common.stop_grace }, CancellationToken::new());
    let pool = |purpose: &str, size| {
        Pool::prepare(&options.store, &format!("{name} {purpose}"), size)
            .map_err(|error| Error::failed("preparing database connections", error))
    };
    let resources = Resources { pool: pool("work", options.store.size)?, metrics: metrics.clone() };
    let handler = handler(&resources);
    let queue = queue::Options { grace: common.stop_grace, ..options.queue };
    let (slots, on) = (queue.concurrency, queue.workload.queue().name);
    let runner =
        Runner::new(queue, resources.pool, options.store.clone(), handler, metrics.clone(), health.clone());
    let routes = probes::router(health.clone(), metrics.clone());
    let workload = options.queue.workload;
    let routes =
        routes.merge(queue::routes(runner.dispatcher(), options.services, workload, metrics.clone()));
    let internal = tokio::spawn(probes::serve(listener, routes, deadlines, after.clone()));

    let health_pool = pool("health", 1)?;
    let schema = require(&health, "Postgres", common.start_budget, &stop, || {
        store::contract_check::require(&health_pool)
    });
    let Some(schema) = schema.await? else { return Ok(()) };
    let watch = tokio::spawn(keep_checking(health_pool, schema, stop.clone()));
    let identity = Identity { id: runner.name().to_owned(), queue: Some(on), ..identity(name, slots) };
    let upkeep = Upkeep::start(&options.store, identity, &metrics, &stop)?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        stopping.cancelled().await;
        health.stopping();
    });
    let outcome = runner.run_until(stop.clone()).await;
    // It may have ended by itself; the others end with it.
    stop.cancel();

    upkeep.end().await;
    let _ = watch.await;
    after.cancel();
    let _ = internal.await;
    Ok(outcome?)
}
