//! The bench `intake`: what the gateway takes in a second, each webhook committed before it is answered.
//!
//! A unique webhook here costs what it costs at best in production and no less: an account that we know, whose
//! connection we know, and for which no sync waits, so that every event becomes an inbox row, a command in the
//! ledger and a message. The peer puts a message alone into a queue of the same server. The rounds take turns.

mod report;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use testkit::Dice;
use testkit::Session;
use testkit::sandbox::snaptrade::webhook::{CONNECTION, event, signature};
use uuid::Uuid;

use super::load::{self, Load};
use super::pgbench::Pgbench;
use super::statements::Counter;
use super::{Common, cpu};
use crate::accounts;
use crate::connection::Settings;

pub use report::Report;

/// The user that all of the accounts belong to.
const USER: &str = "bench-user";

/// The peer's queue and its statement, with a message as large as ours.
const PEER_QUEUE: &str = "bench";
const PEER_STATEMENT: &str = "select pgmq.send('bench', '{\"command\":\"01938f6e-7d3a-7c1e-9f43-5f2b8f6d1c2e\",\
     \"kind\":\"snaptrade-account-sync\",\"version\":1}'::jsonb)";

/// The peer's best is what counts.
const PEER_CLIENTS: [u32; 3] = [1, 16, 64];

/// Measures how many webhooks a second the gateway takes in.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many unique webhooks a round.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub events: u32,
    /// How many rounds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// How many keep-alive connections; fewer than the gateway's in-flight permits.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// How long each run of pgbench takes.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub pgbench_seconds: u32,
    /// Where to send. Default: the platform of the settings.
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,
    /// What every bench is told.
    #[command(flatten)]
    pub common: Common,
}

/// One run of pgbench.
#[derive(Clone, Copy, Debug)]
struct Peer {
    clients: u32,
    per_s: f64,
    /// CPU time of the server for each send.
    postgres_us: Option<f64>,
}

/// What one round measured.
#[derive(Debug)]
struct Round {
    peer: Vec<Peer>,
    unique: Load,
    duplicate: Load,
    noop: Load,
    statements: i64,
    gateway: Option<Duration>,
    postgres: Option<Duration>,
    generator: Option<Duration>,
}

/// Prepares accounts, then measures the rounds.
pub async fn measure(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    // One more for each connection, to warm up with.
    let n = args.rounds as usize * args.events as usize + args.connections as usize;
    let accounts = accounts::ids(args.common.seed, n);
    Bench::prepare(args, settings, &accounts).await?.run(args, &accounts).await
}

/// What the rounds share.
struct Bench {
    server: Session,
    counter: Counter,
    pgbench: Option<Pgbench>,
    address: String,
    consumer_key: String,
}

impl Bench {
    async fn prepare(args: &Args, settings: &Settings, accounts: &[Uuid]) -> anyhow::Result<Self> {
        let url = settings.get("SANMOPIA_DATABASE_URL")?;
        let mut server = Session::connect(url).await.context("connecting to the server")?;
        let gateway =
            args.gateway.clone().map_or_else(|| settings.url_of_listener("SANMOPIA_GATEWAY_LISTEN"), Ok)?;
        accounts::load(settings, USER, &Uuid::now_v7().simple().to_string(), accounts).await?;
        let steady = format!(
            "update spillway.snaptrade_account set connection_id = '{CONNECTION}' where user_id = '{USER}'"
        );
        server.execute(&steady).await.context("telling the accounts' connection")?;
        server.execute("vacuum (analyze) spillway.snaptrade_account").await.context("vacuuming")?;
        let pgbench = args.common.pgbench.clone().map(|program| Pgbench::new(program, url)).transpose()?;
        if pgbench.is_some() {
            let create = format!("select pgmq.create('{PEER_QUEUE}')");
            server.execute(&create).await.context("creating the peer's queue")?;
        }
        Ok(Self {
            counter: Counter::of(&mut server).await?,
            server,
            pgbench,
            address: gateway.trim_start_matches("http://").trim_end_matches('/').to_owned(),
            consumer_key: settings.get("SANMOPIA_SNAPTRADE_CONSUMER_KEY")?.to_owned(),
        })
    }

    async fn run(mut self, args: &Args, accounts: &[Uuid]) -> anyhow::Result<Report> {
        let (warm_up, accounts) = accounts.split_at(args.connections as usize);
        let mut dice = Dice::new("intake", &[args.common.seed]);
        self.send(args, self.webhooks(warm_up, &mut dice)).await.context("warming up")?;
        let mut rounds = Vec::new();
        for accounts in accounts.chunks(args.events as usize) {
            let webhooks = self.webhooks(accounts, &mut dice);
            rounds.push(self.round(args, webhooks).await?);
        }
        Ok(Report::of(args, self.counter, &rounds))
    }

    /// The counts of repetitions are written a little later, so what follows them here is our own and not the peer's.
    async fn round(&mut self, args: &Args, webhooks: Arc<Vec<Vec<u8>>>) -> anyhow::Result<Round> {
        let peer = self.peer(args).await?;
        let usage = || {
            let of = |name| args.common.pid(name).and_then(cpu::of_family);
            [of("gateway"), of("postgres"), cpu::of_family(std::process::id())]
        };
        let (statements, before) = (self.counter.count(&mut self.server).await?, usage());
        let unique = self.send(args, webhooks.clone()).await.context("sending unique webhooks")?;
        let used: Vec<Option<Duration>> =
            usage().into_iter().zip(before).map(|(after, before)| after?.checked_sub(before?)).collect();
        let statements = self.counter.count(&mut self.server).await? - statements;
        let duplicate = self.send(args, webhooks).await.context("sending duplicates")?;
        let noop = self.send(args, self.noops(args.events)).await.context("asking for nothing")?;
        let (gateway, postgres, generator) = (used[0], used[1], used[2]);
        Ok(Round { peer, unique, duplicate, noop, statements, gateway, postgres, generator })
    }

    async fn peer(&self, args: &Args) -> anyhow::Result<Vec<Peer>> {
        let Some(pgbench) = &self.pgbench else { return Ok(Vec::new()) };
        let used = || args.common.pid("postgres").and_then(cpu::of_family);
        let mut runs = Vec::new();
        for clients in PEER_CLIENTS {
            let before = used();
            let per_s = pgbench.per_s(PEER_STATEMENT, clients, args.pgbench_seconds).await?;
            let sends = per_s * f64::from(args.pgbench_seconds);
            let postgres_us = used()
                .zip(before)
                .map(|(after, before)| after.saturating_sub(before).as_secs_f64() * 1e6 / sends);
            runs.push(Peer { clients, per_s, postgres_us });
        }
        Ok(runs)
    }

    async fn send(&self, args: &Args, requests: Arc<Vec<Vec<u8>>>) -> anyhow::Result<Load> {
        load::run(self.address.clone(), requests, args.connections as usize).await
    }

    /// A signed webhook for each of the accounts.
    fn webhooks(&self, accounts: &[Uuid], dice: &mut Dice) -> Arc<Vec<Vec<u8>>> {
        let request = |account: &Uuid| {
            let id = dice.uuid().to_string();
            let body = event(&id, "ACCOUNT_HOLDINGS_UPDATED", USER, *account).to_string();
            let signature = signature(&self.consumer_key, body.as_bytes());
            let head = format!(
                "POST /webhooks/snaptrade HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
                 signature: {signature}\r\ncontent-length: {}\r\n\r\n",
                self.address,
                body.len()
            );
            (head + &body).into_bytes()
        };
        Arc::new(accounts.iter().map(request).collect())
    }

    /// A path that nobody serves is the least that the public listener can be asked for: it touches no database.
    fn noops(&self, n: u32) -> Arc<Vec<Vec<u8>>> {
        let request = format!("GET /nothing HTTP/1.1\r\nhost: {}\r\n\r\n", self.address).into_bytes();
        Arc::new(vec![request; n as usize])
    }
}
