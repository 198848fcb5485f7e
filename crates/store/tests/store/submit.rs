//! `spillway.submit`: commands of the business's own transactions and triggers.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use contract::snaptrade::{AccountSync, WorkType};
use contract::{Actor, NewCommand};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use store::command::{Outcome, get};
use testkit::{Database, eventually};
use uuid::Uuid;

use crate::acl::is_forbidden;
use crate::queue::SPEC;
use crate::samples::{QUEUE, account, claim, command, connect_as, enqueue, refusal};

const PAYLOAD: &str = r#"'{"work_type": "holdings", "account_id": "00000000-0000-0000-0000-000000000001"}'"#;

/// The call with these arguments in place of good ones.
fn call(changed: &[(&str, &str)]) -> String {
    let arguments: Vec<String> = [
        ("workload", "'snaptrade-account-sync'"),
        ("idempotency_key", "'key'"),
        ("payload", PAYLOAD),
        ("actor", "'user-1'"),
        ("scope", "'branch-1'"),
        ("not_before", "null"),
    ]
    .into_iter()
    .map(|(name, usual)| {
        let changed = changed.iter().find(|(other, _)| *other == name);
        format!("{name} => {}", changed.map_or(usual, |(_, value)| *value))
    })
    .collect();
    format!("select command_id, replayed from spillway.submit({})", arguments.join(", "))
}

async fn submit(connection: &mut PgConnection, changed: &[(&str, &str)]) -> (Uuid, bool) {
    sqlx::query_as(&call(changed)).fetch_one(connection).await.unwrap()
}

/// Commands and messages that are committed.
async fn committed(database: &Database) -> (i64, i64) {
    let messages = database.number(&format!("select count(*) from pgmq.q_{QUEUE}")).await;
    (database.number("select count(*) from spillway.command").await, messages)
}

#[tokio::test]
async fn a_submitted_command_exists_if_and_only_if_its_transaction_commits() {
    let database = Database::fresh().await;
    let mut business = connect_as(&database, "service_role").await;
    let mut transaction = business.begin().await.unwrap();
    submit(&mut transaction, &[]).await;
    assert_eq!(committed(&database).await, (0, 0), "nobody sees it before the commit");
    transaction.rollback().await.unwrap();
    assert_eq!(committed(&database).await, (0, 0));
    let mut transaction = business.begin().await.unwrap();
    let (id, replayed) = submit(&mut transaction, &[]).await;
    transaction.commit().await.unwrap();

    assert!(!replayed);
    assert_eq!(committed(&database).await, (1, 1));
    let claimed = claim(&database.pool_as("spillway_worker", 1), SPEC, 1).await.unwrap().remove(0);
    let ledger = claimed.command.unwrap();
    let job: AccountSync = serde_json::from_value(ledger.payload).unwrap();
    assert_eq!((ledger.id, ledger.kind.as_str(), ledger.version), (id, "snaptrade-account-sync", 1));
    assert_eq!(job, AccountSync { work_type: WorkType::Holdings, account_id: Uuid::from_u128(1) });
    let row =
        "select concat_ws(' ', status, actor_id, actor_type, scope, class, decision like 'database-role:%')
        from spillway.command";
    assert_eq!(database.texts(row).await, ["queued user-1 service branch-1 1 t"]);
    let trace = "select count(*) from spillway.command
        where traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-01$' and correlation_id = split_part(traceparent, '-', 2)";
    assert_eq!(database.number(trace).await, 1);
}

#[tokio::test]
async fn the_same_key_answers_the_first_command_and_refuses_other_content() {
    let database = Database::fresh().await;
    let mut business = connect_as(&database, "service_role").await;
    let mut transaction = business.begin().await.unwrap();
    let (first, _) = submit(&mut transaction, &[]).await;
    let same_transaction = submit(&mut transaction, &[]).await;
    transaction.commit().await.unwrap();
    let again = submit(&mut business, &[]).await;
    let reordered = r#"'{"account_id": "00000000-0000-0000-0000-000000000001",   "work_type": "holdings"}'"#;
    let reordered = submit(&mut business, &[("payload", reordered)]).await;
    let other_actor = submit(&mut business, &[("actor", "'user-2'")]).await;
    let refused = refusal(&mut business, &call(&[("payload", "'{\"work_type\": \"transactions\"}'")])).await;
    let other_scope = submit(&mut business, &[("scope", "'branch-2'"), ("payload", "'{}'")]).await;

    assert_eq!([same_transaction, again, reordered, other_actor], [(first, true); 4]);
    assert_eq!(refused, "23505 the idempotency key key was used before for another payload");
    assert_eq!(
        (other_scope.1, other_scope.0 == first),
        (false, false),
        "keys of another scope are other keys"
    );
    assert_eq!(committed(&database).await, (2, 2));
    let actor = format!("select actor_id from spillway.command where id = '{first}'");
    assert_eq!(database.texts(&actor).await, ["user-1"], "a replay changes nothing");
}

#[tokio::test]
async fn what_is_wrong_is_refused_by_name() {
    let database = Database::fresh().await;
    let mut business = connect_as(&database, "service_role").await;
    let too_long = format!("'{}'", "k".repeat(201));
    for (argument, value, named) in [
        ("workload", "'document-renderring'", "no workload is called document-renderring"),
        ("workload", "'sanmopia_document_rendering'", "no workload is called sanmopia_document_rendering"),
        ("workload", "null", "no workload is called null"),
        ("idempotency_key", "''", "idempotency_key must have"),
        ("idempotency_key", "null", "idempotency_key must have"),
        ("idempotency_key", &too_long, "idempotency_key must have"),
        ("payload", "null", "payload must not be null"),
        ("payload", "'null'", "payload must not be null"),
        ("actor", "''", "actor must not be empty"),
        ("actor", "null", "actor must not be empty"),
        ("scope", "''", "scope must not be empty"),
        ("scope", "null", "scope must not be empty"),
        ("not_before", "'infinity'", "not_before must not be infinite"),
    ] {
        let refused = refusal(&mut business, &call(&[(argument, value)])).await;
        assert!(refused.starts_with(&format!("22023 {named}")), "{argument} {value}: {refused}");
    }

    assert_eq!(committed(&database).await, (0, 0));
    submit(&mut business, &[("idempotency_key", &format!("'{}'", "k".repeat(200)))]).await;
}

#[tokio::test]
async fn a_command_for_later_waits_for_its_time() {
    let database = Database::fresh().await;
    let (gateway, worker) = (database.pool_as("spillway_gateway", 1), database.pool_as("spillway_worker", 1));
    let mut business = connect_as(&database, "service_role").await;
    let due: DateTime<Utc> = sqlx::query_scalar("select clock_timestamp() + interval '400 ms'")
        .fetch_one(&mut business)
        .await
        .unwrap();
    let soon = format!("'{}'", due.to_rfc3339());
    let (soon, _) = submit(&mut business, &[("not_before", &soon)]).await;
    let later = [("not_before", "clock_timestamp() + interval '1 h'"), ("idempotency_key", "'later'")];
    let (later, _) = submit(&mut business, &later).await;
    for id in [soon, later] {
        assert_eq!(get(&gateway, id).await.unwrap().unwrap().status, "accepted");
    }
    let next = || async { claim(&worker, SPEC, 10).await.unwrap().pop() };
    let claimed = eventually("a claim of what is due", Duration::from_secs(20), next).await;

    assert_eq!(claimed.command.unwrap().id, soon);
    assert!(claimed.claimed_at >= due, "{} is before {due}", claimed.claimed_at);
    assert!(claim(&worker, SPEC, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn only_the_service_role_may_submit() {
    let database = Database::fresh().await;
    let mut connection = database.connect().await;
    for (role, allowed) in [
        ("service_role", true),
        ("anon", false),
        ("authenticated", false),
        ("spillway_gateway", false),
        ("spillway_worker", false),
        ("spillway_operator", false),
    ] {
        assert_eq!(is_forbidden(&mut connection, role, &call(&[])).await, !allowed, "{role}");
    }
    for way_around in [
        "select spillway.enqueue('[]')",
        "select spillway.uuid_v7()",
        "select count(id) from spillway.command",
        "insert into spillway.command (id) values (null)",
        "select pgmq.send('sanmopia_document_rendering', '{}')",
    ] {
        assert!(is_forbidden(&mut connection, "service_role", way_around).await, "{way_around}");
    }
}

#[tokio::test]
async fn a_key_is_the_same_command_at_the_gateway_and_in_a_transaction() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let mut business = connect_as(&database, "service_role").await;
    let at_the_gateway = |key: &str, account: u128| {
        let command = command(key, Uuid::from_u128(account));
        let actor = Actor { scope: "branch-1".to_owned(), ..command.actor };
        NewCommand { actor, ..command }
    };
    // First in a transaction, then at the gateway.
    let (first, _) = submit(&mut business, &[]).await;
    let answers = enqueue(&gateway, &[at_the_gateway("key", 1), at_the_gateway("key", 2)]).await.unwrap();
    assert_eq!((answers[0].outcome, answers[0].id), (Outcome::Replayed, first));
    assert_eq!((answers[1].outcome, answers[1].id), (Outcome::Conflict, first));
    // And the other way round; the actor is no part of a command's identity, the scope is.
    let second = at_the_gateway("key-2", 1);
    enqueue(&gateway, std::slice::from_ref(&second)).await.unwrap();
    let key = ("idempotency_key", "'key-2'");
    assert_eq!(submit(&mut business, &[key, ("actor", "'somebody else'")]).await, (second.id, true));
    let refused = refusal(&mut business, &call(&[key, ("payload", "'{}'")])).await;
    assert!(refused.starts_with("23505 "), "{refused}");
    let system = command("key-3", Uuid::from_u128(1));
    enqueue(&gateway, std::slice::from_ref(&system)).await.unwrap();
    assert!(
        !submit(&mut business, &[("idempotency_key", "'key-3'")]).await.1,
        "the scope `system` is another"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_transactions_with_one_key_at_once_make_one_command() {
    let database = Database::fresh().await;
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let mut business = connect_as(&database, "service_role").await;
        tasks.push(tokio::spawn(async move { submit(&mut business, &[]).await }));
    }
    let mut answers = BTreeSet::new();
    let mut new = 0;
    for task in tasks {
        let (id, replayed) = task.await.unwrap();
        answers.insert(id);
        new += usize::from(!replayed);
    }

    assert_eq!((new, answers.len()), (1, 1));
    assert_eq!(committed(&database).await, (1, 1));
}

#[tokio::test]
async fn a_sync_that_is_submitted_counts_as_a_request() {
    let database = Database::fresh().await;
    let account = account(&database).await;
    let mut business = connect_as(&database, "service_role").await;
    let payload = format!("'{{\"work_type\": \"holdings\", \"account_id\": \"{account}\"}}'");
    submit(&mut business, &[("payload", &payload)]).await;
    submit(&mut business, &[("payload", &payload)]).await;

    let asked = "select concat_ws(' ', requested, waiting_command is null) from spillway.account_sync";
    assert_eq!(database.texts(asked).await, ["1 t"], "and no event becomes part of it");
}

/// The statements between the page's fences, in their order.
fn statements_of_the_page() -> Vec<String> {
    let page = std::fs::read_to_string("../../docs/transactional-enqueue.md").unwrap();
    let blocks = page.split("```sql\n").skip(1);
    blocks.map(|block| block.split_once("```").unwrap().0.to_owned()).collect()
}

#[tokio::test]
async fn the_pages_trigger_puts_a_command_in_with_the_row_and_takes_it_back_with_it() {
    let database = Database::fresh().await;
    let statements = statements_of_the_page();
    let [schema, call] = statements.as_slice() else { panic!("the page has {} blocks", statements.len()) };
    database.execute(schema).await;
    database.execute("grant insert, select on public.report_request to authenticated").await;
    let account = account(&database).await;
    let request = format!(
        "insert into public.report_request (account_id, branch, requested_by) values ('{account}', 'branch-1', 'user-1')"
    );
    // A user of the business, who may write its table and nothing of ours.
    let mut user = connect_as(&database, "authenticated").await;
    let mut transaction = user.begin().await.unwrap();
    sqlx::raw_sql(&request).execute(&mut *transaction).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(committed(&database).await, (0, 0));
    sqlx::raw_sql(&request).execute(&mut user).await.unwrap();
    assert_eq!(committed(&database).await, (1, 1));
    let claimed = claim(&database.pool_as("spillway_worker", 1), SPEC, 1).await.unwrap().remove(0);
    let job: AccountSync = serde_json::from_value(claimed.command.unwrap().payload).unwrap();
    assert_eq!(job, AccountSync { work_type: WorkType::Holdings, account_id: account });
    let row = "select concat_ws(' ', k.actor_id, k.scope, k.id = r.sync_command)
        from spillway.command k join public.report_request r on k.idempotency_key = 'report-request/' || r.id";
    assert_eq!(database.texts(row).await, ["user-1 branch-1 t"]);
    assert!(is_forbidden(&mut database.connect().await, "authenticated", &self::call(&[])).await);
    // The trigger refuses the row where the command is refused.
    let without_a_branch = format!(
        "insert into public.report_request (account_id, branch, requested_by) values ('{account}', '', 'u')"
    );
    assert_eq!(refusal(&mut user, &without_a_branch).await, "22023 scope must not be empty");
    assert_eq!(database.number("select count(*) from public.report_request").await, 1);

    // The call by hand, as the page has it.
    let mut business = connect_as(&database, "service_role").await;
    sqlx::raw_sql(call).execute(&mut business).await.unwrap();
    assert_eq!(committed(&database).await, (2, 2));
}

#[tokio::test]
async fn ids_made_in_the_database_are_of_version_7_and_in_the_order_of_time() {
    let database = Database::fresh().await;
    let shape = "select count(*) from generate_series(1, 1000), spillway.uuid_v7() id
        where id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'";
    assert_eq!(database.number(shape).await, 1000);
    let before = Utc::now().timestamp_millis();
    let ids = database.texts("select spillway.uuid_v7()::text from generate_series(1, 1000)").await;
    let after = Utc::now().timestamp_millis();
    let ids: Vec<Uuid> = ids.iter().map(|id| id.parse().unwrap()).collect();

    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1000);
    let times: Vec<i64> = ids.iter().map(|id| i64::try_from(id.as_u128() >> 80).unwrap()).collect();
    assert!(times.is_sorted(), "later ids are greater, to the millisecond");
    assert!(times.iter().all(|time| (before..=after).contains(time)), "{before} {times:?} {after}");
}
