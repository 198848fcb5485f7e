//! The drill `snaptrade-fanout`: the incident of April 2026. A burst of webhooks about many accounts, most of them
//! repeated, each asking for calls to a provider that throttles; then each call that failed asked again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use testkit::Dice;
use testkit::sandbox::snaptrade::webhook::event;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::checks::{self, Ends};
use super::clock::Clock;
use super::history::{Delivered, History, Killed, Read, Sample};
use super::killer::kill_all;
use super::plan::{Plan, Size, USER};
use super::probe::Probe;
use super::provider::Provider;
use super::report::Scenario;
use super::rows::Reader;
use super::runs::Runs;
use super::senders::Senders;
use super::tally::Tally;
use super::watch::{Seen, Watch};
use super::{Options, Outcome, page};
use crate::accounts;
use crate::caller::{Caller, Reply};
use crate::connection::Settings;

/// As it is called in reports.
const NAME: &str = "snaptrade-fanout";

/// An answer that takes longer is one that never came.
const PATIENCE: Duration = Duration::from_secs(15);

/// Between the end of the quiet and the first delivery.
const LEAD: Duration = Duration::from_secs(1);

/// How long the command that is read in the quiet may take.
const WARM_UP: Duration = Duration::from_mins(1);
const WARM_UP_USER: &str = "spike-warm-up";

/// Drills, and judges what happened.
pub async fn drill(options: &Options, settings: &Settings) -> anyhow::Result<Outcome> {
    options.check()?;
    let history = incident(options, settings).await?;
    let runs = Runs::of(&history.calls);
    let ends = Ends::of(&history);
    let checks = checks::all(&history, &runs, &ends);
    let scenario = Scenario::of(NAME, &history, &ends, checks);
    let page = page::render(&history, &runs, &scenario, &options.about);
    Ok(Outcome { scenario, page })
}

async fn incident(options: &Options, settings: &Settings) -> anyhow::Result<History> {
    let plan = Plan::of(Size::scaled(options.scale), options.seed, options.kill);
    let caller = Caller::new(settings, PATIENCE)?;
    let mut provider = Provider::new(settings, &plan.accounts)?;
    accounts::introduce(settings, USER, &plan.accounts).await?;
    let command = warm_up(options, settings, &caller).await?;
    let quiet = Duration::from_secs(options.idle_seconds);
    let clock = Clock::starting_in(quiet + LEAD);
    let stage = Stage { options, plan: &plan, caller, clock, tally: Arc::default(), command };

    let reads = stage.probe();
    tokio::time::sleep(quiet).await;
    let idle_reads = reads.end().await?;
    provider.fail(plan.size.quota, options.quota_period()).await?;
    let mut reader = Reader::connect(settings, clock.epoch_ms()).await?;
    let Storm { delivered, kills, reads, seen } = stage.storm(&mut reader, &mut provider).await?;

    provider.look(clock.epoch_ms()).await?;
    let mut rows = reader.all().await?;
    rows.keep(&plan);
    Ok(History {
        plan,
        delivered,
        rows,
        calls: provider.into_calls(),
        idle_reads,
        storm_reads: reads,
        samples: seen.samples,
        kills,
        cap: cap(options, settings)?,
        quota_period: options.quota_period(),
        drained: seen.drained,
    })
}

/// What all who take part know.
struct Stage<'a> {
    options: &'a Options,
    plan: &'a Plan,
    caller: Caller,
    clock: Clock,
    tally: Arc<Tally>,
    /// One that has ended, to be read while there is no other.
    command: Uuid,
}

/// What those who take part saw.
struct Storm {
    delivered: Vec<Delivered>,
    kills: Vec<Killed>,
    reads: Vec<Read>,
    seen: Seen,
}

impl Stage<'_> {
    /// Delivers, kills, reads and watches, until all is over.
    async fn storm(&self, reader: &mut Reader, provider: &mut Provider) -> anyhow::Result<Storm> {
        let (newest, latest) = watch::channel(Sample::default());
        let all_sent = CancellationToken::new();
        let look = Watch {
            tally: self.tally.clone(),
            deliveries: self.plan.deliveries.len(),
            epoch_ms: self.clock.epoch_ms(),
            all_sent: all_sent.clone(),
            wait: Duration::from_secs(self.options.wait_seconds),
            newest,
        };
        let senders = Senders {
            caller: self.caller.clone(),
            gateways: self.options.gateways.clone(),
            clock: self.clock,
            tally: self.tally.clone(),
        };
        let deliveries = async {
            let reads = self.probe();
            let kills = kill_all(&self.plan.kills, &self.options.processes, self.clock, latest);
            let (delivered, kills) = tokio::join!(senders.deliver(self.plan), kills);
            all_sent.cancel();
            Ok::<_, anyhow::Error>((delivered, kills?, reads.end().await?))
        };
        let (deliveries, seen) = tokio::join!(deliveries, look.run(reader, provider));
        let (delivered, kills, reads) = deliveries?;
        Ok(Storm { delivered, kills, reads, seen: seen? })
    }

    /// Begins to read status.
    fn probe(&self) -> Reads {
        let probe = Probe {
            caller: self.caller.clone(),
            gateways: self.options.gateways.clone(),
            clock: self.clock,
            tally: self.tally.clone(),
            command: self.command,
        };
        let stop = CancellationToken::new();
        Reads { task: tokio::spawn(probe.read(self.options.seed, stop.clone())), stop }
    }
}

/// Status reads that go on until they are ended.
struct Reads {
    stop: CancellationToken,
    task: JoinHandle<Vec<Read>>,
}

impl Reads {
    async fn end(self) -> anyhow::Result<Vec<Read>> {
        self.stop.cancel();
        self.task.await.context("reading status")
    }
}

/// Each run makes one call at a time.
fn cap(options: &Options, settings: &Settings) -> anyhow::Result<u32> {
    const CONCURRENCY: &str = "SANMOPIA_WORKER_SNAPTRADE_SYNC_CONCURRENCY";
    let runs: u32 =
        settings.get(CONCURRENCY)?.parse().with_context(|| format!("{CONCURRENCY} is no number"))?;
    Ok(runs * options.workers)
}

/// One event of another account, brought to its end: there is a command to read, and everything has been used once.
async fn warm_up(options: &Options, settings: &Settings, caller: &Caller) -> anyhow::Result<Uuid> {
    let mut dice = Dice::new("warm-up", &[options.seed]);
    let (account, id) = (dice.uuid(), dice.uuid().to_string());
    accounts::introduce(settings, WARM_UP_USER, &[account]).await?;
    let body = event(&id, "ACCOUNT_HOLDINGS_UPDATED", WARM_UP_USER, account).to_string();
    let gateway = options.gateways.first().context("no gateway was named")?;
    let reply = caller.deliver(gateway, &body).await;
    let Reply::Accepted { command: Some(command), .. } = reply else {
        anyhow::bail!("the first event of all was answered {reply:?}");
    };
    let ended = async {
        while caller.status(gateway, command).await != Some(contract::Status::Succeeded) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(WARM_UP, ended).await.is_ok();
    ensure!(in_time, "the first event of all did not end in {} s: is a worker running?", WARM_UP.as_secs());
    Ok(command)
}
