//! Where one fault happens: a database, an outside provider, and the programs that the fault wants.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use contract::{Actor, Job as _, NewCommand, Workload};
use reqwest::Client;
use secrecy::{SecretBox, SecretString};
use serde_json::json;
use store::Pool;
use store::intake::{Item, Taken, take_in};
use store::seal::Sealer;
use store::snaptrade::NewUser;
use tempfile::TempDir;
use testkit::effects::Effects;
use testkit::{Database, Dice, Proxy, Session};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use super::gateway::{USER, client};
use super::history::{History, Operation, Told};
use super::programs::Program;
use crate::probe::{Act, Probe};

/// The queue of the probe worker.
pub(super) const QUEUE: &str = Workload::PaymentReconciliation.queue().name;

/// Its dead letters.
pub(super) const DEAD_LETTERS: &str = Workload::PaymentReconciliation.queue().dead_letter;

/// The queue that accepted events fill; nobody works on it in a scene.
pub(super) const SYNCS: &str = Workload::SnaptradeAccountSync.queue().name;

/// Jobs of one group that may be in work at once, where groups are capped.
pub(super) const CAP: u32 = 2;

/// Short, so that a fault is over soon.
pub(super) const LEASE: Duration = Duration::from_secs(2);

/// How long a platform may take to heal. Nothing is measured by it; only what never heals takes so long.
pub(super) const BUDGET: Duration = Duration::from_mins(1);

const POLL: Duration = Duration::from_millis(50);

/// Signs what SnapTrade would send.
pub(super) const CONSUMER_KEY: &str = "consumer-key-of-the-drills";

/// 32 bytes of `d`, in base64.
const DATA_KEY: &str = "ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGQ=";

/// What the patches of the controls call.
const TAKE_AWAY: &str = include_str!("take_away.sql");

/// What every process is told beside what the scene decides.
const EXAMPLE: &str = include_str!("../../../.env.example");

/// What a control takes away.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lack {
    /// A guard of the processes, by its name.
    pub(super) guard: Option<&'static str>,
    /// Statements that rewrite the database's functions.
    pub(super) patch: Option<&'static str>,
}

/// Settings of one process.
pub(super) type Settings = Vec<(&'static str, String)>;

/// See the module.
pub(super) struct Scene {
    pub(super) database: Database,
    pub(super) effects: Effects,
    pub(super) history: History,
    pub(super) http: Client,
    pub(super) seed: u64,
    pool: Pool,
    folder: TempDir,
    lacks: Lack,
    started: AtomicUsize,
}

/// A worker as a fault wants it.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) concurrency: u32,
    pub(super) lease: Duration,
    pub(super) deadline: Duration,
    /// Where it dies, in the words of `SPILLWAY_CRASHPOINT`.
    pub(super) crash: &'static str,
    /// Its database, where it is not reached directly.
    pub(super) url: Option<String>,
}

impl Default for Worker {
    fn default() -> Self {
        Self { concurrency: 8, lease: LEASE, deadline: Duration::from_secs(20), crash: "", url: None }
    }
}

impl Worker {
    fn arguments(&self) -> [String; 4] {
        let ms = |time: Duration| time.as_millis().to_string();
        let [lease, deadline] = ["--lease-ms", "--run-deadline-ms"].map(str::to_owned);
        [lease, ms(self.lease), deadline, ms(self.deadline)]
    }

    fn own(&self) -> Settings {
        let mut own = vec![
            ("SANMOPIA_WORKER_PAYMENT_CONCURRENCY", self.concurrency.to_string()),
            ("SANMOPIA_DATABASE_POOL", (self.concurrency + 4).to_string()),
        ];
        own.extend(self.url.iter().map(|url| ("SANMOPIA_WORKER_DATABASE_URL", url.clone())));
        own
    }

    /// One that dies there.
    pub(super) fn dying(crash: &'static str) -> Self {
        Self { crash, ..Self::default() }
    }
}

impl Scene {
    /// An empty platform.
    pub(super) async fn new(seed: u64, lacks: Lack) -> anyhow::Result<Self> {
        let database = Database::fresh().await;
        if let Some(patch) = lacks.patch {
            database.execute(&format!("{TAKE_AWAY}{patch}")).await;
        }
        let pool = database.pool_as("spillway_gateway", 2);
        let folder = tempfile::tempdir().context("making a folder")?;
        let effects = Effects::start().await;
        Ok(Self {
            database,
            effects,
            history: History::default(),
            http: client()?,
            seed,
            pool,
            folder,
            lacks,
            started: AtomicUsize::new(0),
        })
    }

    /// Dice of its own for one subject.
    pub(super) fn dice(&self, topic: &str) -> Dice {
        Dice::new(topic, &[self.seed])
    }

    /// Starts a worker of the probe's queue.
    pub(super) fn worker(&self, worker: &Worker) -> anyhow::Result<Program> {
        let (environment, log) = self.prepare("probe-worker", worker.own(), worker.crash);
        Program::start("probe-worker", &worker.arguments(), &environment, &log)
    }

    /// The same with so many mebibytes of memory at most.
    pub(super) fn limited_worker(&self, worker: &Worker, mib: u64) -> anyhow::Result<Program> {
        let (environment, log) = self.prepare("probe-worker", worker.own(), worker.crash);
        Program::start_limited("probe-worker", &worker.arguments(), &environment, &log, mib)
    }

    /// Starts a program of the platform with these settings of its own.
    pub(super) fn program(
        &self,
        name: &str,
        arguments: &[&str],
        own: Settings,
        crash: &str,
    ) -> anyhow::Result<Program> {
        let (environment, log) = self.prepare(name, own, crash);
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Program::start(name, &arguments, &environment, &log)
    }

    /// The environment and the log of a process.
    fn prepare(&self, name: &str, own: Settings, crash: &str) -> (Vec<(String, String)>, PathBuf) {
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        let mut environment = self.settings();
        let mut set = |name: &str, value: String| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.to_owned(), value));
        };
        for (name, value) in own {
            set(name, value);
        }
        set("SPILLWAY_CRASHPOINT_FIRED", self.fired_file().display().to_string());
        if !crash.is_empty() {
            set("SPILLWAY_CRASHPOINT", crash.to_owned());
        }
        if let Some(guard) = self.lacks.guard {
            set("SPILLWAY_LACKS", guard.to_owned());
        }
        (environment, self.folder.path().join(format!("{nth:02}-{name}.log")))
    }

    fn settings(&self) -> Vec<(String, String)> {
        let own = [
            ("SANMOPIA_DATA_KEY", DATA_KEY.to_owned()),
            ("SANMOPIA_SERVICE_TOKEN", "service-token-of-the-drills".to_owned()),
            ("SANMOPIA_KILLBILL_ADMISSION_TOKEN", "admission-token-of-the-drills".to_owned()),
            ("SANMOPIA_SNAPTRADE_CLIENT_ID", "DRILLS".to_owned()),
            ("SANMOPIA_SNAPTRADE_CONSUMER_KEY", CONSUMER_KEY.to_owned()),
            ("SANMOPIA_SNAPTRADE_WEBHOOK_SECRET", "webhook-secret-of-the-drills".to_owned()),
            ("SANMOPIA_SNAPTRADE_BASE_URL", self.effects.url()),
            ("SANMOPIA_DATABASE_URL", self.database.url()),
            ("SANMOPIA_GATEWAY_DATABASE_URL", self.database.url_as("spillway_gateway")),
            ("SANMOPIA_WORKER_DATABASE_URL", self.database.url_as("spillway_worker")),
            ("SANMOPIA_OPERATOR_DATABASE_URL", self.database.url_as("spillway_operator")),
            ("SANMOPIA_GATEWAY_LISTEN", "127.0.0.1:0".to_owned()),
            ("SANMOPIA_GATEWAY_INTERNAL_LISTEN", "127.0.0.1:0".to_owned()),
            ("SANMOPIA_WORKER_LISTEN", "127.0.0.1:0".to_owned()),
        ];
        let is_own = |name: &str| own.iter().any(|(known, _)| *known == name);
        let lines = EXAMPLE.lines().filter(|line| !line.starts_with('#'));
        let example = lines.filter_map(|line| line.split_once('=')).filter(|(name, _)| !is_own(name));
        let mut settings: Vec<_> = example.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        settings.extend(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        settings
    }

    fn fired_file(&self) -> PathBuf {
        self.folder.path().join("fired")
    }

    /// The points that processes reached and the guards that they missed, one a line.
    pub(super) fn fired(&self) -> String {
        // Nothing has happened where there is no file.
        std::fs::read_to_string(self.fired_file()).unwrap_or_default()
    }

    /// Whether a process acted at that point, or missed that guard.
    pub(super) fn has_fired(&self, name: &str) -> bool {
        self.fired().lines().any(|line| line.split(' ').next() == Some(name))
    }

    /// Makes the database refuse writes, or take them again, as programs see it that connect from now on; all have to.
    pub(super) async fn set_read_only(&self, is: bool) -> anyhow::Result<()> {
        let word = if is { "on" } else { "off" };
        let alter = format!(
            "do $$ begin
               execute format('alter database %I set default_transaction_read_only = {word}', current_database());
             end $$"
        );
        let mut session =
            Session::connect(&self.database.url()).await.context("connecting to the database")?;
        session.execute("set default_transaction_read_only = off").await.context("being allowed to write")?;
        session.execute(&alter).await.context("changing the database")?;
        self.end_sessions().await.map(drop)
    }

    /// A proxy in front of the database.
    pub(super) async fn proxy(&self) -> anyhow::Result<Proxy> {
        let url = Url::parse(&self.database.url()).context("the database's URL")?;
        let address = (url.host_str().context("a host")?, url.port().unwrap_or(5432));
        let server = tokio::net::lookup_host(address).await?.next().context("the database's address")?;
        Ok(Proxy::start(server).await)
    }

    /// The database through a proxy, with the rights of one of our roles.
    pub(super) fn url_through(&self, proxy: &Proxy, role: &str) -> anyhow::Result<String> {
        let mut url = Url::parse(&self.database.url_as(role)).context("the database's URL")?;
        url.set_host(Some("127.0.0.1")).context("a host")?;
        ensure!(url.set_port(Some(proxy.address().port())).is_ok(), "a port");
        Ok(url.into())
    }

    /// A gateway's way to the database through a proxy.
    pub(super) fn gateway_through(&self, proxy: &Proxy) -> anyhow::Result<Settings> {
        Ok(vec![("SANMOPIA_GATEWAY_DATABASE_URL", self.url_through(proxy, "spillway_gateway")?)])
    }

    /// Makes so many accounts known, which SnapTrade's events may be about.
    pub(super) async fn accounts(&self, n: usize) -> anyhow::Result<Vec<Uuid>> {
        let mut dice = self.dice("accounts");
        let accounts: Vec<Uuid> = (0..n).map(|_| dice.uuid()).collect();
        let user = NewUser {
            user_id: USER.to_owned(),
            user_secret: SecretString::from("user-secret"),
            accounts: accounts.clone(),
        };
        let operator = self.database.pool_as("spillway_operator", 1);
        let sealer = Sealer::new(&SecretBox::new(Box::new([b'd'; 32])));
        store::snaptrade::load(&operator, &sealer, &[user]).await.context("loading accounts")?;
        Ok(accounts)
    }

    /// From now on at most [`CAP`] jobs of one group are in work.
    pub(super) async fn cap_groups(&self) {
        let sql = format!(
            "create or replace function spillway.limits_of(workload text, payload jsonb) returns jsonb
             language sql immutable parallel safe as $$
               select case when payload ->> 'group' <> ''
                 then jsonb_build_object('chaos:' || (payload ->> 'group'), {CAP}) end
             $$"
        );
        self.database.execute(&sql).await;
    }

    /// The gateway's way to the database.
    pub(super) const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The last lines that its programs logged, for whoever has to find out why.
    pub(super) fn logs(&self) -> String {
        let Ok(files) = std::fs::read_dir(self.folder.path()) else { return String::new() };
        let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
        files.sort();
        let mut text = String::new();
        for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "log")) {
            let said = std::fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            let name = file.file_name().unwrap_or_default().display();
            let _ = writeln!(text, "--- {name}\n{last}"); // A String takes any text.
        }
        text
    }

    /// `n` jobs with keys of their own that do nothing but their call.
    pub(super) fn plain(&self, n: usize) -> Vec<Probe> {
        (0..n).map(|_| self.job(Act::Plain)).collect()
    }

    /// A job with a key of its own.
    pub(super) fn job(&self, act: Act) -> Probe {
        Probe { key: Uuid::now_v7().to_string(), group: String::new(), url: self.effects.url(), act }
    }

    /// Puts jobs in, as the gateway does; answers their commands.
    pub(super) async fn submit(&self, jobs: &[Probe]) -> anyhow::Result<Vec<Uuid>> {
        let commands: Vec<NewCommand> = jobs.iter().map(command).collect();
        let ids = commands.iter().map(|command| command.id).collect();
        self.submit_as(commands).await?;
        Ok(ids)
    }

    /// Puts commands in as they are.
    pub(super) async fn submit_as(&self, commands: Vec<NewCommand>) -> anyhow::Result<()> {
        ensure!(self.try_to_submit(&commands).await?, "a command became something else");
        Ok(())
    }

    /// Puts commands in, again and again until it is known that they are.
    pub(super) async fn submit_at_last(&self, commands: &[NewCommand]) -> anyhow::Result<()> {
        self.until("commands are put in", async || self.try_to_submit(commands).await).await
    }

    async fn try_to_submit(&self, commands: &[NewCommand]) -> anyhow::Result<bool> {
        let items = commands.iter().map(|command| Item::Command(Box::new(command.clone()))).collect();
        let taken = take_in(&self.pool, &[], |_| items).await;
        let told = if taken.is_ok() { Told::Ok } else { Told::Unknown };
        for command in commands {
            let key = command.idempotency_key.clone();
            self.history.note(Operation { key, command: Some(command.id), told });
        }
        let taken = taken.context("putting commands in")?;
        Ok(taken.iter().all(|taken| matches!(taken, Taken::Command(_))))
    }

    /// Ends the programs' sessions from outside; answers how many there were.
    pub(super) async fn end_sessions(&self) -> anyhow::Result<i64> {
        let mut session =
            Session::connect(&self.database.url()).await.context("connecting to the database")?;
        let end = "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and application_name like 'spillway%'";
        session.number(end).await.context("ending sessions")
    }

    /// Waits until every job has ended.
    pub(super) async fn drains(&self) -> anyhow::Result<()> {
        self.until("every job has ended", async || Ok(self.open().await? == 0)).await
    }

    /// Jobs that have not ended.
    pub(super) async fn open(&self) -> anyhow::Result<i64> {
        self.count(&format!("spillway.command where finished_at is null and queue = '{QUEUE}'")).await
    }

    /// Waits until something holds. That it can't be asked for now is no answer.
    pub(super) async fn until(
        &self,
        what: &str,
        mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + BUDGET;
        loop {
            match holds().await {
                Ok(true) => return Ok(()),
                Ok(false) => ensure!(Instant::now() < deadline, "not within {BUDGET:?}: {what}"),
                Err(error) => {
                    ensure!(Instant::now() < deadline, "not within {BUDGET:?}: {what} ({error:#})");
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the database answers again.
    pub(super) async fn answers(&self) -> anyhow::Result<()> {
        self.until("the database answers", async || Ok(self.count("spillway.workload").await? > 0)).await
    }

    /// Takes a command back, as its caller may.
    pub(super) async fn cancel(&self, id: Uuid) -> anyhow::Result<()> {
        self.until("the command is taken back", async || {
            // Not while a run holds it.
            store::command::cancel(&self.pool, id).await.context("taking a command back")
        })
        .await
    }

    /// How many rows a query counts.
    pub(super) async fn count(&self, from: &str) -> anyhow::Result<i64> {
        let mut session =
            Session::connect(&self.database.url()).await.context("connecting to the database")?;
        session.number(&format!("select count(*) from {from}")).await.context("counting")
    }

    /// Waits until so many messages are claimed.
    pub(super) async fn claims(&self, n: i64) -> anyhow::Result<()> {
        let claimed = format!("pgmq.q_{QUEUE} where read_ct > 0 and vt > clock_timestamp()");
        self.until(&format!("{n} messages are claimed"), async || Ok(self.count(&claimed).await? >= n)).await
    }
}

/// The command of a job.
pub(super) fn command(job: &Probe) -> NewCommand {
    let id = Uuid::now_v7();
    NewCommand {
        id,
        workload: Probe::WORKLOAD,
        kind: Probe::KIND,
        version: Probe::VERSION,
        idempotency_key: job.key.clone(),
        payload: json!(job),
        actor: Actor::provider("chaos"),
        class: Probe::WORKLOAD.spec().class,
        not_before: None,
        snapshots: Vec::new(),
        expected_revision: None,
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
        tracestate: String::new(),
        correlation_id: id.to_string(),
    }
}
