//! Commands as callers see them: put in, listed, taken back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{SubsecRound, Utc};
use contract::{Actor, Cause, NewCommand, RetryClass, Status, Workload};
use serde_json::json;
use store::command::Outcome::{Conflict, New, Replayed};
use store::command::{Filter, cancel, get, list};
use store::ledger::{Done, Unfinished, delay, drop_closed, succeed_with};
use store::queue::{Beat, Claimed, beat};
use store::snaptrade::Holdings;
use store::{Effect, Pool};
use testkit::{Database, eventually};
use tokio::sync::Barrier;
use uuid::Uuid;

use crate::queue::{SPEC, with_commands};
use crate::samples::{QUEUE, account, claim, command, delivery, enqueue};

const EVERYTHING: Filter = Filter { scope: None, workload: None, status: None, before: None, limit: 100 };

fn scoped(key: &str, scope: &str) -> NewCommand {
    let mut command = command(key, Uuid::nil());
    command.actor = Actor { scope: scope.to_owned(), ..command.actor };
    command
}

async fn keys(database: &Database, ids: &[Uuid]) -> Vec<String> {
    let mut keys = Vec::new();
    for id in ids {
        let sql = format!("select idempotency_key from spillway.command where id = '{id}'");
        keys.push(database.texts(&sql).await.remove(0));
    }
    keys
}

async fn listed(database: &Database, filter: &Filter) -> Vec<String> {
    let reader = database.pool_as("spillway_gateway", 1);
    let commands = list(&reader, filter).await.unwrap();
    keys(database, &commands.iter().map(|command| command.id).collect::<Vec<_>>()).await
}

async fn status(pool: &Pool, id: Uuid) -> String {
    get(pool, id).await.unwrap().unwrap().status
}

fn id_of(claimed: &Claimed) -> Uuid {
    claimed.command.as_ref().unwrap().id
}

fn done(claimed: &Claimed) -> Done {
    Done {
        fence: claimed.fence,
        command: id_of(claimed),
        started_at: claimed.claimed_at,
        result: Some(json!({})),
        request_ids: Vec::new(),
    }
}

#[tokio::test]
async fn a_list_shows_the_newest_first_and_what_was_asked_for() {
    let database = Database::fresh().await;
    let (gateway, worker) = (database.pool_as("spillway_gateway", 1), database.pool_as("spillway_worker", 1));
    // A command in each state that this needs, in the order of their ids.
    for (key, scope) in [("done", "a"), ("failed", "a"), ("runs", "b")] {
        enqueue(&gateway, &[scoped(key, scope)]).await.unwrap();
        let claimed = claim(&worker, SPEC, 1).await.unwrap().remove(0);
        match key {
            "done" => assert!(succeed_with(&worker, &done(&claimed), &Effect::None).await.unwrap()),
            "failed" => {
                let cause = Cause::new(RetryClass::Transient, "timeout", "no answer");
                let run = Unfinished {
                    fence: claimed.fence,
                    command: id_of(&claimed),
                    after: Duration::from_mins(1),
                    cause: &cause,
                    worker: "w",
                };
                assert!(delay(&worker, &run).await.unwrap());
            }
            _ => {
                let running =
                    [Beat { fence: claimed.fence, started: Some((id_of(&claimed), claimed.claimed_at)) }];
                assert_eq!(beat(&worker, QUEUE, SPEC.lease, &running).await.unwrap().len(), 1);
            }
        }
    }
    let waits = scoped("waits", "a");
    let later =
        NewCommand { not_before: Some(Utc::now() + chrono::Duration::hours(1)), ..scoped("later", "b") };
    let taken_back = scoped("taken back", "a");
    enqueue(&gateway, &[waits, later, taken_back.clone()]).await.unwrap();
    assert!(cancel(&gateway, taken_back.id).await.unwrap());
    let other = delivery("other queue").fate.command().unwrap().clone();
    enqueue(&gateway, &[other]).await.unwrap();

    let everything = ["other queue", "taken back", "later", "waits", "runs", "failed", "done"];
    assert_eq!(listed(&database, &EVERYTHING).await, everything);
    let of_scope = Filter { scope: Some("a".to_owned()), ..EVERYTHING };
    assert_eq!(listed(&database, &of_scope).await, ["taken back", "waits", "failed", "done"]);
    let of_workload = Filter { workload: Some(Workload::PaymentWebhookProcessing), ..EVERYTHING };
    assert_eq!(listed(&database, &of_workload).await, ["other queue"]);
    for (status, expected) in [
        (Status::Accepted, vec!["later"]),
        (Status::Queued, vec!["other queue", "waits"]),
        (Status::Running, vec!["runs"]),
        (Status::Retrying, vec!["failed"]),
        (Status::Succeeded, vec!["done"]),
        (Status::Cancelled, vec!["taken back"]),
        (Status::DeadLettered, vec![]),
        (Status::Blocked, vec![]),
    ] {
        let filter = Filter { status: Some(status), ..EVERYTHING };
        assert_eq!(listed(&database, &filter).await, expected, "{status}");
    }
    let both =
        Filter { status: Some(Status::Queued), workload: Some(Workload::SnaptradeAccountSync), ..EVERYTHING };
    assert_eq!(listed(&database, &both).await, ["waits"]);
    let two = Filter { limit: 2, ..EVERYTHING };
    assert_eq!(listed(&database, &two).await, everything[..2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_neither_repeat_nor_leave_out_a_command_while_new_ones_arrive() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 2);
    let there: Vec<NewCommand> = (0..57).map(|i| scoped(&format!("there-{i}"), "a")).collect();
    enqueue(&gateway, &there).await.unwrap();
    let expected: Vec<Uuid> = there.iter().rev().map(|command| command.id).collect();
    let arriving = Arc::new(AtomicBool::new(true));
    let sender = {
        let (gateway, arriving) = (gateway.clone(), Arc::clone(&arriving));
        tokio::spawn(async move {
            let mut arrived = 0;
            while arriving.load(Ordering::Relaxed) {
                enqueue(&gateway, &[scoped(&format!("new-{arrived}"), "a")]).await.unwrap();
                arrived += 1;
            }
            arrived
        })
    };
    let reader = database.pool_as("spillway_gateway", 1);
    let newest = Filter { limit: 1, ..EVERYTHING };
    let arrives =
        || async { list(&reader, &newest).await.unwrap().pop().filter(|one| one.id != expected[0]) };
    eventually("the first new one", Duration::from_secs(20), arrives).await;
    for status in [None, Some(Status::Queued)] {
        let (mut seen, mut before) = (Vec::new(), Some(Uuid::max()));
        while before.is_some() {
            let filter = Filter { scope: Some("a".to_owned()), status, before, limit: 10, ..EVERYTHING };
            let page = list(&reader, &filter).await.unwrap();
            seen.extend(page.iter().map(|command| command.id));
            before = page.last().map(|command| command.id);
        }
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first, none twice");
        let of_the_beginning: Vec<Uuid> = seen.into_iter().filter(|id| expected.contains(id)).collect();
        assert_eq!(of_the_beginning, expected);
    }
    arriving.store(false, Ordering::Relaxed);
    assert!(sender.await.unwrap() > 0);
}

#[tokio::test]
async fn a_key_is_one_command_and_other_content_under_it_is_a_conflict() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let first = command("key", Uuid::from_u128(1));
    let (again, other) = (command("key", Uuid::from_u128(1)), command("key", Uuid::from_u128(2)));
    let of_another_scope = scoped("key", "b");
    let answers = enqueue(&gateway, &[first.clone(), again, other, of_another_scope.clone()]).await.unwrap();
    let later = [command("key", Uuid::from_u128(1)), command("key", Uuid::from_u128(2)), first.clone()];
    let answers_later = enqueue(&gateway, &later).await.unwrap();

    let outcomes = |answers: &[store::command::Enqueued]| -> Vec<_> {
        answers.iter().map(|answer| (answer.outcome, answer.id)).collect()
    };
    let expected = [(New, first.id), (Replayed, first.id), (Conflict, first.id), (New, of_another_scope.id)];
    assert_eq!(outcomes(&answers), expected);
    // The last is an earlier try of this very command, whose answer was lost.
    assert_eq!(outcomes(&answers_later), [(Replayed, first.id), (Conflict, first.id), (New, first.id)]);
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_requests_with_one_key_at_once_make_one_command() {
    let database = Database::fresh().await;
    let gateways = [database.pool_as("spillway_gateway", 16), database.pool_as("spillway_gateway", 16)];
    let start = Arc::new(Barrier::new(32));
    let requests: Vec<_> = (0..32)
        .map(|i| {
            let (gateway, start) = (gateways[i % 2].clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                enqueue(&gateway, &[command("key", Uuid::from_u128(1))]).await.unwrap()[0]
            })
        })
        .collect();
    let (mut new, mut ids) = (0, BTreeSet::new());
    for request in requests {
        let answer = request.await.unwrap();
        new += usize::from(answer.outcome == New);
        assert_ne!(answer.outcome, Conflict);
        ids.insert(answer.id);
    }

    assert_eq!((new, ids.len()), (1, 1));
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 1);
    assert_eq!(database.number("select count(*) from spillway.command").await, 1);
}

#[tokio::test]
async fn a_command_for_later_is_accepted_and_claimed_when_its_time_has_come() {
    let (database, worker) = with_commands(0).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let soon = Utc::now() + chrono::Duration::milliseconds(400);
    // As exact as Postgres keeps it.
    let hour = (Utc::now() + chrono::Duration::hours(1)).trunc_subsecs(6);
    let past = Utc::now() - chrono::Duration::hours(1);
    let at = |key: &str, time| NewCommand { not_before: Some(time), ..command(key, Uuid::now_v7()) };
    let batch = [at("soon", soon), at("in an hour", hour), at("an hour ago", past)];
    enqueue(&gateway, &batch).await.unwrap();
    let mut statuses = Vec::new();
    for command in &batch {
        statuses.push(status(&gateway, command.id).await);
    }
    assert_eq!(statuses, ["accepted", "accepted", "queued"]);
    let shown = get(&gateway, batch[1].id).await.unwrap().unwrap().next_attempt_at.unwrap();
    assert_eq!(shown, hour);

    let mut claimed = Vec::new();
    while claimed.len() < 2 {
        let due = || async { Some(claim(&worker, SPEC, 10).await.unwrap()).filter(|due| !due.is_empty()) };
        claimed.extend(eventually("a claim of what is due", Duration::from_secs(20), due).await);
    }
    claimed.sort_by_key(|message| message.due_at);
    assert_eq!(claimed.iter().map(id_of).collect::<Vec<_>>(), [batch[2].id, batch[0].id]);
    assert!(claimed[1].claimed_at >= soon, "{} is before {soon}", claimed[1].claimed_at);
    assert!(claim(&worker, SPEC, 10).await.unwrap().is_empty(), "the third is not due for an hour");
}

#[tokio::test]
async fn a_waiting_command_is_taken_back_once_and_its_message_is_archived_unread() {
    let (database, worker) = with_commands(1).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let later = NewCommand {
        not_before: Some(Utc::now() + chrono::Duration::hours(1)),
        ..command("later", Uuid::nil())
    };
    enqueue(&gateway, std::slice::from_ref(&later)).await.unwrap();
    let waiting = list(&gateway, &EVERYTHING).await.unwrap()[1].id;
    for id in [waiting, later.id] {
        assert!(cancel(&gateway, id).await.unwrap());
        assert!(!cancel(&gateway, id).await.unwrap(), "once");
        let command = get(&gateway, id).await.unwrap().unwrap();
        assert_eq!((command.status.as_str(), command.next_attempt_at), ("cancelled", None));
        assert!(command.finished_at.is_some());
    }
    let claimed = claim(&worker, SPEC, 10).await.unwrap().remove(0);
    assert!(claimed.command.as_ref().unwrap().is_closed, "its worker is told that there is nothing to do");
    assert!(drop_closed(&worker, claimed.fence).await.unwrap());

    let archived = format!("select message ->> 'command' from pgmq.a_{QUEUE}");
    assert_eq!(database.texts(&archived).await, [waiting.to_string()]);
    let untouched = format!("select status || attempts from spillway.command where id = '{waiting}'");
    assert_eq!(database.texts(&untouched).await, ["cancelled0"]);
}

#[tokio::test]
async fn what_runs_or_has_ended_or_is_unknown_is_not_taken_back() {
    let (database, worker) = with_commands(1).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let claimed = claim(&worker, SPEC, 1).await.unwrap().remove(0);
    let id = id_of(&claimed);
    let running = [Beat { fence: claimed.fence, started: Some((id, claimed.claimed_at)) }];
    beat(&worker, QUEUE, SPEC.lease, &running).await.unwrap();
    assert!(!cancel(&gateway, id).await.unwrap());
    assert_eq!(status(&gateway, id).await, "running");
    assert!(succeed_with(&worker, &done(&claimed), &Effect::None).await.unwrap());
    assert!(!cancel(&gateway, id).await.unwrap());

    assert_eq!(status(&gateway, id).await, "succeeded");
    assert!(!cancel(&gateway, Uuid::now_v7()).await.unwrap());
}

/// A run that has not shown itself by a heartbeat yet can still lose to its caller: then nothing that it found out is
/// stored. Whoever is second changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_caller_who_takes_back_and_a_worker_who_settles_exactly_one_wins() {
    let (database, worker) = with_commands(0).await;
    let gateway = database.pool_as("spillway_gateway", 2);
    for round in 0..80 {
        let account = account(&database).await;
        let command = command(&format!("round-{round}"), account);
        enqueue(&gateway, std::slice::from_ref(&command)).await.unwrap();
        // In every other round the worker is a claim ahead.
        let ahead = if round % 2 == 0 { None } else { claim(&worker, SPEC, 1).await.unwrap().pop() };
        let start = Arc::new(Barrier::new(2));
        let run = {
            let (worker, start) = (worker.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                let claimed = match ahead {
                    Some(claimed) => claimed,
                    None => claim(&worker, SPEC, 1).await.unwrap().remove(0),
                };
                if claimed.command.as_ref().unwrap().is_closed {
                    return drop_closed(&worker, claimed.fence).await.unwrap();
                }
                let holdings = Holdings {
                    account_id: account,
                    as_of: Some(Utc::now()),
                    positions: Vec::new(),
                    balances: Vec::new(),
                    orders: Vec::new(),
                };
                let effect = Effect::SnaptradeHoldings { holdings: Box::new(holdings), through: 1 };
                succeed_with(&worker, &done(&claimed), &effect).await.unwrap()
            })
        };
        start.wait().await;
        let taken_back = cancel(&gateway, command.id).await.unwrap();
        assert!(run.await.unwrap(), "the message is the worker's either way");

        let stored = "select count(*) from spillway.snaptrade_account where holdings_synced_at is not null";
        let stored = database.number(&format!("{stored} and account_id = '{account}'")).await;
        let expected = if taken_back { ("cancelled".to_owned(), 0) } else { ("succeeded".to_owned(), 1) };
        assert_eq!((status(&gateway, command.id).await, stored), expected, "round {round}");
    }
    assert_eq!(database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await, 0);
    assert_eq!(database.number(&format!("select count(*) from pgmq.a_{QUEUE}")).await, 80);
}
