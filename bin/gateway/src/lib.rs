//! The gateway: webhook intake, command API and status API on a public listener, health and metrics on an
//! internal one.
//!
//! It owns no decision; see `intake`. It lives in a library so that the flow tests run the same thing in process.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use contract::env::keys;
use intake::Door;
use probes::{Deadlines, Health};
use settings::{Env, Noted};
use store::Pool;
use telemetry::Metrics;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Connections for status reads: few, and never lent to intake.
const READ_CONNECTIONS: u32 = 4;

/// What the gateway is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where webhooks, commands and status reads arrive.
    pub listen: SocketAddr,
    /// Where health and metrics are read.
    pub internal_listen: SocketAddr,
    /// How long a client may take to send a header.
    pub header_timeout: Duration,
    /// The database.
    pub store: store::Options,
    /// The door's limits and secrets.
    pub intake: intake::Options,
}

impl Options {
    /// Reads the settings.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let listen = env.listen(&keys::GATEWAY_LISTEN);
        let internal_listen = env.listen(&keys::GATEWAY_INTERNAL_LISTEN);
        let header_timeout = env.duration(&keys::INTAKE_HEADER_TIMEOUT_MS, 100..=600_000);
        let store = store::Options::read(env, &keys::GATEWAY_DATABASE_URL);
        let intake = intake::Options::read(env);
        Ok(Self {
            listen: listen?,
            internal_listen: internal_listen?,
            header_timeout: header_timeout?,
            store: store?,
            intake: intake?,
        })
    }
}

/// What made the gateway not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's text says what it is")]
pub enum Error {
    #[error("preparing database connections")]
    Pool { source: store::Error },
    #[error("listening on {address}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A gateway whose listeners are bound.
pub struct Gateway {
    public: TcpListener,
    internal: TcpListener,
    health: Health,
    door: Arc<Door>,
    health_pool: Pool,
    options: Options,
}

impl Gateway {
    /// Binds the listeners and prepares the connections. Nothing is served yet.
    pub async fn bind(options: Options) -> Result<Self, Error> {
        let pool = |purpose, size| {
            Pool::prepare(&options.store, purpose, size).map_err(|source| Error::Pool { source })
        };
        let metrics = Arc::new(Metrics::new("gateway", env!("CARGO_PKG_VERSION")));
        let (intake, reads) =
            (pool("gateway intake", options.store.size)?, pool("gateway reads", READ_CONNECTIONS)?);
        let health_pool = pool("gateway health", 1)?;
        let door = Arc::new(Door::new(options.intake.clone(), intake, reads, metrics));
        Ok(Self {
            public: listen(options.listen).await?,
            internal: listen(options.internal_listen).await?,
            health: Health::new(),
            door,
            health_pool,
            options,
        })
    }

    /// The address that was bound; of interest where port 0 was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.public.local_addr()
    }

    /// The internal listener's address.
    pub fn internal_address(&self) -> io::Result<SocketAddr> {
        self.internal.local_addr()
    }

    /// Serves until `stop`. The internal listener answers from the beginning; the public one opens once Postgres
    /// answers with the right schema, within the start budget.
    pub async fn serve(
        self,
        common: &process::Options,
        stop: CancellationToken,
    ) -> Result<(), process::Error> {
        let deadlines = Deadlines { header: self.options.header_timeout, stop: common.stop_grace };
        let after = CancellationToken::new();
        let routes = probes::router(self.health.clone(), self.door.metrics());
        let routes = routes.merge(intake::routes::internal(&self.door));
        let internal = tokio::spawn(probes::serve(self.internal, routes, deadlines, after.clone()));

        let (pool, budget) = (&self.health_pool, common.start_budget);
        let schema = process::require(&self.health, "Postgres", budget, &stop, || {
            store::contract_check::require(pool)
        });
        let Some(schema) = schema.await? else { return Ok(()) };
        let watch = tokio::spawn(process::keep_checking(self.health_pool.clone(), schema, stop.clone()));
        let identity = process::identity("gateway", self.options.intake.in_flight);
        let upkeep = process::Upkeep::start(&self.options.store, identity, &self.door.metrics(), &stop)?;
        let health = self.health.clone();
        let stopping = stop.clone();
        tokio::spawn(async move {
            stopping.cancelled().await;
            health.stopping();
        });
        probes::serve(self.public, intake::routes::public(&self.door), deadlines, stop).await;

        upkeep.end().await;
        let _ = watch.await;
        after.cancel();
        let _ = internal.await;
        Ok(())
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}
