//! The runtime on a real queue: how runs end, what a stop does, and what a lost lease means.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod compute;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use contract::snaptrade::{AccountSync, WorkType};
use contract::{
    Actor, Blocked, Cause, DeadReason, Job, NewCommand, QueueSpec, RetryClass, Verdict, Workload,
};
use probes::Health;
use queue::{Dispatch, Handler, Lease, Options, Runner, Stop};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::intake::{Item, take_in};
use store::queue::Ask;
use store::{Effect, Pool};
use telemetry::Metrics;
use testkit::{Database, eventually};
use tokio::sync::{Barrier, Notify};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const WORKLOAD: Workload = Workload::SnaptradeAccountSync;
const QUEUE: &str = WORKLOAD.queue().name;
const BUDGET: Duration = Duration::from_secs(20);
const CALL_TIMEOUT: Duration = Duration::from_secs(40);

/// What the handler under test does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Act {
    Succeed,
    Fail,
    NotYet,
    CoolDown,
    /// Begins an outside call that never answers.
    Call,
    GiveUp,
    Panic,
    /// Meets the test at the barrier, then waits to be told to go on.
    Meet,
    /// Burns CPU on the runtime's own thread.
    Spin {
        ms: u64,
    },
    /// Never ends.
    Hang,
    /// Computes until the test lets it go, whatever it is asked.
    Deaf,
    /// Computes until it is asked to stop.
    Heedful,
    /// Panics while it computes.
    Crumble,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    act: Act,
}

impl Job for Work {
    const WORKLOAD: Workload = WORKLOAD;
    const KIND: &'static str = "test-work";
    const VERSION: u32 = 2;
}

#[derive(Default)]
struct Counts {
    started: AtomicU32,
    finished: AtomicU32,
    computing: AtomicU32,
    computed: AtomicU32,
}

struct Obedient {
    counts: Arc<Counts>,
    meet: Arc<Barrier>,
    go_on: Arc<Notify>,
    let_go: Arc<AtomicBool>,
}

impl Obedient {
    /// Computes until `is_over`.
    async fn compute(
        &self,
        lease: &Lease,
        is_over: impl Fn(&Stop) -> bool + Send + 'static,
    ) -> Verdict<Effect> {
        let counts = self.counts.clone();
        let computed = lease.compute(move |stop| {
            counts.computing.fetch_add(1, Ordering::SeqCst);
            while !is_over(stop) {
                std::hint::spin_loop();
            }
            counts.computed.fetch_add(1, Ordering::SeqCst);
        });
        computed.await.map_or_else(Verdict::Retry, |()| Verdict::Done(Effect::None))
    }
}

impl Handler for Obedient {
    type Job = Work;

    async fn handle(&self, job: &Work, lease: &Lease) -> Verdict<Effect> {
        self.counts.started.fetch_add(1, Ordering::SeqCst);
        let cause = || Cause::new(RetryClass::Transient, "test", "as told");
        let verdict = match job.act {
            Act::Succeed => Verdict::Done(Effect::None),
            Act::Fail => Verdict::Retry(cause()),
            Act::NotYet => Verdict::NotYet {
                why: Blocked::NotReady,
                after: Some(Duration::from_mins(1)),
                cause: cause(),
            },
            Act::CoolDown => Verdict::NotYet { why: Blocked::ProviderCooldown, after: None, cause: cause() },
            Act::Call => {
                let _under_way = lease.begin_call(CALL_TIMEOUT).expect("the lease is fresh");
                std::future::pending().await
            }
            Act::GiveUp => Verdict::Dead(DeadReason::ProviderRejected, cause()),
            Act::Panic => panic!("as told"),
            Act::Meet => {
                self.meet.wait().await;
                self.go_on.notified().await;
                assert!(lease.attempt() >= 1);
                Verdict::Done(Effect::None)
            }
            Act::Spin { ms } => {
                let until = std::time::Instant::now() + Duration::from_millis(ms);
                while std::time::Instant::now() < until {
                    std::hint::spin_loop();
                }
                Verdict::Done(Effect::None)
            }
            Act::Hang => std::future::pending().await,
            Act::Deaf => {
                let let_go = self.let_go.clone();
                self.compute(lease, move |_| let_go.load(Ordering::SeqCst)).await
            }
            Act::Heedful => self.compute(lease, Stop::is_requested).await,
            Act::Crumble => self.compute(lease, |_| panic!("as told")).await,
        };
        self.counts.finished.fetch_add(1, Ordering::SeqCst);
        verdict
    }
}

/// One queue with a runner on it.
struct Bench {
    database: Database,
    pool: Pool,
    producer: Pool,
    counts: Arc<Counts>,
    meet: Arc<Barrier>,
    go_on: Arc<Notify>,
    let_go: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    health: Health,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.let_go.store(true, Ordering::SeqCst);
    }
}

impl Bench {
    async fn new() -> Self {
        let database = Database::fresh().await;
        Self {
            pool: database.pool_as("spillway_worker", 8),
            producer: database.pool_as("spillway_gateway", 2),
            database,
            counts: Arc::default(),
            meet: Arc::new(Barrier::new(2)),
            go_on: Arc::default(),
            let_go: Arc::default(),
            metrics: Arc::new(Metrics::new("test", "0")),
            health: Health::new(),
        }
    }

    async fn send(&self, act: Act) -> Uuid {
        self.send_as(Work::KIND, Work::VERSION, json!({ "act": act })).await
    }

    async fn send_as(&self, kind: &'static str, version: u32, payload: serde_json::Value) -> Uuid {
        let command = self.command(kind, version, payload);
        let id = command.id;
        take_in(&self.producer, &[], |_| vec![Item::Command(Box::new(command))]).await.unwrap();
        id
    }

    #[expect(clippy::unused_self, reason = "reads as the pair of `send_as`")]
    fn command(&self, kind: &'static str, version: u32, payload: serde_json::Value) -> NewCommand {
        let id = Uuid::now_v7();
        NewCommand {
            id,
            workload: WORKLOAD,
            kind,
            version,
            idempotency_key: id.to_string(),
            payload,
            actor: Actor::provider("test"),
            class: WORKLOAD.spec().class,
            not_before: None,
            snapshots: Vec::new(),
            expected_revision: None,
            traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
            tracestate: String::new(),
            correlation_id: "c".to_owned(),
        }
    }

    fn run(&self, change: impl FnOnce(&mut Options)) -> (JoinHandle<()>, CancellationToken) {
        let (runner, stop) = (self.runner(change), CancellationToken::new());
        let token = stop.clone();
        (tokio::spawn(async move { runner.run_until(token).await.unwrap() }), stop)
    }

    fn runner(&self, change: impl FnOnce(&mut Options)) -> Runner<Obedient> {
        let mut options = Options::of(WORKLOAD);
        options.poll = Duration::from_millis(20);
        options.concurrency = 4;
        change(&mut options);
        let handler = Obedient {
            counts: self.counts.clone(),
            meet: self.meet.clone(),
            go_on: self.go_on.clone(),
            let_go: self.let_go.clone(),
        };
        let beats = store::Options::of_url(self.database.url_as("spillway_worker"), 1);
        Runner::new(options, self.pool.clone(), beats, handler, self.metrics.clone(), self.health.clone())
    }

    async fn status(&self, command: Uuid) -> String {
        store::command::get(&self.pool, command).await.unwrap().unwrap().status
    }

    async fn becomes(&self, command: Uuid, status: &str) {
        eventually(&format!("{command} becomes {status}"), BUDGET, async || {
            (self.status(command).await == status).then_some(())
        })
        .await;
    }

    async fn dead_reason(&self, command: Uuid) -> String {
        self.becomes(command, "dead_lettered").await;
        self.database
            .texts(&format!("select reason from spillway.dead_letter where command_id = '{command}'"))
            .await
            .remove(0)
    }

    /// Makes delayed messages due: those that no worker holds.
    async fn hurry(&self) {
        let held = "select 1 from spillway.command c where c.id = spillway.command_of(q.message)
            and c.status in ('retrying', 'blocked') and q.read_ct = 2 * c.outcomes";
        self.database.execute(&format!("update pgmq.q_{QUEUE} q set vt = now() where exists ({held})")).await;
    }

    /// As if so many claims of a command's message had ended without a word.
    async fn silence(&self, command: Uuid, claims: u32) {
        let claimed = format!(
            "update pgmq.q_{QUEUE} set read_ct = read_ct + {claims}, vt = least(vt, now())
             where spillway.command_of(message) = '{command}'"
        );
        self.database.execute(&claimed).await;
    }

    /// As a process leaves it that ran it alone and died, so many charges after the first.
    async fn died_alone(&self, command: Uuid, crashes: u32) {
        self.silence(command, 3).await;
        let mark = format!(
            "update spillway.command c set crashes = {crashes}, alone_read_ct = q.read_ct
             from pgmq.q_{QUEUE} q where c.id = '{command}' and spillway.command_of(q.message) = c.id"
        );
        self.database.execute(&mark).await;
    }

    async fn crashes(&self, command: Uuid) -> i64 {
        self.database
            .number(&format!("select crashes::bigint from spillway.command where id = '{command}'"))
            .await
    }

    fn runs(&self, outcome: &str) -> u64 {
        self.metrics.runs.with_label_values(&[QUEUE, outcome]).get()
    }
}

async fn ended(runner: (JoinHandle<()>, CancellationToken)) {
    runner.1.cancel();
    tokio::time::timeout(BUDGET, runner.0).await.expect("the runner stops").unwrap();
}

#[tokio::test]
async fn a_short_run_goes_from_queued_to_done_in_one_write() {
    let bench = Bench::new().await;
    bench
        .database
        .execute(
            "create table public.seen (status text);
             grant insert on public.seen to spillway_worker;
             create function public.note() returns trigger language plpgsql as
               $$ begin insert into public.seen values (new.status); return new; end $$;
             create trigger note after update on spillway.command for each row execute function public.note()",
        )
        .await;
    let command = bench.send(Act::Succeed).await;
    let runner = bench.run(|_| ());
    bench.becomes(command, "succeeded").await;
    ended(runner).await;

    assert_eq!(bench.database.texts("select status from public.seen").await, ["succeeded"]);
    assert_eq!(bench.counts.started.load(Ordering::SeqCst), 1);
    assert_eq!(bench.runs("succeeded"), 1);
}

#[tokio::test]
async fn a_failing_command_is_tried_as_often_as_its_workload_allows() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Fail).await;
    let runner = bench.run(|_| ());
    for attempt in 1..WORKLOAD.spec().max_attempts {
        eventually("the next attempt fails", BUDGET, async || {
            let ledger = store::command::get(&bench.pool, command).await.unwrap().unwrap();
            (ledger.attempts.unsigned_abs() >= attempt && ledger.status == "retrying").then_some(())
        })
        .await;
        bench.hurry().await;
    }

    assert_eq!(bench.dead_reason(command).await, "attempts_exhausted");
    ended(runner).await;
    assert_eq!(bench.counts.started.load(Ordering::SeqCst), WORKLOAD.spec().max_attempts);
    let failures = format!("select count(*) from spillway.attempt_failure where command_id = '{command}'");
    assert_eq!(bench.database.number(&failures).await, i64::from(WORKLOAD.spec().max_attempts));
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_the_worker_lives_on() {
    let bench = Bench::new().await;
    let (bad, good) = (bench.send(Act::Panic).await, bench.send(Act::Succeed).await);
    let runner = bench.run(|_| ());
    bench.becomes(good, "succeeded").await;
    bench.becomes(bad, "retrying").await;
    ended(runner).await;

    let failure = store::command::get(&bench.pool, bad).await.unwrap().unwrap();
    assert_eq!(failure.failure_code.as_deref(), Some("panic"));
}

#[tokio::test]
async fn not_yet_is_shown_as_blocked_and_burns_nothing() {
    let bench = Bench::new().await;
    let command = bench.send(Act::NotYet).await;
    let runner = bench.run(|_| ());
    bench.becomes(command, "blocked").await;
    ended(runner).await;

    let ledger = store::command::get(&bench.pool, command).await.unwrap().unwrap();
    assert_eq!((ledger.attempts, ledger.blocked_reason.as_deref()), (0, Some("not_ready")));
    assert!(ledger.blocked_until.is_some_and(|until| until > chrono::Utc::now()));
}

#[tokio::test]
async fn waiting_is_bounded_by_the_age_of_its_reason() {
    let bench = Bench::new().await;
    let (waiting, cooling) = (bench.send(Act::NotYet).await, bench.send(Act::CoolDown).await);
    let runner = bench.run(|_| ());
    bench.becomes(waiting, "blocked").await;
    bench.becomes(cooling, "blocked").await;
    bench.database.execute("update spillway.command set blocked_since = now() - interval '2 days'").await;
    bench.hurry().await;

    assert_eq!(bench.dead_reason(waiting).await, "waited_too_long");
    assert_eq!(bench.dead_reason(cooling).await, "provider_cooldown");
    ended(runner).await;
}

#[tokio::test]
async fn what_cannot_be_worked_on_is_dead_lettered_with_its_reason() {
    let bench = Bench::new().await;
    let refused = bench.send(Act::GiveUp).await;
    let strange = bench.send_as("somebody-elses-work", 1, json!({})).await;
    let broken = bench.send_as(Work::KIND, 1, json!({ "act": "dance" })).await;
    bench.database.execute(&format!("select pgmq.send('{QUEUE}', '{{\"command\": \"none\"}}')")).await;
    let runner = bench.run(|_| ());

    assert_eq!(bench.dead_reason(refused).await, "provider_rejected");
    assert_eq!(bench.dead_reason(strange).await, "unsupported_kind");
    assert_eq!(bench.dead_reason(broken).await, "payload_invalid");
    eventually("the message without a command is buried", BUDGET, async || {
        let sql = "select count(*) from spillway.dead_letter where reason = 'command_missing'";
        (bench.database.number(sql).await == 1).then_some(())
    })
    .await;
    ended(runner).await;
}

#[tokio::test]
async fn a_newer_message_is_left_for_a_newer_worker() {
    let bench = Bench::new().await;
    let newer = bench.send_as(Work::KIND, Work::VERSION + 1, json!({ "act": "succeed" })).await;
    let runner = bench.run(|_| ());
    bench.becomes(newer, "blocked").await;
    ended(runner).await;

    let ledger = store::command::get(&bench.pool, newer).await.unwrap().unwrap();
    assert_eq!((ledger.attempts, ledger.blocked_reason.as_deref()), (0, Some("newer_version")));
    assert_eq!(bench.counts.started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_older_payload_still_runs() {
    let bench = Bench::new().await;
    let older = bench.send_as(Work::KIND, 1, json!({ "act": "succeed" })).await;
    let runner = bench.run(|_| ());
    bench.becomes(older, "succeeded").await;
    ended(runner).await;
}

#[tokio::test]
async fn the_message_of_a_closed_command_is_archived_without_a_run() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Succeed).await;
    bench.database.execute("update spillway.command set status = 'cancelled', finished_at = now()").await;
    let runner = bench.run(|_| ());
    eventually("the queue is empty", BUDGET, async || {
        (bench.database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await == 0).then_some(())
    })
    .await;
    ended(runner).await;

    assert_eq!(bench.status(command).await, "cancelled");
    assert_eq!(bench.counts.started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn heartbeats_keep_a_run_that_outlives_its_lease_and_show_it_as_running() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Meet).await;
    let runner = bench.run(|options| options.lease = Duration::from_secs(2));
    bench.meet.wait().await;
    bench.becomes(command, "running").await;
    let first = format!("select extract(epoch from vt)::bigint from pgmq.q_{QUEUE}");
    let until = bench.database.number(&first).await;
    eventually("the lease is renewed twice over", BUDGET, async || {
        (bench.database.number(&first).await >= until + 4).then_some(())
    })
    .await;
    bench.go_on.notify_one();
    bench.becomes(command, "succeeded").await;
    ended(runner).await;

    assert_eq!(bench.counts.started.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_blocks_the_runtimes_only_thread_keeps_its_lease() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Spin { ms: 7000 }).await;
    let lease = Duration::from_secs(3);
    let runner = bench.runner(|options| options.lease = lease);
    let stop = CancellationToken::new();
    let token = stop.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(runner.run_until(token)).unwrap();
    });
    eventually("the run has started", BUDGET, async || {
        (bench.counts.started.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    // Another worker that would take it the moment its lease ended.
    let queue = QueueSpec { lease, ..*WORKLOAD.queue() };
    eventually("the run has ended", BUDGET, async || {
        let taken = store::queue::claim(&bench.pool, &queue, &Ask::up_to(1)).await.unwrap();
        assert!(taken.messages.is_empty(), "the lease ended while the run went on");
        (bench.status(command).await == "succeeded").then_some(())
    })
    .await;
    stop.cancel();
    tokio::task::spawn_blocking(|| thread.join().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_stolen_lease_ends_the_run_and_its_late_write_changes_nothing() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Meet).await;
    let runner = bench.run(|options| options.lease = Duration::from_secs(2));
    bench.meet.wait().await;
    bench
        .database
        .execute(&format!("update pgmq.q_{QUEUE} set read_ct = read_ct + 1, vt = now() + interval '1 h'"))
        .await;
    eventually("the run is given up", BUDGET, async || (bench.runs("lost") == 1).then_some(())).await;
    bench.go_on.notify_one();
    ended(runner).await;

    assert_eq!(bench.counts.finished.load(Ordering::SeqCst), 0, "the handler was dropped");
    assert_eq!(bench.metrics.stale_writes.with_label_values(&[QUEUE, "beat"]).get(), 1);
    assert_ne!(bench.status(command).await, "succeeded");
    assert_eq!(bench.database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn a_run_that_hangs_is_ended_by_its_deadline() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Hang).await;
    let runner = bench.run(|options| options.run_deadline = Duration::from_millis(300));
    bench.becomes(command, "retrying").await;
    ended(runner).await;

    let ledger = store::command::get(&bench.pool, command).await.unwrap().unwrap();
    assert_eq!((ledger.failure_code.as_deref(), ledger.attempts), (Some("deadline"), 1));
}

#[tokio::test]
async fn a_stop_lets_running_work_finish_and_claims_nothing_more() {
    let bench = Bench::new().await;
    let running = bench.send(Act::Meet).await;
    let (task, stop) = bench.run(|_| ());
    bench.meet.wait().await;
    stop.cancel();
    let waiting = bench.send(Act::Succeed).await;
    bench.go_on.notify_one();
    ended((task, stop)).await;

    assert_eq!(bench.status(running).await, "succeeded");
    assert_eq!(bench.status(waiting).await, "queued");
}

#[tokio::test]
async fn work_that_outlasts_the_grace_is_handed_back_untouched() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Hang).await;
    let runner = bench.run(|options| options.grace = Duration::from_millis(200));
    eventually("the run has started", BUDGET, async || {
        (bench.counts.started.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    ended(runner).await;

    let ledger = store::command::get(&bench.pool, command).await.unwrap().unwrap();
    assert_eq!((ledger.status.as_str(), ledger.attempts), ("queued", 0));
    let due = format!("select count(*) from pgmq.q_{QUEUE} where vt <= now()");
    assert_eq!(bench.database.number(&due).await, 1, "another worker can take it at once");
}

#[tokio::test]
async fn a_run_given_up_in_mid_call_comes_back_when_the_call_must_have_ended() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Call).await;
    let runner = bench.run(|options| options.grace = Duration::from_millis(200));
    eventually("the call is under way", BUDGET, async || {
        (bench.counts.started.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    ended(runner).await;

    assert_eq!(bench.status(command).await, "queued");
    let pause = format!("select extract(epoch from vt - now())::bigint from pgmq.q_{QUEUE}");
    let pause = bench.database.number(&pause).await;
    assert!((30..=40).contains(&pause), "{pause} s of a call that may take 40");
}

#[tokio::test]
async fn what_was_claimed_while_the_stop_came_is_handed_back_unstarted() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Succeed).await;
    let mut other = bench.database.connect().await;
    let lock = format!("begin; lock table pgmq.q_{QUEUE} in access exclusive mode");
    sqlx::raw_sql(&lock).execute(&mut other).await.unwrap();
    let (task, stop) = bench.run(|_| ());
    eventually("the claim waits for the table", BUDGET, async || {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like '%queue_claim%'";
        (bench.database.number(waiting).await == 1).then_some(())
    })
    .await;
    stop.cancel();
    sqlx::raw_sql("commit").execute(&mut other).await.unwrap();
    ended((task, stop)).await;

    assert_eq!(bench.counts.started.load(Ordering::SeqCst), 0);
    assert_eq!(bench.status(command).await, "queued");
    let back = format!("select count(*) from pgmq.q_{QUEUE} where vt <= now() and read_ct = 2");
    assert_eq!(bench.database.number(&back).await, 1, "claimed once, given back once");
}

#[tokio::test]
async fn an_effect_that_the_database_refuses_is_dead_lettered() {
    /// Stores holdings of an account that nobody loaded.
    struct Stranger;

    impl Handler for Stranger {
        type Job = AccountSync;

        async fn handle(&self, job: &AccountSync, _: &Lease) -> Verdict<Effect> {
            let balance =
                store::snaptrade::Balance { currency: "USD".to_owned(), cash: None, buying_power: None };
            let holdings = store::snaptrade::Holdings {
                account_id: job.account_id,
                as_of: None,
                positions: Vec::new(),
                balances: vec![balance],
                orders: Vec::new(),
            };
            Verdict::Done(Effect::SnaptradeHoldings { holdings: Box::new(holdings), through: 1 })
        }
    }

    let bench = Bench::new().await;
    let job = AccountSync { work_type: WorkType::Holdings, account_id: Uuid::now_v7() };
    let command = bench.send_as(AccountSync::KIND, AccountSync::VERSION, json!(job)).await;
    let (beats, stop) = (bench.database.options(1), CancellationToken::new());
    let options = Options::of(WORKLOAD);
    let runner =
        Runner::new(options, bench.pool.clone(), beats, Stranger, bench.metrics.clone(), Health::new());
    let token = stop.clone();
    let task = tokio::spawn(async move { runner.run_until(token).await.unwrap() });

    assert_eq!(bench.dead_reason(command).await, "effect_refused");
    ended((task, stop)).await;
}

#[tokio::test]
async fn a_batch_with_one_row_that_breaks_its_settlement_loses_only_that_one() {
    let bench = Bench::new().await;
    let mut commands = Vec::new();
    for _ in 0..1000 {
        commands.push(bench.command(Work::KIND, Work::VERSION, json!({ "act": Act::Succeed })));
    }
    let bad = commands[617].id;
    for part in commands.chunks(250) {
        let items: Vec<Item> = part.iter().map(|command| Item::Command(Box::new(command.clone()))).collect();
        take_in(&bench.producer, &[], |_| items).await.unwrap();
    }
    let refuse = format!("alter table spillway.command add check (status <> 'succeeded' or id <> '{bad}')");
    bench.database.execute(&refuse).await;
    let runner = bench.run(|options| options.concurrency = 200);

    assert_eq!(bench.dead_reason(bad).await, "effect_refused");
    eventually("the others succeed", BUDGET, async || {
        let succeeded = "select count(*) from spillway.command where status = 'succeeded'";
        (bench.database.number(succeeded).await == 999).then_some(())
    })
    .await;
    ended(runner).await;
}

#[tokio::test]
async fn a_call_starts_an_idle_worker_at_once() {
    let bench = Bench::new().await;
    let runner = bench.run(|options| options.poll = Duration::from_hours(1));
    eventually("the worker listens", BUDGET, async || {
        let listening = "select count(*) from pg_stat_activity
            where datname = current_database() and application_name = 'spillway listen'";
        (bench.database.number(listening).await == 1).then_some(())
    })
    .await;
    let command = bench.send(Act::Succeed).await;
    store::wake::Notifier::start(bench.producer.clone()).notify(QUEUE);

    bench.becomes(command, "succeeded").await;
    ended(runner).await;
}

#[tokio::test]
async fn a_line_for_a_key_moves_as_runs_end_and_waits_for_no_poll() {
    let bench = Bench::new().await;
    let one_at_a_time =
        "create or replace function spillway.limits_of(workload text, payload jsonb) returns jsonb
        language sql immutable parallel safe as $$ select '{\"the only key\": 1}'::jsonb $$";
    bench.database.execute(one_at_a_time).await;
    let mut line = Vec::new();
    for _ in 0..20 {
        line.push(bench.send(Act::Succeed).await);
    }
    let runner = bench.run(|options| options.poll = Duration::from_hours(1));

    for command in line {
        bench.becomes(command, "succeeded").await;
    }
    ended(runner).await;
}

#[tokio::test]
async fn an_idle_worker_is_there_when_a_delayed_message_is_due() {
    let bench = Bench::new().await;
    let mut later = bench.command(Work::KIND, Work::VERSION, json!({ "act": Act::Succeed }));
    later.not_before = Some(chrono::Utc::now() + chrono::Duration::seconds(1));
    let id = later.id;
    take_in(&bench.producer, &[], |_| vec![Item::Command(Box::new(later))]).await.unwrap();
    let runner = bench.run(|options| options.poll = Duration::from_hours(1));

    bench.becomes(id, "succeeded").await;
    ended(runner).await;
}

#[tokio::test]
async fn a_message_whose_claims_end_in_silence_runs_alone_and_is_charged_nothing_if_it_ends() {
    let bench = Bench::new().await;
    let (innocent, neighbour) = (bench.send(Act::Succeed).await, bench.send(Act::Meet).await);
    bench.silence(innocent, 2).await;
    let runner = bench.run(|_| ());
    bench.meet.wait().await;

    // It waits for its neighbour's end.
    assert_eq!(bench.metrics.runs_alone.with_label_values(&[QUEUE]).get(), 0);
    bench.go_on.notify_one();
    bench.becomes(innocent, "succeeded").await;
    assert_eq!(bench.metrics.runs_alone.with_label_values(&[QUEUE]).get(), 1);
    assert_eq!(bench.crashes(innocent).await, 0);
    bench.becomes(neighbour, "succeeded").await;
    ended(runner).await;
}

#[tokio::test]
async fn what_took_its_process_down_while_it_ran_alone_is_charged() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Succeed).await;
    bench.died_alone(command, 0).await;
    let runner = bench.run(|_| ());

    bench.becomes(command, "succeeded").await;
    assert_eq!(bench.crashes(command).await, 1);
    ended(runner).await;
}

#[tokio::test]
async fn what_takes_its_process_down_too_often_is_given_up_without_another_run() {
    let bench = Bench::new().await;
    let command = bench.send(Act::Succeed).await;
    let most = WORKLOAD.spec().max_crashes;
    bench.died_alone(command, most - 1).await;
    let runner = bench.run(|_| ());

    assert_eq!(bench.dead_reason(command).await, "worker_crashed");
    assert_eq!(bench.crashes(command).await, i64::from(most));
    assert_eq!(bench.counts.started.load(Ordering::SeqCst), 0);
    ended(runner).await;
}

#[tokio::test]
async fn one_process_of_a_queue_at_a_time_runs_a_suspect_alone() {
    let bench = Bench::new().await;
    let first = bench.send(Act::Meet).await;
    bench.silence(first, 2).await;
    let one = bench.run(|_| ());
    bench.meet.wait().await;
    let second = bench.send(Act::Succeed).await;
    bench.silence(second, 2).await;
    let other = bench.run(|_| ());
    eventually("the other process gives the second suspect back", BUDGET, async || {
        let back = format!("select count(*) from spillway.command where id = '{second}' and outcomes > 0");
        (bench.database.number(&back).await == 1).then_some(())
    })
    .await;

    assert_eq!(bench.status(second).await, "queued");
    bench.go_on.notify_one();
    bench.becomes(second, "succeeded").await;
    ended(one).await;
    ended(other).await;
}

/// A claim loop that has found nothing stays where it then goes, for as long as this session has the lock.
const CLAIM_LOOP_STAYS: &str = "
    create or replace function spillway.limit_recall() returns bigint language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(1);
      return 0;
    end $$;
    select pg_advisory_lock(1)";

#[tokio::test]
async fn a_dispatch_runs_what_is_due_and_says_what_became_of_it() {
    let bench = Bench::new().await;
    let runner = bench.runner(|options| options.poll = Duration::from_hours(1));
    let dispatcher = runner.dispatcher();
    assert!(matches!(dispatcher.dispatch().await, Err(queue::Busy::NotReady)));
    let mut claim_loop_stays = bench.database.watcher().await;
    claim_loop_stays.execute(CLAIM_LOOP_STAYS).await;
    let stop = CancellationToken::new();
    let token = stop.clone();
    let task = tokio::spawn(async move { runner.run_until(token).await.unwrap() });
    eventually("the claim loop has found nothing", BUDGET, async || {
        let waits = "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event = 'advisory'";
        (bench.database.number(waits).await > 0).then_some(())
    })
    .await;
    let answer = dispatcher.dispatch().await.unwrap();
    assert_eq!((answer.claimed, answer.remaining), (0, 0));
    for act in [Act::Succeed, Act::Fail, Act::NotYet, Act::GiveUp, Act::Succeed] {
        bench.send(act).await;
    }
    let first = dispatcher.dispatch().await.unwrap();

    assert_eq!((first.workload, first.claimed, first.remaining), (WORKLOAD.kind(), 4, 1));
    assert_eq!((first.succeeded, first.retried, first.not_yet, first.dead_lettered), (1, 1, 1, 1));
    bench.send(Act::Meet).await;
    let busy = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.dispatch().await.unwrap() }
    });
    bench.meet.wait().await;
    assert!(matches!(dispatcher.dispatch().await, Err(queue::Busy::UnderWay)));
    bench.go_on.notify_one();
    assert_eq!(busy.await.unwrap().succeeded, 2);
    drop(claim_loop_stays);
    ended((task, stop)).await;
}
