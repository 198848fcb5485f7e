//! CPU-bound work: nothing else stands still for it, and what can't be ended is left behind until the process starts
//! anew.

use std::thread::available_parallelism;

use super::*;

impl Bench {
    fn abandoned(&self) -> i64 {
        self.metrics.abandoned_threads.with_label_values(&[QUEUE]).get()
    }

    async fn computes(&self, threads: usize) {
        eventually(&format!("{threads} threads compute"), BUDGET, async || {
            (self.counts.computing.load(Ordering::SeqCst) as usize == threads).then_some(())
        })
        .await;
    }

    async fn failure(&self, command: Uuid) -> Option<String> {
        self.becomes(command, "retrying").await;
        store::command::get(&self.pool, command).await.unwrap().unwrap().failure_code
    }
}

fn cores() -> usize {
    available_parallelism().unwrap().get()
}

#[tokio::test]
async fn computing_on_every_core_starves_neither_heartbeats_nor_other_runs() {
    let bench = Bench::new().await;
    let mut computing = Vec::new();
    for _ in 0..cores() {
        computing.push(bench.send(Act::Deaf).await);
    }
    let runner = bench.run(|options| {
        options.concurrency = u32::try_from(cores()).unwrap() + 1;
        options.lease = Duration::from_secs(2);
    });
    bench.computes(cores()).await;
    let other = bench.send(Act::Succeed).await;
    bench.becomes(other, "succeeded").await;
    let first_to_end = format!("select min(extract(epoch from vt))::bigint from pgmq.q_{QUEUE}");
    let until = bench.database.number(&first_to_end).await;
    eventually("each lease is renewed twice over", BUDGET, async || {
        (bench.database.number(&first_to_end).await >= until + 4).then_some(())
    })
    .await;
    bench.let_go.store(true, Ordering::SeqCst);
    for command in computing {
        bench.becomes(command, "succeeded").await;
    }
    ended(runner).await;

    assert_eq!(bench.counts.computing.load(Ordering::SeqCst) as usize, cores(), "each ran once");
    assert_eq!(bench.abandoned(), 0);
}

#[tokio::test]
async fn what_computes_past_its_deadline_is_abandoned_and_counted_until_it_ends_without_effect() {
    let bench = Bench::new().await;
    let deaf = bench.send(Act::Deaf).await;
    let runner = bench.run(|options| options.run_deadline = Duration::from_millis(300));

    assert_eq!(bench.failure(deaf).await.as_deref(), Some("deadline"));
    assert_eq!(bench.abandoned(), 1);
    let other = bench.send(Act::Succeed).await;
    bench.becomes(other, "succeeded").await;
    assert_eq!((bench.abandoned(), bench.counts.computed.load(Ordering::SeqCst)), (1, 0));
    bench.let_go.store(true, Ordering::SeqCst);
    eventually("the thread ends by itself", BUDGET, async || (bench.abandoned() == 0).then_some(())).await;
    ended(runner).await;

    assert_eq!(bench.counts.computed.load(Ordering::SeqCst), 1);
    assert_eq!((bench.runs("retried"), bench.runs("succeeded")), (1, 1));
    assert_eq!(bench.status(deaf).await, "retrying");
}

#[tokio::test]
async fn what_stops_when_it_is_asked_has_ended_before_its_run_and_is_not_abandoned() {
    let bench = Bench::new().await;
    let heedful = bench.send(Act::Heedful).await;
    let runner = bench.run(|options| options.run_deadline = Duration::from_millis(300));

    assert_eq!(bench.failure(heedful).await.as_deref(), Some("deadline"));
    assert_eq!((bench.counts.computed.load(Ordering::SeqCst), bench.abandoned()), (1, 0));
    ended(runner).await;
}

#[tokio::test]
async fn a_panic_in_a_computation_is_one_of_the_handler() {
    let bench = Bench::new().await;
    let (bad, good) = (bench.send(Act::Crumble).await, bench.send(Act::Succeed).await);
    let runner = bench.run(|_| ());

    assert_eq!(bench.failure(bad).await.as_deref(), Some("panic"));
    bench.becomes(good, "succeeded").await;
    assert_eq!(bench.abandoned(), 0);
    ended(runner).await;
}

#[tokio::test]
async fn what_computes_beyond_the_grace_of_a_stop_is_handed_back_untouched() {
    let bench = Bench::new().await;
    let deaf = bench.send(Act::Deaf).await;
    let runner = bench.run(|options| options.grace = Duration::from_millis(200));
    bench.computes(1).await;
    ended(runner).await;

    let ledger = store::command::get(&bench.pool, deaf).await.unwrap().unwrap();
    assert_eq!((ledger.status.as_str(), ledger.attempts), ("queued", 0));
    assert_eq!(bench.abandoned(), 1);
}

#[tokio::test]
async fn too_many_abandoned_threads_end_the_runner_in_order() {
    let bench = Bench::new().await;
    let too_many = (1..100).find(|abandoned| policy::recycle::is_due(*abandoned, cores())).unwrap();
    let innocent = bench.send(Act::Meet).await;
    for _ in 0..too_many {
        bench.send(Act::Deaf).await;
    }
    let runner = bench.runner(|options| {
        options.concurrency = u32::try_from(too_many).unwrap() + 2;
        options.lease = Duration::from_secs(2);
    });
    let task = tokio::spawn(runner.run_until(CancellationToken::new()));
    bench.meet.wait().await;
    bench.computes(too_many).await;
    let steal = format!(
        "update pgmq.q_{QUEUE} set read_ct = read_ct + 1, vt = now() + interval '1 h'
         where spillway.command_of(message) <> '{innocent}'"
    );
    bench.database.execute(&steal).await;
    eventually("it is not ready any more", BUDGET, async || {
        bench.health.unready().iter().any(|(name, _)| *name == "threads").then_some(())
    })
    .await;
    let late = bench.send(Act::Succeed).await;
    bench.go_on.notify_one();
    let outcome = tokio::time::timeout(BUDGET, task).await.expect("it ends by itself").unwrap();

    assert!(
        matches!(outcome, Err(queue::Error::WornOut { abandoned, .. }) if abandoned == too_many),
        "{outcome:?}"
    );
    assert_eq!(bench.abandoned(), i64::try_from(too_many).unwrap());
    assert_eq!(bench.runs("lost"), u64::try_from(too_many).unwrap());
    assert_eq!(bench.status(innocent).await, "succeeded");
    assert_eq!(bench.status(late).await, "queued");
}
