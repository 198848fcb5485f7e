//! A long run of random faults on one platform under load: what no single fault shows.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use contract::NewCommand;
use nix::sys::signal::Signal;
use testkit::Dice;
use testkit::proxy::{Mode, Proxy};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::faults::Fired;
use super::gateway::{Event, Gateway};
use super::programs::Program;
use super::scene::{CAP, Scene, Worker, command};
use crate::probe::{Act, Probe};

const GROUPS: u16 = 6;
const ACCOUNTS: usize = 100;
const WORKERS: usize = 3;
const GATEWAYS: usize = 2;

/// How long the platform may take to heal when all is over: the longest backoff and a few leases.
const HEALED_WITHIN: Duration = Duration::from_mins(3);

/// What is done to the platform.
const STRIKES: [(&str, Strike); 10] = [
    ("a worker is killed", Strike::KillWorker),
    ("a gateway is killed", Strike::KillGateway),
    ("a worker sleeps for three leases", Strike::StopWorker),
    ("a worker is told to stop", Strike::EndWorker),
    ("sessions are ended", Strike::EndSessions),
    ("connections to the database are reset", Strike::Reset),
    ("the database is slow", Strike::Delay),
    ("the database falls silent", Strike::Silence),
    ("the provider loses answers", Strike::LoseAnswers),
    ("the provider fails", Strike::Fail),
];

#[derive(Clone, Copy, Debug)]
enum Strike {
    KillWorker,
    KillGateway,
    StopWorker,
    EndWorker,
    EndSessions,
    Reset,
    Delay,
    Silence,
    LoseAnswers,
    Fail,
}

/// The platform under load and under fire for so long; what was done, and how often.
pub(super) async fn soak(
    scene: &Scene,
    time: Duration,
) -> anyhow::Result<(Fired, BTreeMap<&'static str, u32>)> {
    scene.cap_groups().await;
    // Long enough for calls that should not to meet.
    scene.effects.answer_late(Duration::from_millis(100));
    let accounts = scene.accounts(ACCOUNTS).await?;
    let until = Instant::now() + time;
    let mut crew = Crew::start(scene).await?;
    let urls: Vec<String> = crew.gateways.iter().map(|gateway| gateway.url.clone()).collect();
    let (struck, jobs, events) =
        tokio::join!(crew.under_fire(until), jobs(scene, until), events(scene, &urls, &accounts, until));
    let struck = struck?;
    jobs?;
    events?;
    crew.proxy.set(Mode::Pass);
    scene.effects.heal();
    crew.until_drained().await?;
    for group in 0..GROUPS {
        let most = scene.effects.most_at_once(&format!("group-{group}"));
        ensure!(most <= CAP, "group {group} had {most} calls at once and may have {CAP}");
    }
    Ok((Fired(struck.values().sum::<u32>() > 0), struck))
}

/// Everything that runs, and is started again when it has died.
struct Crew<'a> {
    scene: &'a Scene,
    proxy: Proxy,
    gateways: Vec<Gateway>,
    workers: Vec<Program>,
    dice: Dice,
}

impl<'a> Crew<'a> {
    async fn start(scene: &'a Scene) -> anyhow::Result<Self> {
        let proxy = scene.proxy().await?;
        let (mut gateways, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..GATEWAYS {
            gateways.push(scene.gateway("", scene.gateway_through(&proxy)?).await?);
        }
        for _ in 0..WORKERS {
            workers.push(worker(scene, &proxy)?);
        }
        Ok(Self { scene, proxy, gateways, workers, dice: scene.dice("strikes") })
    }

    async fn under_fire(&mut self, until: Instant) -> anyhow::Result<BTreeMap<&'static str, u32>> {
        let mut struck = BTreeMap::new();
        while Instant::now() < until {
            let pause = 1000 + u64::try_from(self.dice.below(3000)).unwrap_or(0);
            let next = Instant::now() + Duration::from_millis(pause);
            while Instant::now() < next.min(until) {
                self.revive()?;
                sleep(Duration::from_millis(100)).await;
            }
            let (name, strike) = *self.dice.pick(&STRIKES);
            self.strike(strike).await?;
            *struck.entry(name).or_default() += 1;
        }
        Ok(struck)
    }

    async fn strike(&mut self, strike: Strike) -> anyhow::Result<()> {
        let worker = self.dice.place(WORKERS);
        match strike {
            Strike::KillWorker => self.workers[worker].kill()?,
            Strike::KillGateway => {
                let gateway = self.dice.place(GATEWAYS);
                self.gateways[gateway].program.kill()?;
            }
            Strike::StopWorker => {
                self.workers[worker].signal(Signal::SIGSTOP)?;
                sleep(Duration::from_secs(6)).await;
                self.workers[worker].signal(Signal::SIGCONT)?;
            }
            Strike::EndWorker => self.workers[worker].signal(Signal::SIGTERM)?,
            Strike::EndSessions => self.scene.end_sessions().await.map(drop)?,
            Strike::Reset => self.proxy.reset(),
            Strike::Delay => self.for_a_while(Mode::Delay(Duration::from_millis(40)), 2).await,
            Strike::Silence => self.for_a_while(Mode::BlackHole, 4).await,
            Strike::LoseAnswers => self.scene.effects.lose_answers(5),
            Strike::Fail => self.scene.effects.fail(5, 503),
        }
        Ok(())
    }

    async fn for_a_while(&self, mode: Mode, seconds: u64) {
        self.proxy.set(mode);
        sleep(Duration::from_secs(seconds)).await;
        self.proxy.set(Mode::Pass);
    }

    /// As a supervisor does.
    fn revive(&mut self) -> anyhow::Result<()> {
        for program in &mut self.workers {
            if program.ended()?.is_some() {
                *program = worker(self.scene, &self.proxy)?;
            }
        }
        for gateway in &mut self.gateways {
            if gateway.program.ended()?.is_some() {
                gateway.restart(self.scene)?;
            }
        }
        Ok(())
    }

    async fn until_drained(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + HEALED_WITHIN;
        loop {
            self.revive()?;
            let left = self.scene.open().await?;
            if left == 0 {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "not healed within {HEALED_WITHIN:?}: {left} commands are open"
            );
            sleep(Duration::from_millis(200)).await;
        }
    }
}

fn worker(scene: &Scene, proxy: &Proxy) -> anyhow::Result<Program> {
    let url = Some(scene.url_through(proxy, "spillway_worker")?);
    scene.worker(&Worker { concurrency: 12, url, ..Worker::default() })
}

/// Ten jobs, again and again.
async fn jobs(scene: &Scene, until: Instant) -> anyhow::Result<()> {
    let mut dice = scene.dice("jobs");
    while Instant::now() < until {
        let commands: Vec<NewCommand> = (0..10).map(|_| command(&job(scene, &mut dice))).collect();
        scene.submit_at_last(&commands).await?;
        sleep(Duration::from_millis(400)).await;
    }
    Ok(())
}

fn job(scene: &Scene, dice: &mut Dice) -> Probe {
    let ms = u64::try_from(dice.below(400)).unwrap_or(0);
    let act = match dice.below(12) {
        0 => Act::FailTimes(1),
        1 => Act::NotYetMs(500 + ms),
        2 => Act::Reject,
        3..=7 => Act::SleepMs(ms),
        _ => Act::Plain,
    };
    Probe { group: format!("group-{}", dice.below(GROUPS)), ..scene.job(act) }
}

/// Five events at once, again and again, some of them for the second time.
async fn events(scene: &Scene, gateways: &[String], accounts: &[Uuid], until: Instant) -> anyhow::Result<()> {
    let mut dice = scene.dice("events");
    let mut sent: Vec<Event> = Vec::new();
    while Instant::now() < until {
        let mut burst = Vec::new();
        for _ in 0..5 {
            let event = match sent.len() {
                0 => None,
                n if dice.one_in(3) => Some(sent[dice.place(n)].clone()),
                _ => None,
            };
            let event = event.unwrap_or_else(|| Event::new(dice.uuid().to_string(), *dice.pick(accounts)));
            sent.push(event.clone());
            burst.push((dice.pick(gateways).clone(), event));
        }
        let delivered =
            burst.iter().map(|(gateway, event)| scene.deliver_at_last(gateway, event)).collect::<Vec<_>>();
        for result in futures_util::future::join_all(delivered).await {
            result?;
        }
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}
