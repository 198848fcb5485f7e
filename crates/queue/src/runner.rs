//! The claim loop of one process for one queue.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use probes::{Health, Pulse};
use store::Pool;
use store::queue::{Claimed, Claims, claim, hand_back};
use telemetry::Metrics;
use telemetry::log::chain;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use uuid::Uuid;

use crate::Error;
use crate::compute::Abandoned;
use crate::dispatch::Dispatcher;
use crate::handler::Handler;
use crate::heart::Heart;
use crate::options::Options;
use crate::run::{Means, Run};
use crate::search::Search;
use crate::settle::Outcome;
use crate::suspects::{Suspects, part};
use crate::ticker::Ticker;
use crate::wake;

/// The pause after a failed claim grows up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// While more is waiting than was claimed, a claim waits so long for its share of the slots: one that takes a few
/// messages costs nearly as much as one that takes hundreds.
const GATHER: Duration = Duration::from_millis(2);

/// How often the gate is compared with the queue.
const SWEEP: Duration = Duration::from_secs(30);

/// Works on one queue until it is told to stop.
pub struct Runner<H> {
    machine: Arc<Machine<H>>,
    beats: store::Options,
    health: Health,
}

/// What claims and starts runs.
pub(crate) struct Machine<H> {
    pub(crate) means: Means,
    handler: Arc<H>,
    heart: OnceLock<Heart>,
    pub(crate) slots: Arc<Semaphore>,
    /// Runs that a dispatch started; the claim loop has its own.
    pub(crate) dispatched: TaskTracker,
}

impl<H: Handler> Runner<H> {
    /// A runner. `beats` says where the database is, for the connections of heartbeat and listener. Needs a runtime.
    pub fn new(
        options: Options,
        pool: Pool,
        beats: store::Options,
        handler: H,
        metrics: Arc<Metrics>,
        health: Health,
    ) -> Self {
        // A host's name comes back after a restart; an incarnation's id does not.
        let worker = format!("{}-{}", options.workload.spec().worker, Uuid::now_v7().simple()).into();
        let slots = Arc::new(Semaphore::new(options.concurrency as usize));
        let room = 2 * options.concurrency as usize;
        let ticker = Ticker::start(pool.clone(), options.queue().name, room);
        let abandoned = Abandoned::new(metrics.clone(), options.queue().name);
        let give_up = CancellationToken::new();
        let means = Means { options, pool, metrics, worker, ticker, abandoned, give_up };
        let machine = Machine {
            means,
            handler: Arc::new(handler),
            heart: OnceLock::new(),
            slots,
            dispatched: TaskTracker::new(),
        };
        Self { machine: Arc::new(machine), beats, health }
    }

    /// Runs single dispatches, beside the claim loop.
    pub fn dispatcher(&self) -> Dispatcher<H> {
        Dispatcher::new(self.machine.clone())
    }

    /// What this incarnation of the worker is called, in the ledger and in the list of processes.
    pub fn name(&self) -> &str {
        &self.machine.means.worker
    }

    /// Claims and runs until `stop`, or until too many threads compute for runs that have ended; then lets running work
    /// finish within the grace and hands the rest back.
    pub async fn run_until(self, stop: CancellationToken) -> Result<(), Error> {
        let machine = &self.machine;
        let means = &machine.means;
        let (queue, metrics) = (means.options.queue(), &means.metrics);
        let heart = Heart::start(&self.beats, queue, metrics.clone(), &self.health)?;
        let _ = machine.heart.set(heart);
        metrics.concurrency.with_label_values(&[queue.name]).set(means.options.concurrency.into());
        tracing::info!(
            queue = queue.name,
            worker = &*means.worker,
            concurrency = means.options.concurrency,
            "working"
        );
        let stop = stop.child_token();
        let recycling = tokio::spawn(recycle(means.clone(), self.health.clone(), stop.clone()));
        let call = Arc::new(Notify::new());
        let listener = tokio::spawn(wake::listen(
            self.beats.clone(),
            queue,
            call.clone(),
            metrics.clone(),
            stop.clone(),
        ));
        let sweeper = tokio::spawn(sweep(means.clone(), stop.clone()));
        let mut runs = JoinSet::new();
        self.claim_until(&stop, &call, &mut runs).await;

        tracing::info!(queue = queue.name, running = runs.len(), "no more claims; finishing what runs");
        machine.dispatched.close();
        let finished = async {
            while runs.join_next().await.is_some() {}
            machine.dispatched.wait().await;
        };
        if tokio::time::timeout(means.options.grace, finished).await.is_err() {
            tracing::warn!(
                queue = queue.name,
                running = runs.len(),
                "handing back what did not finish in time"
            );
            means.give_up.cancel();
            while runs.join_next().await.is_some() {}
            machine.dispatched.wait().await;
        }
        let _ = tokio::join!(listener, sweeper);
        let recycled = recycling.await.ok().flatten();
        let machine = self.machine;
        let _ = tokio::task::spawn_blocking(move || machine.heart.get().map(Heart::stop)).await;
        recycled.map_or(Ok(()), |abandoned| Err(Error::WornOut { queue: queue.name, abandoned }))
    }

    async fn claim_until(&self, stop: &CancellationToken, call: &Notify, runs: &mut JoinSet<Outcome>) {
        let machine = &self.machine;
        let Options { poll, .. } = machine.means.options;
        let pulse = self.health.pulse("claims", Duration::from_mins(1).max(4 * poll));
        let (mut search, mut suspects) = (Search::default(), Suspects::default());
        let (mut pause, mut is_full, mut ahead) = (Pause::None, false, None);
        // Messages wait for keys that runs of this process may hold.
        let mut has_line = false;
        loop {
            let Claiming { sent, slots, claims } = if let Some(claiming) = ahead.take() {
                claiming
            } else {
                let over = pause.over(call, has_line.then_some(&mut *runs));
                if stop.run_until_cancelled(over).await.is_none() {
                    break;
                }
                let free = free(machine, if is_full { machine.share() } else { 1 }, &pulse);
                let Some(slots) = stop.run_until_cancelled(free).await else { break };
                machine.claim(slots, &mut search)
            };
            while runs.try_join_next().is_some() {}
            let limit = slots.len();
            let claims = claims.await.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic()));
            pause = match claims {
                Ok(claims) if stop.is_cancelled() => {
                    for message in &claims.messages {
                        machine.hand_back(message, Duration::ZERO).await;
                    }
                    break;
                }
                Ok(claims) => {
                    search.note(&claims, Instant::now());
                    is_full = claims.messages.len() == limit;
                    has_line =
                        claims.parked > 0 || has_line && !(claims.messages.is_empty() && runs.is_empty());
                    let next = Pause::after(&claims, poll);
                    let is_all = claims.messages.len() < limit && claims.parked == 0;
                    let (others, kept) =
                        part(machine.means.options.workload, claims.messages.into_iter().zip(slots));
                    // The database looks for the next ones while these begin; but nothing is taken beside a suspect.
                    if is_full && kept.is_empty() {
                        ahead = machine.free_share().map(|slots| machine.claim(slots, &mut search));
                    }
                    for (message, slot) in others {
                        runs.spawn(machine.start(message, slot, sent));
                    }
                    suspects.attend(machine, kept, is_all, sent, stop, runs).await;
                    if next.is_idle() && machine.recalls().await { Pause::None } else { next }
                }
                Err(error) => {
                    machine.count_error("claim");
                    tracing::warn!(error = chain(&error), "claiming failed; trying again");
                    pause.longer()
                }
            };
            pulse.beat();
        }
        pulse.end();
    }
}

/// A claim under way.
struct Claiming {
    sent: Instant,
    /// As many as messages may come.
    slots: Vec<OwnedSemaphorePermit>,
    claims: AbortOnDropHandle<Result<Claims, store::Error>>,
}

impl<H: Handler> Machine<H> {
    /// What one claim takes at most, so that the next one can be under way while its messages begin.
    fn share(&self) -> u32 {
        self.means.options.concurrency.div_ceil(2)
    }

    /// As many free slots as a claim may fill, where there are so many.
    fn free_share(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        self.slots.clone().try_acquire_many_owned(self.share()).ok().map(apart)
    }

    /// Claims in a task of its own.
    fn claim(&self, slots: Vec<OwnedSemaphorePermit>, search: &mut Search) -> Claiming {
        let sent = Instant::now();
        let ask = search.next(u32::try_from(slots.len()).unwrap_or(u32::MAX), sent);
        let (pool, queue) = (self.means.pool.clone(), self.means.options.queue());
        let claims = AbortOnDropHandle::new(tokio::spawn(async move {
            let claims = claim(&pool, &queue, &ask).await?;
            if !claims.messages.is_empty() {
                faults::point!("wk.after_claim");
            }
            Ok(claims)
        }));
        Claiming { sent, slots, claims }
    }

    /// One run, from its start to its settlement, holding its slot and its heartbeat. The heartbeat begins at once.
    pub(crate) fn start(
        &self,
        claimed: Claimed,
        slot: OwnedSemaphorePermit,
        sent: Instant,
    ) -> impl Future<Output = Outcome> + Send + use<H> {
        let run = Run::new(&self.means, &claimed, sent, slot);
        let beating = self.heart.get().map(|heart| heart.beat_for(&run.lease, claimed.claimed_at));
        let handler = self.handler.clone();
        let (metrics, queue) = (self.means.metrics.clone(), self.means.options.queue().name);
        async move {
            metrics.claimed.with_label_values(&[queue]).inc();
            let waited = (claimed.claimed_at - claimed.due_at).to_std().unwrap_or_default();
            metrics.start_seconds.with_label_values(&[queue]).observe(waited.as_secs_f64());
            metrics.in_flight.with_label_values(&[queue]).inc();
            let started = Instant::now();
            let outcome = run.finish(handler, claimed).await;
            metrics.run_seconds.with_label_values(&[queue, outcome]).observe(started.elapsed().as_secs_f64());
            metrics.runs.with_label_values(&[queue, outcome]).inc();
            metrics.in_flight.with_label_values(&[queue]).dec();
            drop(beating);
            outcome
        }
    }

    /// Gives a claimed message back that was not started: somebody else shall run it, or this process later.
    pub(crate) async fn hand_back(&self, message: &Claimed, pause: Duration) {
        let command = message.command.as_ref().map(|command| command.id);
        if let Err(error) = hand_back(&self.means.pool, message.fence, command, pause).await {
            self.count_error("hand_back");
            tracing::warn!(error = chain(&error), "handing a message back; it comes back by itself");
        }
    }

    /// Calls messages that missed their call; true where there may be some to claim now.
    async fn recalls(&self) -> bool {
        store::limit::recall(&self.means.pool).await.unwrap_or_else(|error| {
            self.count_error("recall");
            tracing::warn!(error = chain(&error), "calling who waits again; the sweep will");
            0
        }) > 0
    }

    /// True while leases are renewed and runs may start.
    pub(crate) fn is_working(&self) -> bool {
        self.heart.get().is_some_and(Heart::is_beating) && !self.dispatched.is_closed()
    }

    pub(crate) fn count_error(&self, operation: &str) {
        self.means.metrics.loop_errors.with_label_values(&[self.means.options.queue().name, operation]).inc();
    }
}

/// When to claim again.
enum Pause {
    /// At once: there may be more.
    None,
    /// After this time, or when somebody calls.
    Idle(Duration),
    /// After this time, whoever calls: the database is in trouble.
    Trouble(Duration),
}

impl Pause {
    fn after(claims: &Claims, poll: Duration) -> Self {
        if claims.messages.is_empty() && claims.parked == 0 {
            let poll = jittered(poll);
            Self::Idle(claims.next_due.map_or(poll, |due| poll.min(due + Duration::from_millis(1))))
        } else {
            Self::None
        }
    }

    const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }

    fn longer(&self) -> Self {
        let last = if let Self::Trouble(pause) = self { *pause } else { Duration::ZERO };
        Self::Trouble(jittered((last * 2).clamp(Duration::from_millis(250), LONGEST_PAUSE)))
    }

    /// The end of a run counts as a call where `line` names the runs: it may have given a key to somebody who waits.
    async fn over(&self, call: &Notify, line: Option<&mut JoinSet<Outcome>>) {
        match self {
            Self::None => {}
            Self::Idle(pause) => {
                let ended = async {
                    match line {
                        Some(runs) if !runs.is_empty() => drop(runs.join_next().await),
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = call.notified() => {}
                    () = ended => {}
                    () = tokio::time::sleep(*pause) => {}
                }
            }
            Self::Trouble(pause) => tokio::time::sleep(*pause).await,
        }
    }
}

/// Stops the runner once there are too many abandoned threads, and says how many.
async fn recycle(means: Means, health: Health, stop: CancellationToken) -> Option<usize> {
    let abandoned = stop.run_until_cancelled(means.abandoned.too_many()).await?;
    let queue = means.options.queue().name;
    tracing::error!(queue, abandoned, "too many threads compute for runs that have ended; starting anew");
    stop.cancel();
    health.check("threads").failing(format!("{abandoned} compute for runs that have ended"));
    Some(abandoned)
}

/// Compares the gate with the queue now and then; it is expected to find nothing.
async fn sweep(means: Means, stop: CancellationToken) {
    let queue = means.options.queue().name;
    while stop.run_until_cancelled(tokio::time::sleep(jittered(SWEEP))).await.is_some() {
        match store::limit::sweep(&means.pool, queue).await {
            Ok(0) => {}
            Ok(mended) => {
                means.metrics.limits_mended.with_label_values(&[queue]).inc_by(mended);
                tracing::warn!(queue, mended, "limits did not fit the queue and were mended");
            }
            Err(error) => {
                means.metrics.loop_errors.with_label_values(&[queue, "sweep"]).inc();
                tracing::warn!(queue, error = chain(&error), "sweeping limits failed; trying again later");
            }
        }
    }
}

/// Free slots: so many unless that takes long, else one and all others that are free. A worker whose slots are all busy
/// is alive.
async fn free<H: Handler>(machine: &Machine<H>, wanted: u32, pulse: &Pulse) -> Vec<OwnedSemaphorePermit> {
    let slots = &machine.slots;
    let gathered = tokio::time::timeout(GATHER, slots.clone().acquire_many_owned(wanted)).await;
    let some = if let Ok(slots) = gathered {
        slots
    } else {
        loop {
            let acquired = tokio::time::timeout(Duration::from_secs(5), slots.clone().acquire_owned()).await;
            pulse.beat();
            if let Ok(slot) = acquired {
                break slot;
            }
        }
    };
    let mut free = apart(some.expect("the semaphore is never closed"));
    while free.len() < machine.share() as usize
        && let Ok(slot) = slots.clone().try_acquire_owned()
    {
        free.push(slot);
    }
    free
}

/// One by one.
fn apart(mut slots: OwnedSemaphorePermit) -> Vec<OwnedSemaphorePermit> {
    let mut apart = Vec::with_capacity(slots.num_permits());
    while let Some(slot) = slots.split(1) {
        apart.push(slot);
    }
    apart
}

/// Half to one and a half times `pause`, so that workers don't ask in step.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + rand::random::<f64>())
}
