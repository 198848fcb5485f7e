//! What operators do with dead letters, with the operators' rights alone.

use std::borrow::Cow;
use std::time::Duration;

use contract::{Cause, DeadReason, LetterState, NewCommand, RetryClass, Status, Workload};
use policy::replay::Refusal;
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use store::account_sync::{Start, start};
use store::ledger::{Dead, Done, bury, succeed};
use store::queue::Claimed;
use store::replay::{Action, Filter, Order, Outcome, Refused, act, replay_all, reveal};
use store::{Pool, command};
use testkit::Database;
use uuid::Uuid;

use crate::samples;
use crate::samples::claim;

const SYNCS: Workload = Workload::SnaptradeAccountSync;
const FACTS: Workload = Workload::PaymentWebhookProcessing;

const ORDER: Order<'_> = Order { operator: "kim", why: "the provider is well again", is_dry_run: false };
const DRY_RUN: Order<'_> = Order { is_dry_run: true, ..ORDER };

const EVERYTHING: Filter = Filter { workload: None, reason: None, older_than: None, limit: 100 };

struct Bench {
    database: Database,
    gateway: Pool,
    worker: Pool,
    operator: Pool,
    account: Uuid,
}

impl Bench {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let account = samples::account(&database).await;
        let pool = |role| database.pool_as(role, 4);
        let (gateway, worker, operator) =
            (pool("spillway_gateway"), pool("spillway_worker"), pool("spillway_operator"));
        Self { database, gateway, worker, operator, account }
    }

    /// A sync that died.
    async fn dead_sync(&self, key: &str) -> (Uuid, Uuid) {
        let command = samples::command(key, self.account);
        samples::enqueue(&self.gateway, std::slice::from_ref(&command)).await.unwrap();
        (self.dies(SYNCS, DeadReason::AttemptsExhausted).await, command.id)
    }

    /// Payment facts that died.
    async fn dead_fact(&self, identity: &str, reason: DeadReason) -> (Uuid, Uuid) {
        let receipts = samples::accept(&self.gateway, &[samples::delivery(identity)]).await.unwrap();
        (self.dies(FACTS, reason).await, receipts[0].command_id.expect("a fact has a command"))
    }

    /// The next message of the queue becomes a dead letter.
    async fn dies(&self, workload: Workload, reason: DeadReason) -> Uuid {
        let claimed = self.claim(workload).await;
        let cause = Cause::new(RetryClass::Transient, "timeout", "no answer in time");
        let dead = Dead {
            id: Uuid::now_v7(),
            fence: claimed.fence,
            command: claimed.command.as_ref().map(|command| command.id),
            workload,
            reason,
            cause: &cause,
            worker: "worker-1",
        };
        assert!(bury(&self.worker, &dead).await.unwrap());
        dead.id
    }

    async fn claim(&self, workload: Workload) -> Claimed {
        claim(&self.worker, workload.queue(), 1).await.unwrap().remove(0)
    }

    async fn act(&self, id: Uuid, action: &Action) -> Outcome {
        act(&self.operator, id, action, &ORDER).await.unwrap().expect("it is there")
    }

    async fn replayed(&self, id: Uuid) {
        let outcome = self.act(id, &Action::Replay).await;
        assert_eq!(outcome.refused, None);
    }

    async fn text(&self, sql: &str) -> String {
        self.database.texts(sql).await.remove(0)
    }

    async fn count(&self, from: &str) -> i64 {
        self.database.number(&format!("select count(*) from {from}")).await
    }

    async fn state(&self, id: Uuid) -> String {
        self.text(&format!("select state from spillway.dead_letter where id = '{id}'")).await
    }

    async fn status(&self, id: Uuid) -> String {
        command::get(&self.operator, id).await.unwrap().expect("it is there").status
    }

    /// Messages of a queue, of its dead-letter queue, and of that queue's archive.
    async fn messages(&self, workload: Workload) -> [i64; 3] {
        let queue = workload.queue();
        [
            self.count(&format!("pgmq.q_{}", queue.name)).await,
            self.count(&format!("pgmq.q_{}", queue.dead_letter)).await,
            self.count(&format!("pgmq.a_{}", queue.dead_letter)).await,
        ]
    }
}

fn done(claimed: &Claimed) -> Done {
    Done {
        fence: claimed.fence,
        command: claimed.command.as_ref().expect("it has one").id,
        started_at: claimed.claimed_at,
        result: None,
        request_ids: Vec::new(),
    }
}

fn refusal(outcome: &Outcome) -> &Refusal {
    match &outcome.refused {
        Some(Refused::ByPolicy(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_replayed_command_is_queued_with_fresh_budgets_in_the_lowest_class() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_sync("key-1").await;
    bench.replayed(letter).await;

    let row = bench
        .text(
            "select concat_ws(' ', status, class, attempts, crashes, outcomes, blocked_times, replays,
               num_nonnulls(finished_at, started_at, failure_code, failure_message, retry_class, next_attempt_at))
             from spillway.command",
        )
        .await;
    assert_eq!(row, "queued 3 0 0 0 0 1 0");
    assert_eq!(bench.messages(SYNCS).await, [1, 0, 1], "one new message, and the dead one is in the archive");
    let claimed = bench.claim(SYNCS).await;
    assert_eq!((claimed.fence.read_ct, claimed.command.as_ref().map(|found| found.id)), (1, Some(command)));
    assert_eq!(succeed(&bench.worker, SYNCS.queue().name, &[done(&claimed)]).await.unwrap().len(), 1);
    assert_eq!(bench.status(command).await, "succeeded");
}

#[tokio::test]
async fn a_replay_is_on_record_with_who_why_and_what() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_sync("key-1").await;
    bench.replayed(letter).await;

    let row = "select concat_ws('|', dead_letter_id, command_id, action, actor, why, num_nonnulls(original, repaired)) from spillway.replay";
    assert_eq!(
        bench.text(row).await,
        format!("{letter}|{command}|replay_same_input|kim|the provider is well again|0")
    );
    let row = "select concat_ws('|', actor, action, target_kind, target, why, details ->> 'command') from spillway.operator_action";
    assert_eq!(
        bench.text(row).await,
        format!("kim|replay_same_input|dead_letter|{letter}|the provider is well again|{command}")
    );
    let shown = store::dead_letter::show(&bench.operator, letter).await.unwrap().unwrap();
    assert_eq!(
        (shown.letter.state.as_str(), shown.letter.decided_by.as_deref(), shown.actions.len()),
        ("replayed", Some("kim"), 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_operators_who_replay_at_once_exactly_one_wins() {
    let bench = Bench::new().await;
    let (letter, _) = bench.dead_sync("key-1").await;
    let operator = bench.database.pool_as("spillway_operator", 20);
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(20));
    let mut presses = tokio::task::JoinSet::new();
    for i in 0..20 {
        let (pool, barrier) = (operator.clone(), barrier.clone());
        presses.spawn(async move {
            let name = format!("operator-{i}");
            let order = Order { operator: &name, ..ORDER };
            barrier.wait().await;
            act(&pool, letter, &Action::Replay, &order).await.unwrap().unwrap()
        });
    }
    let outcomes = presses.join_all().await;

    assert_eq!(outcomes.iter().filter(|outcome| outcome.refused.is_none()).count(), 1);
    let by = bench.text("select decided_by from spillway.dead_letter").await;
    for outcome in outcomes.iter().filter(|outcome| outcome.refused.is_some()) {
        let state = LetterState::Replayed;
        assert_eq!(refusal(outcome), &Refusal::AlreadyDecided { state, by: by.clone() });
    }
    assert_eq!(bench.messages(SYNCS).await, [1, 0, 1]);
    assert_eq!((bench.count("spillway.replay").await, bench.count("spillway.operator_action").await), (1, 1));
}

#[tokio::test]
async fn a_dry_run_answers_the_same_and_changes_nothing() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_sync("key-1").await;
    let would = act(&bench.operator, letter, &Action::Replay, &DRY_RUN).await.unwrap().unwrap();
    let would_not = act(&bench.operator, letter, &Action::Reconcile, &DRY_RUN).await.unwrap().unwrap();

    assert_eq!(would.refused, None);
    assert!(matches!(refusal(&would_not), Refusal::NotAllowed { .. }));
    assert_eq!(
        (bench.state(letter).await, bench.status(command).await),
        ("open".into(), "dead_lettered".into())
    );
    assert_eq!(bench.messages(SYNCS).await, [0, 1, 0]);
    assert_eq!(bench.count("spillway.operator_action").await, 0);
}

#[tokio::test]
async fn nothing_is_done_with_a_dead_letter_that_is_not_there() {
    let bench = Bench::new().await;

    assert!(act(&bench.operator, Uuid::now_v7(), &Action::Replay, &ORDER).await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_done_already_is_not_done_again() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_sync("key-1").await;
    bench.database.execute("update spillway.command set status = 'succeeded'").await;

    let outcome = bench.act(letter, &Action::Replay).await;
    assert_eq!(refusal(&outcome), &Refusal::MovedOn(Status::Succeeded));
    assert_eq!(bench.act(letter, &Action::Suppress).await.refused, None);
    assert_eq!(
        (bench.state(letter).await, bench.status(command).await),
        ("suppressed".into(), "succeeded".into())
    );
    assert_eq!(bench.messages(SYNCS).await, [0, 0, 1]);
}

#[tokio::test]
async fn the_late_result_of_the_first_life_is_refused_in_the_second() {
    let bench = Bench::new().await;
    let command = samples::command("key-1", bench.account);
    samples::enqueue(&bench.gateway, std::slice::from_ref(&command)).await.unwrap();
    let zombie = bench.claim(SYNCS).await;
    crate::queue::expire_leases(&bench.database).await;
    let letter = bench.dies(SYNCS, DeadReason::AttemptsExhausted).await;
    bench.replayed(letter).await;

    assert!(succeed(&bench.worker, SYNCS.queue().name, &[done(&zombie)]).await.unwrap().is_empty());
    assert_eq!(bench.status(command.id).await, "queued");
}

#[tokio::test]
async fn a_replay_is_not_swallowed_by_dedupe_and_the_caller_meets_the_same_command() {
    let bench = Bench::new().await;
    let (letter, id) = bench.dead_sync("key-1").await;
    let again = || async {
        let command = NewCommand { id: Uuid::now_v7(), ..samples::command("key-1", bench.account) };
        samples::enqueue(&bench.gateway, &[command]).await.unwrap()[0]
    };
    let while_dead = again().await;
    bench.replayed(letter).await;
    let after = again().await;

    for answer in [while_dead, after] {
        assert_eq!((answer.id, answer.outcome), (id, command::Outcome::Replayed));
    }
    assert_eq!(bench.messages(SYNCS).await[0], 1);
}

#[tokio::test]
async fn a_replayed_sync_asks_for_a_sync_and_waits_for_further_events() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_sync("key-1").await;
    // Meanwhile a later sync has fetched everything that was asked for.
    bench.database.execute("update spillway.account_sync set ok_through = requested").await;
    bench.replayed(letter).await;
    let sync = "select concat_ws(' ', requested, ok_through, waiting_command = (select id from spillway.command)) from spillway.account_sync";
    assert_eq!(bench.text(sync).await, "2 1 t");
    let coalesced = samples::accept(&bench.gateway, &[samples::sync("evt-1", bench.account)]).await.unwrap();
    assert_eq!(coalesced[0].command_id, Some(command), "an event that comes now is part of it");

    let claimed = bench.claim(SYNCS).await;
    let work_type = contract::snaptrade::WorkType::Holdings;
    let started = start(&bench.worker, claimed.fence, command, work_type, bench.account).await.unwrap();
    assert_eq!(started, Start::Through(3));
}

#[tokio::test]
async fn a_replayed_sync_leaves_the_one_that_waits_in_its_place() {
    let bench = Bench::new().await;
    let (letter, _) = bench.dead_sync("key-1").await;
    let event = samples::sync("evt-1", bench.account);
    let waiting = samples::accept(&bench.gateway, &[event]).await.unwrap()[0].command_id.unwrap();
    bench.replayed(letter).await;

    assert_eq!(
        bench.text("select concat_ws(' ', requested, waiting_command) from spillway.account_sync").await,
        format!("3 {waiting}")
    );
}

#[tokio::test]
async fn a_second_failure_is_a_new_dead_letter_of_the_same_line() {
    let bench = Bench::new().await;
    let (first, command) = bench.dead_sync("key-1").await;
    bench.replayed(first).await;
    let second = bench.dies(SYNCS, DeadReason::AttemptsExhausted).await;
    bench.replayed(second).await;
    let third = bench.dies(SYNCS, DeadReason::AttemptsExhausted).await;

    let line = "select concat_ws(' ', replays, coalesce(first_dead_letter::text, '-'), attempts, state) from spillway.dead_letter order by id";
    assert_eq!(
        bench.database.texts(line).await,
        ["0 - 1 replayed".to_owned(), format!("1 {first} 1 replayed"), format!("2 {first} 1 open")]
    );
    assert_eq!(bench.status(command).await, "dead_lettered");
    assert_eq!(bench.messages(SYNCS).await, [0, 1, 2]);
    let shown = store::dead_letter::show(&bench.operator, third).await.unwrap().unwrap();
    assert_eq!((shown.actions.len(), shown.failures.len()), (2, 3), "the whole line is shown");
}

fn repaired(tenant: &str) -> Value {
    json!({ "tenant": tenant, "payment_id": Uuid::from_u128(1) })
}

#[tokio::test]
async fn a_repaired_input_is_sent_and_the_old_one_and_the_difference_are_kept() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_fact("evt-1", DeadReason::PayloadInvalid).await;
    let outcome = bench.act(letter, &Action::Repair(repaired("other"))).await;
    let paths: Vec<_> =
        outcome.repair.iter().flat_map(|repair| &repair.changes).map(|change| change.path.as_str()).collect();

    assert_eq!((outcome.refused, paths), (None, vec!["/tenant"]));
    let claimed = bench.claim(FACTS).await;
    let ledger = claimed.command.expect("it has one");
    assert_eq!((ledger.id, &ledger.payload), (command, &repaired("other")));
    let kept = bench.text("select concat_ws('|', action, original ->> 'tenant', repaired ->> 'tenant', difference) from spillway.replay").await;
    assert_eq!(
        kept,
        r#"repair_then_replay|main|other|[{"path": "/tenant", "after": "other", "before": "main"}]"#
    );
    let audit = bench.text("select details::text from spillway.operator_action").await;
    assert!(audit.contains("/tenant") && !audit.contains("other"), "{audit}");
}

#[tokio::test]
async fn a_caller_who_repeats_a_request_that_was_repaired_meets_the_same_command() {
    let bench = Bench::new().await;
    let command = samples::facts("key-1");
    samples::enqueue(&bench.gateway, std::slice::from_ref(&command)).await.unwrap();
    let letter = bench.dies(FACTS, DeadReason::PayloadInvalid).await;
    assert_eq!(bench.act(letter, &Action::Repair(repaired("other"))).await.refused, None);

    let again = NewCommand { id: Uuid::now_v7(), ..command.clone() };
    let answer = samples::enqueue(&bench.gateway, &[again]).await.unwrap()[0];
    assert_eq!((answer.id, answer.outcome), (command.id, command::Outcome::Replayed));
}

#[tokio::test]
async fn a_repair_that_the_door_would_refuse_is_refused() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_fact("evt-1", DeadReason::PayloadInvalid).await;
    let foreign = json!({ "work_type": "holdings", "account_id": bench.account });
    for broken in [json!({}), Value::Null, json!({ "tenant": "main", "payment_id": "7" }), foreign] {
        let outcome = bench.act(letter, &Action::Repair(broken)).await;
        assert!(matches!(outcome.refused, Some(Refused::Input(_))), "{:?}", outcome.refused);
    }
    let unchanged = bench.act(letter, &Action::Repair(repaired("main"))).await;

    assert_eq!(unchanged.refused, Some(Refused::Unchanged));
    assert_eq!(
        (bench.state(letter).await, bench.status(command).await),
        ("open".into(), "dead_lettered".into())
    );
}

#[tokio::test]
async fn what_the_reason_or_the_workload_rules_out_is_refused() {
    let bench = Bench::new().await;
    let (invalid, _) = bench.dead_fact("evt-1", DeadReason::PayloadInvalid).await;
    let (sync, _) = bench.dead_sync("key-1").await;

    for (letter, action) in
        [(invalid, Action::Replay), (sync, Action::Reconcile), (sync, Action::Repair(json!({})))]
    {
        let outcome = bench.act(letter, &action).await;
        assert!(matches!(refusal(&outcome), Refusal::NotAllowed { .. }), "{action:?}: {outcome:?}");
    }
    let stored =
        "select array_to_string(policies, ' ') from spillway.dead_letter where reason = 'payload_invalid'";
    assert_eq!(bench.text(stored).await, "repair_then_replay suppress manual_reconcile");
}

#[tokio::test]
async fn suppressed_and_reconciled_commands_have_ended_for_good() {
    let bench = Bench::new().await;
    for (identity, action, status) in
        [("evt-1", Action::Suppress, "suppressed"), ("evt-2", Action::Reconcile, "reconciled")]
    {
        let (letter, command) = bench.dead_fact(identity, DeadReason::AttemptsExhausted).await;
        assert_eq!(bench.act(letter, &action).await.refused, None);

        assert_eq!((bench.state(letter).await, bench.status(command).await), (status.into(), status.into()));
        let again = bench.act(letter, &Action::Replay).await;
        assert!(matches!(refusal(&again), Refusal::AlreadyDecided { .. }), "{again:?}");
        let audit =
            format!("spillway.operator_action where target = '{letter}' and actor = 'kim' and why <> ''");
        assert_eq!(bench.count(&audit).await, 1);
    }
    assert_eq!(bench.messages(FACTS).await, [0, 0, 2]);
    assert_eq!(bench.count("spillway.command where finished_at is null").await, 0);
}

#[tokio::test]
async fn a_message_without_a_command_can_only_be_suppressed() {
    let bench = Bench::new().await;
    bench.database.execute(&format!("select pgmq.send('{}', '{{\"hello\": 1}}')", FACTS.queue().name)).await;
    let letter = bench.dies(FACTS, DeadReason::CommandMissing).await;
    for action in [Action::Replay, Action::Repair(repaired("main")), Action::Reconcile] {
        assert_eq!(refusal(&bench.act(letter, &action).await), &Refusal::NoCommand);
    }

    assert_eq!(bench.act(letter, &Action::Suppress).await.refused, None);
    assert_eq!(bench.messages(FACTS).await, [0, 0, 1]);
}

#[tokio::test]
async fn a_bulk_replay_answers_for_exactly_what_it_did() {
    let bench = Bench::new().await;
    for i in 0..3 {
        bench.dead_sync(&format!("key-{i}")).await;
    }
    bench.dead_fact("evt-1", DeadReason::AttemptsExhausted).await;
    bench.dead_fact("evt-2", DeadReason::PayloadInvalid).await;
    let syncs = Filter { workload: Some(SYNCS), ..EVERYTHING };
    let hour_old = Filter { older_than: Some(Duration::from_hours(1)), ..EVERYTHING };
    assert!(replay_all(&bench.operator, hour_old, &ORDER).await.unwrap().is_empty());
    assert_eq!(replay_all(&bench.operator, syncs, &DRY_RUN).await.unwrap().len(), 3);
    let two = replay_all(&bench.operator, Filter { limit: 2, ..syncs }, &ORDER).await.unwrap();
    assert!(two.len() == 2 && two.iter().all(|outcome| outcome.refused.is_none()), "{two:?}");
    assert_eq!(bench.messages(SYNCS).await, [2, 1, 2]);

    let rest = replay_all(&bench.operator, EVERYTHING, &ORDER).await.unwrap();
    let refused: Vec<_> = rest.iter().filter(|outcome| outcome.refused.is_some()).collect();
    assert_eq!((rest.len(), refused.len()), (3, 1), "{rest:?}");
    assert_eq!(refused[0].reason, "payload_invalid");
    assert_eq!((bench.messages(SYNCS).await, bench.messages(FACTS).await), ([3, 0, 3], [1, 1, 1]));
    assert_eq!(bench.count("spillway.operator_action").await, 4);
    assert_eq!(bench.text("select requested::text from spillway.account_sync").await, "6");
}

#[tokio::test]
async fn what_cannot_be_replayed_never_keeps_the_others_out() {
    let bench = Bench::new().await;
    for i in 0..3 {
        bench.dead_fact(&format!("evt-{i}"), DeadReason::PayloadInvalid).await;
    }
    let (newest, _) = bench.dead_fact("evt-3", DeadReason::AttemptsExhausted).await;
    let outcomes = replay_all(&bench.operator, Filter { limit: 1, ..EVERYTHING }, &ORDER).await.unwrap();

    assert_eq!((outcomes[0].id, &outcomes[0].refused), (newest, &None));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_bulk_replays_at_once_replay_each_dead_letter_once() {
    let bench = Bench::new().await;
    for i in 0..20 {
        bench.dead_sync(&format!("key-{i}")).await;
    }
    let (a, b) = tokio::join!(
        replay_all(&bench.operator, EVERYTHING, &ORDER),
        replay_all(&bench.operator, EVERYTHING, &ORDER),
    );
    let done = |outcomes: Vec<Outcome>| outcomes.iter().filter(|outcome| outcome.refused.is_none()).count();

    assert_eq!(done(a.unwrap()) + done(b.unwrap()), 20);
    assert_eq!(bench.messages(SYNCS).await, [20, 0, 20]);
}

#[tokio::test]
async fn one_command_with_two_dead_letters_is_sent_once() {
    let bench = Bench::new().await;
    bench.dead_sync("key-1").await;
    bench
        .database
        .execute(&format!(
            "insert into spillway.dead_letter (id, command_id, workload, queue, msg_id, dead_msg_id, reason,
               detail_code, detail, policies, message, attempts, crashes)
             select '{}', command_id, workload, queue, 0, 0, reason, detail_code, detail, policies, message, 0, 0
             from spillway.dead_letter",
            Uuid::now_v7()
        ))
        .await;
    let outcomes = replay_all(&bench.operator, EVERYTHING, &ORDER).await.unwrap();

    assert_eq!(outcomes.iter().filter(|outcome| outcome.refused.is_none()).count(), 1, "{outcomes:?}");
    assert_eq!(bench.messages(SYNCS).await[0], 1);
    assert_eq!(bench.count("spillway.dead_letter where state = 'open'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_cut_off_in_the_middle_has_not_happened() {
    let bench = Bench::new().await;
    let (letter, command) = bench.dead_sync("key-1").await;
    let mut holder = bench.database.connect().await;
    let mut hold = holder.begin().await.unwrap();
    let lock = format!("lock table pgmq.q_{} in access exclusive mode", SYNCS.queue().name);
    sqlx::query(&lock).execute(&mut *hold).await.unwrap();
    let operator = bench.operator.clone();
    let replay = tokio::spawn(async move { act(&operator, letter, &Action::Replay, &ORDER).await });
    // Its command is queued by now, in a transaction that can't send its message.
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%pgmq.send%'";
    testkit::eventually("it waits and is cut off", Duration::from_secs(30), async || {
        (bench.database.number(cut).await == 1).then_some(())
    })
    .await;
    assert!(replay.await.unwrap().is_err());
    hold.rollback().await.unwrap();

    assert_eq!(
        (bench.state(letter).await, bench.status(command).await),
        ("open".into(), "dead_lettered".into())
    );
    assert_eq!(bench.messages(SYNCS).await, [0, 1, 0]);
    bench.replayed(letter).await;
    assert_eq!(bench.messages(SYNCS).await, [1, 0, 1]);
}

#[tokio::test]
async fn to_look_at_an_input_is_on_record() {
    let bench = Bench::new().await;
    let (letter, _) = bench.dead_fact("evt-1", DeadReason::PayloadInvalid).await;
    let input = reveal(&bench.operator, letter, "kim", "to repair it").await.unwrap();

    assert_eq!(input, Some(repaired("main")));
    assert_eq!(
        bench.text("select concat_ws(' ', actor, action, target) from spillway.operator_action").await,
        format!("kim reveal {letter}")
    );
    assert_eq!(reveal(&bench.operator, Uuid::now_v7(), "kim", "to repair it").await.unwrap(), None);
}

#[tokio::test]
async fn operators_touch_only_what_was_given_up_and_never_change_the_audit() {
    let bench = Bench::new().await;
    let (letter, dead) = bench.dead_sync("key-1").await;
    samples::enqueue(&bench.gateway, &[samples::command("key-2", bench.account)]).await.unwrap();
    bench.act(letter, &Action::Suppress).await;
    let mut connection = PgConnection::connect(&bench.database.url_as("spillway_operator")).await.unwrap();
    for sql in [
        "update spillway.operator_action set why = ''",
        "delete from spillway.operator_action",
        "update spillway.replay set why = ''",
        "delete from spillway.dead_letter",
        "update spillway.dead_letter set reason = 'x'",
        "update spillway.command set request_hash = ''",
        "delete from pgmq.q_sanmopia_snaptrade_account_sync",
    ] {
        let error = sqlx::query(sql).execute(&mut connection).await.expect_err(sql);
        let code = error.as_database_error().and_then(|refusal| refusal.code().map(Cow::into_owned));
        assert_eq!(code.as_deref(), Some("42501"), "{sql}");
    }
    // What is not given up, or decided on, is not there to be changed.
    for sql in [
        "update spillway.command set status = 'queued'".to_owned(),
        format!("update spillway.command set status = 'queued' where id = '{dead}'"),
        "update spillway.dead_letter set state = 'replayed', decided_by = 'x', decided_at = now()".to_owned(),
    ] {
        let changed = sqlx::query(&sql).execute(&mut connection).await.unwrap();
        assert_eq!(changed.rows_affected(), 0, "{sql}");
    }
    bench.database.execute("update spillway.command set status = 'dead_lettered'").await;
    for status in ["succeeded", "running", "cancelled"] {
        let sql = format!("update spillway.command set status = '{status}'");
        assert!(sqlx::query(&sql).execute(&mut connection).await.is_err(), "{status}");
    }
}

#[tokio::test]
async fn the_other_roles_decide_nothing() {
    let bench = Bench::new().await;
    let (letter, _) = bench.dead_sync("key-1").await;
    for pool in [&bench.gateway, &bench.worker] {
        assert!(act(pool, letter, &Action::Replay, &ORDER).await.is_err());
    }

    assert_eq!(bench.state(letter).await, "open");
}
