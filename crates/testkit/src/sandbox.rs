//! A stand-in for outside providers at their socket: it speaks their wire contracts, records every call, fails on
//! command and sends what they send by themselves. It knows nothing of this platform and forgets everything when it stops.

mod control;
mod desk;
pub mod killbill;
mod overlap;
mod record;
mod roster;
mod script;
pub mod snaptrade;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::desk::Desk;
use self::killbill::Killbill;
pub use self::overlap::{Overlap, ProviderOverlap};
pub use self::record::Call;
pub use self::roster::{Roster, SnaptradeUser};
pub use self::script::{Fault, HowOften, Pattern, Rule, RuleId, RuleReport};
use self::snaptrade::Snaptrade;
use crate::server;

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken or not ours.
    #[error("binding the sandbox to {listen}")]
    Bind {
        /// The address that was asked for.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The record can't be created or appended to.
    #[error("opening the record {}", path.display())]
    OpenRecord {
        /// Where the record should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The roster file can't be read.
    #[error("reading the roster {}", path.display())]
    ReadRoster {
        /// Where the roster should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The roster file is not a roster.
    #[error("parsing the roster {}", path.display())]
    ParseRoster {
        /// Where the roster is.
        path: PathBuf,
        /// Where it stops being one.
        source: serde_json::Error,
    },
}

/// What a sandbox is started with.
#[derive(Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The one SnapTrade client id that is known.
    pub client_id: String,
    /// The key that SnapTrade requests must be signed with.
    pub consumer_key: String,
    /// SnapTrade calls that the client id may make in any 60 seconds.
    pub quota_per_minute: u32,
    /// A file that every call is appended to, one JSON line each.
    pub record: Option<PathBuf>,
    /// The SnapTrade users and their accounts.
    pub users: Vec<SnaptradeUser>,
    /// Whom Kill Bill notifies, and how it does so.
    pub killbill: Option<(killbill::Callback, killbill::Habits)>,
    /// How long every provider call takes at least.
    pub latency: Duration,
    /// Decides what the accounts hold, whom a rule with a share hits, and which payments happen.
    pub seed: u64,
}

impl Default for Config {
    /// A free local port, no users, no record, no latency, and the quota that the platform is sized for.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            client_id: "SPILLWAYDEV".to_owned(),
            consumer_key: "ck_test_key".to_owned(),
            quota_per_minute: 4000,
            record: None,
            users: Vec::new(),
            killbill: None,
            latency: Duration::ZERO,
            seed: 1,
        }
    }
}

/// A running sandbox. It ends with [`Sandbox::stop`], or when it is dropped.
pub struct Sandbox {
    address: SocketAddr,
    desk: Arc<Desk>,
    snaptrade: Arc<Snaptrade>,
    stop: CancellationToken,
    server: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// Binds and serves.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let listen = config.listen;
        let desk = Arc::new(Desk::open(config.record.as_deref(), config.latency, config.seed)?);
        let stop = CancellationToken::new();
        let killbill = Killbill::new(config.killbill.clone(), config.seed, stop.clone());
        let snaptrade = Arc::new(Snaptrade::new(Arc::clone(&desk), config));
        let bind = |source| Error::Bind { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let router = router(&desk, &snaptrade, &killbill);
        let server = tokio::spawn(server::serve(listener, router, stop.clone()));
        Ok(Self { address, desk, snaptrade, stop, server: Some(server) })
    }

    /// Where it answers, such as `http://127.0.0.1:41000`, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every provider call that has ended, in the order in which they ended.
    pub fn calls(&self) -> Vec<Call> {
        self.desk.record.since(0)
    }

    /// The calls in flight at a provider such as [`snaptrade::PROVIDER`].
    pub fn overlap(&self, provider: &str) -> Overlap {
        self.desk.overlaps.of(provider)
    }

    /// The calls in flight for one SnapTrade account.
    pub fn account_overlap(&self, account: Uuid) -> Overlap {
        self.desk.overlaps.of_key(snaptrade::PROVIDER, account)
    }

    /// Adds a rule behind those that are there.
    pub fn script(&self, rule: Rule) -> RuleId {
        self.desk.script.add(rule)
    }

    /// Ends all rules. Their ids stay valid for [`Sandbox::fired`].
    pub fn clear_script(&self) {
        self.desk.script.clear();
    }

    /// How many calls the rule has hit.
    pub fn fired(&self, rule: RuleId) -> u64 {
        self.desk.script.fired(rule)
    }

    /// From now on these users and their accounts are known too.
    pub fn add_users(&self, users: &[SnaptradeUser]) {
        self.snaptrade.add_users(users);
    }

    /// Changes what the account holds and adds one activity. Returns the new revision, none for an unknown
    /// account.
    pub fn bump(&self, account: Uuid) -> Option<u32> {
        self.snaptrade.bump(account)
    }

    /// Sets how many activities the account had at its first revision; 37 unless set. An unknown account is
    /// ignored.
    pub fn set_activities(&self, account: Uuid, count: u32) {
        self.snaptrade.set_activities(account, count);
    }

    /// Waits until something holds; it is asked again whenever a call begins or ends. Set a time limit around
    /// it.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut changes = self.desk.changes();
        while !holds(self) {
            changes.changed().await.expect("the desk, which signals changes, lives as long as the sandbox");
        }
    }

    /// Ends it like a crash would: connections are dropped, and calls in flight are recorded without an
    /// answer.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(server) = self.server.take() {
            // Cancelled only with the runtime itself, and then there is nothing to wait for.
            let _ = server.await;
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn router(desk: &Arc<Desk>, snaptrade: &Arc<Snaptrade>, killbill: &Arc<Killbill>) -> Router {
    Router::new()
        .merge(control::router(desk, snaptrade, killbill))
        .merge(snaptrade::router(Arc::clone(snaptrade)))
        .fallback_service(any(desk::unknown_route).with_state(Arc::clone(desk)))
}
