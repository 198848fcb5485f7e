//! A scheduler asks a worker to look for work now.

use contract::snaptrade::{AccountSync, WorkType};
use contract::{Actor, NewCommand, Origin};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use store::intake::{Item, take_in};
use testkit::database::Watcher;
use testkit::eventually;
use uuid::Uuid;

use crate::platform::{BUDGET, Platform, SERVICE_TOKEN, object, with};
use crate::program::{Program, free_address};

const KIND: &str = "snaptrade-account-sync";

/// A claim loop that has found nothing stays where it then goes, for as long as this session has the lock.
const CLAIM_LOOP_STAYS: &str = "
    create or replace function spillway.limit_recall() returns bigint language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(1);
      return 0;
    end $$;
    select pg_advisory_lock(1)";

/// A platform whose worker takes work by dispatches alone.
struct Dispatched {
    platform: Platform,
    url: String,
    _worker: Program,
    _claim_loop_stays: Watcher,
}

impl Dispatched {
    async fn start(accounts: usize) -> Self {
        let platform = Platform::with(0, accounts).await;
        let mut claim_loop_stays = platform.database.watcher().await;
        claim_loop_stays.execute(CLAIM_LOOP_STAYS).await;
        let listen = free_address();
        let own = [
            ("SANMOPIA_WORKER_LISTEN", listen.clone()),
            ("SANMOPIA_WORKER_SNAPTRADE_SYNC_CONCURRENCY", "2".to_owned()),
            // Longer than the test: what stays is not to be abandoned.
            ("SANMOPIA_DATABASE_DEADLINE_MS", "120000".to_owned()),
        ];
        let settings = with(platform.settings(), own);
        let worker = Program::start("webhook-worker", &["--queue", KIND], &settings);
        let url = format!("http://{listen}");
        let dispatched = Self { platform, url, _worker: worker, _claim_loop_stays: claim_loop_stays };
        dispatched.waits_for("advisory").await;
        dispatched
    }

    fn request(&self, kind: &str) -> RequestBuilder {
        self.platform.http.post(format!("{}/internal/queue-workloads/{kind}/dispatches", self.url))
    }

    async fn dispatch(&self) -> (StatusCode, Value) {
        answer(self.request(KIND).bearer_auth(SERVICE_TOKEN)).await
    }

    async fn put_in(&self, account_id: Uuid) {
        let job = AccountSync { work_type: WorkType::Holdings, account_id };
        let id = Uuid::now_v7();
        let origin = Origin {
            idempotency_key: id.to_string(),
            actor: Actor::provider("snaptrade"),
            traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
            tracestate: String::new(),
            correlation_id: id.to_string(),
        };
        let item = Item::Command(Box::new(NewCommand::new(id, &job, origin)));
        let gateway = self.platform.database.pool_as("spillway_gateway", 1);
        take_in(&gateway, &[], |_| vec![item]).await.unwrap();
    }

    /// Returns once the worker waits for a lock of this kind.
    async fn waits_for(&self, kind: &str) {
        let waiting =
            format!("pg_stat_activity where datname = current_database() and wait_event = '{kind}'");
        eventually(&format!("the worker waits for a lock: {kind}"), BUDGET, async || {
            (self.platform.count(&waiting).await > 0).then_some(())
        })
        .await;
    }
}

async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap_or_else(|error| panic!("no answer: {error}"));
    (response.status(), object(response).await)
}

/// What an answer says, without the time that it took.
fn counts(answer: &Value) -> Value {
    let mut counts = answer.clone();
    assert!(counts["ms"].take().is_u64(), "{answer}");
    counts
}

fn counted(claimed: u32, succeeded: u32, dead_lettered: u32, remaining: u32) -> Value {
    json!({
        "workload": KIND, "claimed": claimed, "succeeded": succeeded, "retried": 0, "not_yet": 0,
        "dead_lettered": dead_lettered, "remaining": remaining, "ms": null,
    })
}

#[tokio::test]
async fn a_dispatch_runs_as_much_as_the_worker_has_room_for_and_says_what_became_of_it() {
    let dispatched = Dispatched::start(2).await;
    let accounts = dispatched.platform.accounts.clone();
    for account in [accounts[0], accounts[1], Uuid::new_v4()] {
        dispatched.put_in(account).await;
    }

    let (status, first) = dispatched.dispatch().await;
    assert_eq!((status, counts(&first)), (StatusCode::OK, counted(2, 2, 0, 1)));
    let (status, second) = dispatched.dispatch().await;
    assert_eq!((status, counts(&second)), (StatusCode::OK, counted(1, 0, 1, 0)), "nobody knows that account");
    assert_eq!(counts(&dispatched.dispatch().await.1), counted(0, 0, 0, 0));
    let ended = "spillway.command where status in ('succeeded', 'dead_lettered') and attempts = 1";
    assert_eq!(dispatched.platform.count(ended).await, 3);
}

#[tokio::test]
async fn a_dispatch_during_another_is_refused() {
    let dispatched = Dispatched::start(1).await;
    dispatched.put_in(dispatched.platform.accounts[0]).await;
    let run_waits = "begin; lock table spillway.account_sync in access exclusive mode";
    let mut run_waits_here = dispatched.platform.database.watcher().await;
    run_waits_here.execute(run_waits).await;
    let first = tokio::spawn(answer(dispatched.request(KIND).bearer_auth(SERVICE_TOKEN)));
    dispatched.waits_for("relation").await;

    let (status, problem) = dispatched.dispatch().await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("dispatch_under_way")));
    run_waits_here.execute("rollback").await;
    let (status, first) = first.await.unwrap();
    assert_eq!((status, counts(&first)), (StatusCode::OK, counted(1, 1, 0, 0)));
}

#[tokio::test]
async fn a_dispatch_without_a_token_or_of_another_worker_is_refused() {
    let dispatched = Dispatched::start(0).await;
    for request in [dispatched.request(KIND), dispatched.request(KIND).bearer_auth("another")] {
        let (status, problem) = answer(request).await;
        assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &json!("unauthenticated")));
    }
    for (kind, named) in [("document-rendering", "render-worker"), ("no-such-kind", "No workload")] {
        let request = dispatched.request(kind).bearer_auth(SERVICE_TOKEN);
        let (status, problem) = answer(request.header("x-correlation-id", "round-7")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
        assert!(problem["detail"].as_str().unwrap().contains(named), "{problem}");
        assert_eq!(problem["correlation_id"], "round-7");
    }
}
