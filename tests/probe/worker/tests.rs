use std::time::Duration;

use contract::{Actor, Job, NewCommand, Origin};
use lab::probe::Act;
use process::WorkerOptions;
use secrecy::SecretString;
use settings::Services;
use store::Pool;
use store::intake::{Item, take_in};
use testkit::{Database, Effects, eventually};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::*;

const BUDGET: Duration = Duration::from_secs(30);

/// A probe worker in this process, with a database and a provider.
struct Bench {
    database: Database,
    effects: Effects,
    producer: Pool,
}

impl Bench {
    async fn new() -> Self {
        let (database, effects) = (Database::fresh().await, Effects::start().await);
        Self { producer: database.pool_as("spillway_gateway", 1), database, effects }
    }

    async fn send(&self, key: &str, act: Act) -> Uuid {
        let id = Uuid::now_v7();
        let job = Probe { key: key.to_owned(), group: "g".to_owned(), url: self.effects.url(), act };
        let origin = Origin {
            idempotency_key: key.to_owned(),
            actor: Actor::provider("test"),
            traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
            tracestate: String::new(),
            correlation_id: key.to_owned(),
        };
        let command = NewCommand::new(id, &job, origin);
        take_in(&self.producer, &[], |_| vec![Item::Command(Box::new(command))]).await.unwrap();
        id
    }

    fn work(&self, times: Times) -> (JoinHandle<Result<(), process::Error>>, CancellationToken) {
        let mut queue = queue::Options { concurrency: 4, ..queue::Options::of(Probe::WORKLOAD) };
        let worker = Worker::new(times.set(&mut queue));
        let options = WorkerOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            store: store::Options::of_url(self.database.url_as("spillway_worker"), 4),
            queue,
            services: Services::new(SecretString::from("token"), Vec::new()),
        };
        let stop = CancellationToken::new();
        let token = stop.clone();
        let work = async move { process::work(&process::Options::brief(), options, |_| worker, token).await };
        (tokio::spawn(work), stop)
    }

    async fn becomes(&self, command: Uuid, status: &str) {
        let sql =
            format!("select count(*) from spillway.command where id = '{command}' and status = '{status}'");
        eventually(&format!("{command} becomes {status}"), BUDGET, async || {
            (self.database.number(&sql).await == 1).then_some(())
        })
        .await;
    }
}

async fn ended(worker: (JoinHandle<Result<(), process::Error>>, CancellationToken)) {
    worker.1.cancel();
    tokio::time::timeout(BUDGET, worker.0).await.expect("it stops").unwrap().unwrap();
}

#[tokio::test]
async fn a_probe_has_one_effect_and_names_its_lease() {
    let bench = Bench::new().await;
    let worker = bench.work(Times::default());
    let (plain, later) = (bench.send("plain", Act::Plain).await, bench.send("later", Act::NotYetMs(1)).await);
    let computed = bench.send("computed", Act::ComputeMs(1)).await;
    for command in [plain, later, computed] {
        bench.becomes(command, "succeeded").await;
    }
    ended(worker).await;

    let mut calls = bench.effects.calls();
    calls.sort_by(|a, b| a.key.cmp(&b.key));
    let told: Vec<_> = calls.iter().map(|call| (call.key.as_deref(), call.attempt)).collect();
    assert_eq!(told, [(Some("computed"), Some(1)), (Some("later"), Some(1)), (Some("plain"), Some(1))]);
    assert!(calls[2].fence.as_deref().is_some_and(|fence| fence.ends_with("/1")), "{calls:?}");
    let named = format!("select provider_request_ids[1] from spillway.command where id = '{plain}'");
    assert_eq!(bench.database.texts(&named).await, [calls[2].effect.unwrap().to_string()]);
}

#[tokio::test]
async fn acts_that_end_a_run_have_no_effect() {
    let bench = Bench::new().await;
    let worker = bench.work(Times::default());
    let (rejected, failed) =
        (bench.send("rejected", Act::Reject).await, bench.send("failed", Act::Fail).await);
    let panicked = bench.send("panicked", Act::Panic).await;
    bench.becomes(rejected, "dead_lettered").await;
    for command in [failed, panicked] {
        bench.becomes(command, "retrying").await;
    }
    ended(worker).await;

    assert!(bench.effects.calls().is_empty());
}

#[tokio::test]
async fn under_a_lease_of_two_seconds_a_longer_run_keeps_it_and_makes_its_call() {
    let bench = Bench::new().await;
    let worker = bench.work(Times { lease: Some(Duration::from_secs(2)), run_deadline: None });
    let command = bench.send("long", Act::SleepMs(2500)).await;
    bench.becomes(command, "succeeded").await;
    ended(worker).await;

    let fences: Vec<_> = bench.effects.calls().into_iter().filter_map(|call| call.fence).collect();
    assert!(matches!(&fences[..], [fence] if fence.ends_with("/1")), "{fences:?}");
}
