//! Coalescing: what is asked for an account, what waits, and what a run finds when it starts.

use chrono::{DateTime, Utc};
use contract::snaptrade::{AccountState, Whose, WorkType};
use contract::{Actor, Cause, DeadReason, Origin, RetryClass};
use store::account_sync::{Start, start};
use store::inbox::Outcome::{Coalesced, Duplicate, Queued};
use store::inbox::{Delivery, Fate, Receipt};
use store::ledger::{Dead, bury, drop_closed};
use store::queue::{Beat, Claimed, Fence, beat};
use store::snaptrade::{AccountsChange, Change};
use store::{Pool, command};
use testkit::Database;
use uuid::Uuid;

use crate::queue::{SPEC, WORKLOAD, expire_leases};
use crate::samples::{QUEUE, TRACEPARENT, accept, account, claim, delivery, enqueue, outcomes, sync};

struct Bench {
    database: Database,
    gateway: Pool,
    worker: Pool,
    account: Uuid,
}

impl Bench {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let account = account(&database).await;
        let (gateway, worker) =
            (database.pool_as("spillway_gateway", 4), database.pool_as("spillway_worker", 4));
        Self { database, gateway, worker, account }
    }

    async fn ask(&self, identity: &str) -> Receipt {
        accept(&self.gateway, &[sync(identity, self.account)]).await.unwrap().remove(0)
    }

    async fn claim(&self) -> Claimed {
        claim(&self.worker, SPEC, 1).await.unwrap().remove(0)
    }

    async fn start(&self, claimed: &Claimed) -> Start {
        let command = claimed.command.as_ref().unwrap().id;
        start(&self.worker, claimed.fence, command, WorkType::Holdings, self.account).await.unwrap()
    }

    /// Requested, done, and whether a command waits.
    async fn row(&self) -> String {
        let sql = "select concat_ws(' ', requested, ok_through, waiting_command is not null) from spillway.account_sync";
        self.database.texts(sql).await.remove(0)
    }

    async fn change(&self, whose: Whose, to: Change, at: DateTime<Utc>) -> Vec<Receipt> {
        let change = AccountsChange { whose, to, at, reason: "connection_broken".to_owned() };
        let event =
            Delivery { fate: Fate::Accounts(Box::new(change)), ..delivery(&Uuid::now_v7().to_string()) };
        accept(&self.gateway, &[event]).await.unwrap()
    }

    async fn state(&self) -> String {
        self.database.texts("select state from spillway.snaptrade_account").await.remove(0)
    }
}

fn origin() -> Origin {
    Origin {
        idempotency_key: "opened".to_owned(),
        actor: Actor::provider("snaptrade"),
        traceparent: TRACEPARENT.to_owned(),
        tracestate: String::new(),
        correlation_id: "correlation-1".to_owned(),
    }
}

#[tokio::test]
async fn a_second_event_is_part_of_the_sync_that_waits() {
    let bench = Bench::new().await;
    let (first, second) = (bench.ask("evt-1").await, bench.ask("evt-2").await);
    let again = bench.ask("evt-2").await;

    assert_eq!([first.outcome, second.outcome, again.outcome], [Queued, Coalesced, Duplicate]);
    assert_eq!((second.command_id, again.command_id), (first.command_id, first.command_id));
    assert_eq!(second.counted_under, first.inbox_id);
    assert_eq!(bench.row().await, "2 0 t");
    assert_eq!(bench.database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn every_receipt_of_a_batch_names_a_command_that_exists() {
    let bench = Bench::new().await;
    let other = account(&bench.database).await;
    let batch = [
        sync("a", bench.account),
        sync("b", bench.account),
        sync("b", bench.account),
        sync("c", other),
        sync("c", other),
        sync("a", bench.account),
    ];
    let receipts = accept(&bench.gateway, &batch).await.unwrap();

    assert_eq!(outcomes(&receipts).iter().filter(|outcome| **outcome == Queued).count(), 2);
    assert_eq!(outcomes(&receipts).iter().filter(|outcome| **outcome == Coalesced).count(), 1);
    for receipt in &receipts {
        let id = receipt.command_id.unwrap();
        let known = format!("select count(*) from spillway.command where id = '{id}'");
        assert_eq!(bench.database.number(&known).await, 1, "{receipt:?}");
        let row = format!(
            "select count(*) from spillway.webhook_inbox where id = '{}' and command_id = '{id}'",
            receipt.inbox_id
        );
        assert_eq!(bench.database.number(&row).await, 1, "{receipt:?}");
    }
}

#[tokio::test]
async fn an_event_during_a_run_starts_a_further_one() {
    let bench = Bench::new().await;
    bench.ask("evt-1").await;
    let running = bench.claim().await;
    assert_eq!(bench.start(&running).await, Start::Through(1));
    let second = bench.ask("evt-2").await;

    assert_eq!(second.outcome, Queued);
    assert_eq!(bench.row().await, "2 0 t");
}

#[tokio::test]
async fn a_run_that_comes_too_late_finds_everything_done() {
    let bench = Bench::new().await;
    bench.ask("evt-1").await;
    let claimed = bench.claim().await;
    assert_eq!(bench.start(&claimed).await, Start::Through(1));
    bench.database.execute("update spillway.account_sync set ok_through = 1").await;
    expire_leases(&bench.database).await;
    let again = bench.claim().await;

    assert_eq!(bench.start(&again).await, Start::AlreadyDone);
    assert_eq!(bench.start(&claimed).await, Start::Lost, "the first worker has lost its lease");
}

#[tokio::test]
async fn sixty_four_events_at_once_are_all_counted_and_one_command_waits() {
    let bench = Bench::new().await;
    let pools =
        [bench.database.pool_as("spillway_gateway", 16), bench.database.pool_as("spillway_gateway", 16)];
    let events = (0..64).map(|i| {
        let (pool, event) = (pools[i % 2].clone(), sync(&format!("evt-{i}"), bench.account));
        tokio::spawn(async move { accept(&pool, &[event]).await.unwrap()[0].outcome })
    });
    let mut queued = 0;
    for event in events.collect::<Vec<_>>() {
        match event.await.unwrap() {
            Queued => queued += 1,
            outcome => assert_eq!(outcome, Coalesced),
        }
    }

    assert_eq!(queued, 1);
    assert_eq!(bench.row().await, "64 0 t");
    assert_eq!(bench.database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 1);
}

#[tokio::test]
async fn whatever_ends_a_waiting_command_makes_room_for_the_next() {
    let bench = Bench::new().await;
    // A dead letter before the run has started.
    bench.ask("evt-1").await;
    let claimed = bench.claim().await;
    let cause = Cause::new(RetryClass::Permanent, "broken", "no");
    let dead = Dead {
        id: Uuid::now_v7(),
        fence: claimed.fence,
        command: claimed.command.as_ref().map(|command| command.id),
        workload: WORKLOAD,
        reason: DeadReason::PayloadInvalid,
        cause: &cause,
        worker: "worker-1",
    };
    assert!(bury(&bench.worker, &dead).await.unwrap());
    assert_eq!(bench.row().await, "1 0 f");
    // A cancelled one.
    let second = bench.ask("evt-2").await;
    assert_eq!(second.outcome, Queued);
    assert!(command::cancel(&bench.gateway, second.command_id.unwrap()).await.unwrap());
    assert_eq!(bench.row().await, "2 0 f");
    // And one whose account is gone.
    let third = bench.ask("evt-3").await;
    bench.change(Whose::Account(bench.account), Change::Close, Utc::now()).await;
    assert_eq!((bench.row().await.as_str(), bench.state().await.as_str()), ("3 0 f", "closed"));
    let status = format!("select status from spillway.command where id = '{}'", third.command_id.unwrap());
    assert_eq!(bench.database.texts(&status).await, ["superseded"]);
}

#[tokio::test]
async fn a_running_command_can_not_be_cancelled_and_goes_on_waiting_until_it_starts() {
    let bench = Bench::new().await;
    let first = bench.ask("evt-1").await;
    let claimed = bench.claim().await;
    let shown = Beat { fence: claimed.fence, started: first.command_id.map(|id| (id, claimed.claimed_at)) };
    beat(&bench.worker, QUEUE, SPEC.lease, &[shown]).await.unwrap();

    assert!(!command::cancel(&bench.gateway, first.command_id.unwrap()).await.unwrap());
    assert_eq!(bench.row().await, "1 0 t");
    assert_eq!(bench.ask("evt-2").await.outcome, Coalesced);
    assert_eq!(bench.start(&claimed).await, Start::Through(2));
}

#[tokio::test]
async fn a_claim_by_rpc_is_a_start() {
    let bench = Bench::new().await;
    bench.ask("evt-1").await;
    let read = format!("set role service_role; select public.pgmq_read('{QUEUE}', 60, 1)");
    bench.database.execute(&read).await;

    assert_eq!(bench.row().await, "1 0 f");
    assert_eq!(bench.ask("evt-2").await.outcome, Queued);
}

#[tokio::test]
async fn a_callers_sync_counts_as_a_request_but_no_event_becomes_part_of_it() {
    let bench = Bench::new().await;
    let caller = crate::samples::command("by-hand", bench.account);
    enqueue(&bench.gateway, std::slice::from_ref(&caller)).await.unwrap();
    assert_eq!(bench.row().await, "1 0 f");
    let event = bench.ask("evt-1").await;

    assert_eq!(event.outcome, Queued);
    assert_ne!(event.command_id, Some(caller.id));
    assert_eq!(bench.row().await, "2 0 t");
    // While an event's command waits, one by hand is still a command of its own.
    let second = crate::samples::command("by-hand-2", bench.account);
    enqueue(&bench.gateway, std::slice::from_ref(&second)).await.unwrap();
    assert_eq!(bench.row().await, "3 0 t");
    assert!(command::cancel(&bench.gateway, caller.id).await.unwrap());
    assert_eq!(bench.row().await, "3 0 t", "the event's command waits on");
    // A run finds out whether there is anything left to do.
    let taken_back = bench.claim().await;
    assert_eq!(taken_back.command.as_ref().map(|command| command.id), Some(caller.id));
    drop_closed(&bench.worker, taken_back.fence).await.unwrap();
    let of_event = bench.claim().await;
    assert_eq!(of_event.command.as_ref().map(|command| command.id), event.command_id);
    assert_eq!(bench.start(&of_event).await, Start::Through(3));
    assert_eq!(bench.row().await, "3 0 f");
    drop_closed(&bench.worker, of_event.fence).await.unwrap();
    assert_eq!(bench.start(&bench.claim().await).await, Start::Through(3), "as long as none has succeeded");
}

#[tokio::test]
async fn a_callers_sync_for_later_holds_no_event_up_and_fetches_when_its_time_comes() {
    let bench = Bench::new().await;
    let mut later = crate::samples::command("tomorrow", bench.account);
    later.not_before = Some(Utc::now() + chrono::Duration::days(1));
    enqueue(&bench.gateway, std::slice::from_ref(&later)).await.unwrap();
    let event = bench.ask("evt-1").await;

    assert_eq!(event.outcome, Queued);
    let claimed = bench.claim().await;
    assert_eq!(claimed.command.as_ref().map(|command| command.id), event.command_id);
    assert_eq!(bench.start(&claimed).await, Start::Through(1));
    bench.database.execute("update spillway.account_sync set ok_through = 1").await;
    drop_closed(&bench.worker, claimed.fence).await.unwrap();
    expire_leases(&bench.database).await;
    let tomorrow = bench.claim().await;
    assert_eq!(tomorrow.command.as_ref().map(|command| command.id), Some(later.id));
    assert_eq!(bench.start(&tomorrow).await, Start::Through(2));
}

#[tokio::test]
async fn a_connection_pauses_and_opens_its_accounts_and_an_opened_account_is_synced() {
    let bench = Bench::new().await;
    let connection = Uuid::now_v7();
    bench
        .database
        .execute(&format!("update spillway.snaptrade_account set connection_id = '{connection}'"))
        .await;
    let (monday, tuesday) = (Utc::now() - chrono::Duration::days(2), Utc::now() - chrono::Duration::days(1));
    bench.change(Whose::Connection(connection), Change::Pause, tuesday).await;
    assert_eq!(bench.state().await, "paused");
    bench.change(Whose::Connection(connection), Change::Open(origin()), monday).await;
    assert_eq!(bench.state().await, "paused", "an event older than the state changes nothing");
    bench.change(Whose::Connection(Uuid::now_v7()), Change::Open(origin()), Utc::now()).await;
    assert_eq!(bench.state().await, "paused", "another connection's event changes nothing");
    bench.change(Whose::Connection(connection), Change::Open(origin()), Utc::now()).await;

    assert_eq!(bench.state().await, AccountState::Open.to_string());
    let kinds = "select work_type from spillway.account_sync where waiting_command is not null order by 1";
    assert_eq!(bench.database.texts(kinds).await, ["holdings", "transactions"]);
    assert_eq!(bench.database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 2);
}

#[tokio::test]
async fn a_closed_account_stays_closed() {
    let bench = Bench::new().await;
    bench.change(Whose::User("u".to_owned()), Change::Close, Utc::now()).await;
    bench.change(Whose::Account(bench.account), Change::Open(origin()), Utc::now()).await;

    assert_eq!(bench.state().await, "closed");
    assert_eq!(bench.database.number("select count(*) from spillway.account_sync").await, 0);
}

#[tokio::test]
async fn an_announced_account_belongs_to_a_user_that_we_know() {
    let bench = Bench::new().await;
    for user in ["u", "stranger"] {
        let to = Change::Announce { user_id: user.to_owned(), connection_id: Some(Uuid::now_v7()) };
        bench.change(Whose::Account(Uuid::now_v7()), to, Utc::now()).await;
    }

    let known = "select count(*) from spillway.snaptrade_account where user_id = 'u'";
    assert_eq!(bench.database.number(known).await, 2);
    assert_eq!(bench.database.number("select count(*) from spillway.snaptrade_account").await, 2);
}

#[tokio::test]
async fn a_start_without_its_lease_changes_nothing() {
    let bench = Bench::new().await;
    bench.ask("evt-1").await;
    let claimed = bench.claim().await;
    let stale = Fence { read_ct: claimed.fence.read_ct + 1, ..claimed.fence };
    let command = claimed.command.as_ref().unwrap().id;
    let lost = start(&bench.worker, stale, command, WorkType::Holdings, bench.account).await.unwrap();

    assert_eq!(lost, Start::Lost);
    assert_eq!(bench.row().await, "1 0 t");
}
