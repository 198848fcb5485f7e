//! What is trimmed and what is not: rows of every status and age, in batches, with least rights.

use std::collections::BTreeSet;

use store::Pool;
use store::retention::{Mode, batch, rules};
use testkit::Database;
use uuid::Uuid;

use crate::samples::QUEUE;

const ENDED: [&str; 7] =
    ["succeeded", "dead_lettered", "replayed", "suppressed", "reconciled", "superseded", "cancelled"];
const ALIVE: [&str; 5] = ["accepted", "queued", "running", "retrying", "blocked"];

/// Commands named `STATUS/DAYS/LETTER`: of every status, so many days old, without a dead letter or with one.
async fn commands(database: &Database, days: &[i32], letters: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for status in ENDED.iter().chain(&ALIVE) {
        for days in days {
            for letter in letters {
                names.insert(format!("{status}/{days}/{letter}"));
            }
        }
    }
    let list = names.iter().map(|name| format!("('{name}')")).collect::<Vec<_>>().join(",");
    let alive = ALIVE.map(|status| format!("'{status}'")).join(",");
    let sql = format!(
        "create temporary table wanted as
         select name, split_part(name, '/', 1) as status, split_part(name, '/', 3) as letter,
           now() - split_part(name, '/', 2)::int * interval '1 day' as at,
           row_number() over (order by name) as n from (values {list}) as v (name);
         insert into spillway.command (
           id, workload, kind, payload_version, idempotency_key, request_hash, payload, actor_id, actor_type,
           scope, decision, class, queue, lease_seconds, max_attempts, status, traceparent, correlation_id,
           accepted_at, finished_at)
         select (left(spillway.uuid_v7_floor(at)::text, 24) || lpad(to_hex(n), 12, '0'))::uuid,
           'snaptrade-account-sync', 'snaptrade-account-sync', 1, name, '', '{{}}', 'a', 'service', 's', 'd', 1,
           '{QUEUE}', 60, 8, status, '', '', at, case when status not in ({alive}) then at end
         from wanted;
         insert into spillway.attempt_failure (command_id, msg_id, read_ct, class, code, message, worker)
         select k.id, 1, 1, 'transient', 'timeout', '', 'w' from spillway.command k;
         insert into spillway.dead_letter (
           id, command_id, workload, queue, msg_id, dead_msg_id, reason, detail_code, detail, policies, message,
           attempts, crashes, state, died_at, decided_at)
         select k.id, k.id, k.workload, k.queue, w.n, w.n, 'r', 'c', 'd', '{{}}', '{{}}', 1, 0, w.letter, w.at,
           case when w.letter <> 'open' then w.at end
         from wanted w join spillway.command k on k.idempotency_key = w.name where w.letter <> 'none'"
    );
    database.execute(&sql).await;
    names
}

/// Every batch of a rule from the beginning, and how many rows went.
async fn trim(pool: &Pool, rule: &str, limit: u32) -> u32 {
    let (mut after, mut gone) = (None, 0);
    loop {
        let done = batch(pool, rule, after, limit, Mode::Remove).await.unwrap();
        gone += done.past;
        after = done.reached;
        if done.is_last {
            return gone;
        }
    }
}

async fn names(database: &Database) -> BTreeSet<String> {
    database.texts("select idempotency_key from spillway.command").await.into_iter().collect()
}

#[tokio::test]
async fn commands_go_with_their_failures_ninety_days_after_their_end_and_no_others() {
    let database = Database::fresh().await;
    let mut expected = commands(&database, &[1, 89, 91, 400], &["none", "open", "suppressed"]).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let is_old = |name: &String| {
        ENDED.iter().any(|status| name.starts_with(&format!("{status}/"))) && {
            name.ends_with("/91/none") || name.ends_with("/400/none")
        }
    };
    expected.retain(|name| !is_old(name));
    // A round that ends early is begun anew by whoever comes next.
    batch(&gateway, "command", None, 20, Mode::Remove).await.unwrap();
    trim(&gateway, "command", 7).await;

    assert_eq!(names(&database).await, expected);
    let failures = database.number("select count(*) from spillway.attempt_failure").await;
    assert_eq!(usize::try_from(failures).unwrap(), expected.len());
    assert_eq!(trim(&gateway, "command", 7).await, 0);
}

#[tokio::test]
async fn dead_letters_go_ninety_days_after_they_were_decided_on_and_then_their_commands() {
    let database = Database::fresh().await;
    commands(&database, &[89, 91], &["open", "replayed", "suppressed", "reconciled"]).await;
    let worker = database.pool_as("spillway_worker", 1);
    let gone = trim(&worker, "dead_letter", 5).await;

    assert_eq!(usize::try_from(gone).unwrap(), 3 * (ENDED.len() + ALIVE.len()));
    let left = "select distinct concat_ws(' ', state, decided_at < now() - interval '90 days') from spillway.dead_letter order by 1";
    assert_eq!(database.texts(left).await, ["open", "reconciled f", "replayed f", "suppressed f"]);
    let commands = trim(&worker, "command", 5).await;
    assert_eq!(usize::try_from(commands).unwrap(), 3 * ENDED.len());
}

#[tokio::test]
async fn the_time_of_a_dead_letter_is_counted_from_the_decision() {
    let database = Database::fresh().await;
    commands(&database, &[400], &["open"]).await;
    database.execute("update spillway.dead_letter set state = 'suppressed'").await;

    assert_eq!(trim(&database.pool_as("spillway_worker", 1), "dead_letter", 100).await, 0);
    let undecided = "select count(*) from spillway.dead_letter where decided_at is null";
    assert_eq!(database.number(undecided).await, 0);
}

#[tokio::test]
async fn a_cancelled_command_stays_while_its_message_waits() {
    let database = Database::fresh().await;
    commands(&database, &[100], &["none"]).await;
    let send = format!(
        "insert into pgmq.q_{QUEUE} (vt, enqueued_at, message)
         select now() + interval '300 days', accepted_at, jsonb_build_object('command', id) from spillway.command
         where status = 'cancelled' union all select now(), now() - interval '200 days', '{{\"command\": \"none\"}}'"
    );
    database.execute(&send).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    trim(&gateway, "command", 100).await;
    assert!(names(&database).await.contains("cancelled/100/none"));

    database.execute(&format!("delete from pgmq.q_{QUEUE}")).await;
    assert_eq!(trim(&gateway, "command", 100).await, 1);
}

#[tokio::test]
async fn a_row_that_somebody_has_locked_is_left_for_the_next_round() {
    use sqlx::Connection;

    let database = Database::fresh().await;
    commands(&database, &[100], &["none"]).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let mut other = database.connect().await;
    let mut transaction = other.begin().await.unwrap();
    let lock = "select from spillway.command where status = 'succeeded' for update";
    sqlx::raw_sql(lock).execute(&mut *transaction).await.unwrap();
    let without = trim(&gateway, "command", 100).await;
    transaction.rollback().await.unwrap();

    assert_eq!(usize::try_from(without).unwrap(), ENDED.len() - 1);
    assert_eq!(trim(&gateway, "command", 100).await, 1);
}

/// Inbox rows named `STATE/DAYS/COMMAND`; the command is one of [`commands`], or gone, or none.
async fn inbox(database: &Database) -> BTreeSet<String> {
    commands(database, &[1], &["none", "open", "suppressed"]).await;
    let mut names = BTreeSet::new();
    for state in ["accepted", "quarantined", "refused", "failed"] {
        for days in [1, 29, 31, 89, 91] {
            for command in ["none", "gone", "alive", "ended", "open", "decided"] {
                names.insert(format!("{state}/{days}/{command}"));
            }
        }
    }
    let list = names.iter().map(|name| format!("('{name}')")).collect::<Vec<_>>().join(",");
    let sql = format!(
        "insert into spillway.webhook_inbox (
           id, source, identity, state, body, body_sha256, doc, command_id, traceparent, correlation_id, accepted_at)
         select (left(spillway.uuid_v7_floor(at)::text, 24) || lpad(to_hex(n), 12, '0'))::uuid, 'killbill', name,
           split_part(name, '/', 1), 'body', '', '{{}}',
           case split_part(name, '/', 3)
             when 'none' then null
             when 'gone' then gen_random_uuid()
             else (select k.id from spillway.command k where k.idempotency_key = case split_part(name, '/', 3)
               when 'alive' then 'running/1/none' when 'ended' then 'succeeded/1/none'
               when 'open' then 'dead_lettered/1/open' else 'suppressed/1/suppressed' end)
           end, '', '', at
         from (select name, now() - split_part(name, '/', 2)::int * interval '1 day' as at,
           row_number() over (order by name) as n from (values {list}) as v (name)) as w;
         insert into spillway.inbox_repeat (inbox_id, first_at, last_at)
         select id, now(), now() from spillway.webhook_inbox"
    );
    database.execute(&sql).await;
    names
}

#[tokio::test]
async fn bodies_go_after_thirty_days_and_identities_after_ninety_unless_their_command_needs_them() {
    let database = Database::fresh().await;
    let all = inbox(&database).await;
    let worker = database.pool_as("spillway_worker", 1);
    trim(&worker, "webhook_body", 7).await;
    let needed = |name: &str| name.ends_with("/alive") || name.ends_with("/open");
    let older = |name: &str, than: i32| name.split('/').nth(1).unwrap().parse::<i32>().unwrap() > than;
    let expected: BTreeSet<String> =
        all.iter().filter(|name| needed(name) || !older(name, 30)).cloned().collect();
    let with_body = "select identity from spillway.webhook_inbox where body is not null and doc is not null";
    assert_eq!(database.texts(with_body).await.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(
        database.number("select count(*) from spillway.webhook_inbox where body_sha256 is null").await,
        0
    );

    trim(&worker, "webhook_inbox", 7).await;
    let expected: BTreeSet<String> =
        all.iter().filter(|name| needed(name) || !older(name, 90)).cloned().collect();
    let left = database.texts("select identity from spillway.webhook_inbox").await;
    assert_eq!(left.into_iter().collect::<BTreeSet<_>>(), expected);
    let repeats = database.number("select count(*) from spillway.inbox_repeat").await;
    assert_eq!(usize::try_from(repeats).unwrap(), expected.len());
}

#[tokio::test]
async fn archives_go_after_seven_days_and_waiting_messages_never() {
    let database = Database::fresh().await;
    for queue in [QUEUE.to_owned(), format!("{QUEUE}_dead"), "sanmopia_document_rendering".to_owned()] {
        let sql = format!(
            "insert into pgmq.a_{queue} (msg_id, enqueued_at, archived_at, vt, message)
             select n, now(), now() - (n % 20) * interval '1 day', now(), '{{}}' from generate_series(1, 200) n;
             insert into pgmq.q_{queue} (vt, enqueued_at, message) values (now(), now() - interval '1 year', '{{}}')"
        );
        database.execute(&sql).await;
    }
    let gateway = database.pool_as("spillway_gateway", 1);
    // The twenty ages 0 to 19 days: those from 7 on go, by tens, since a moment passed.
    let counted = batch(&gateway, "archive", None, 1_000, Mode::Count).await.unwrap();
    assert_eq!((counted.past, counted.is_last), (3 * 130, true));
    assert_eq!(trim(&gateway, "archive", 100).await, 3 * 130);

    for queue in [QUEUE, &format!("{QUEUE}_dead"), "sanmopia_document_rendering"] {
        let young =
            format!("select count(*) from pgmq.a_{queue} where archived_at > now() - interval '7 days'");
        assert_eq!(database.number(&young).await, 70);
        assert_eq!(database.number(&format!("select count(*) from pgmq.a_{queue}")).await, 70);
        assert_eq!(database.number(&format!("select count(*) from pgmq.q_{queue}")).await, 1);
    }
}

#[tokio::test]
async fn counting_removes_nothing() {
    let database = Database::fresh().await;
    let before = commands(&database, &[100], &["none", "suppressed"]).await;
    let operator = database.pool_as("spillway_operator", 1);
    for rule in rules(&operator).await.unwrap() {
        let found = batch(&operator, &rule.rule, None, 1_000, Mode::Count).await.unwrap();
        let expected = match rule.rule.as_str() {
            "command" => ENDED.len(),
            "dead_letter" => ENDED.len() + ALIVE.len(),
            _ => 0,
        };
        assert_eq!((usize::try_from(found.past).unwrap(), found.is_last), (expected, true), "{}", rule.rule);
    }

    assert_eq!(names(&database).await, before);
    assert_eq!(
        database.number("select count(*) from spillway.dead_letter").await,
        i64::try_from(before.len() / 2).unwrap()
    );
}

#[tokio::test]
async fn a_batch_looks_at_no_more_than_it_was_told() {
    let database = Database::fresh().await;
    commands(&database, &[100], &["none"]).await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let first = batch(&gateway, "command", None, 5, Mode::Remove).await.unwrap();
    assert!(first.past <= 5 && !first.is_last && first.reached.is_some(), "{first:?}");
    for (rule, limit) in [("command", 0), ("command", 10_001), ("no-such-rule", 1)] {
        assert!(batch(&gateway, rule, None, limit, Mode::Remove).await.is_err(), "{rule} {limit}");
    }
    let none = Uuid::max();
    assert_eq!(batch(&gateway, "command", Some(none), 5, Mode::Remove).await.unwrap().past, 0);
}

#[tokio::test]
async fn the_old_rows_are_found_by_an_index() {
    let database = Database::fresh().await;
    let mut connection = database.connect().await;
    for (rows, index) in [
        (
            "spillway.webhook_inbox where body is not null and id > $1 and id < $2 order by id",
            "webhook_inbox_body",
        ),
        ("spillway.webhook_inbox where id > $1 and id < $2 order by id", "webhook_inbox_pkey"),
        ("spillway.command where id > $1 and id < $2 order by id", "command_pkey"),
    ] {
        let explain = format!(
            "set enable_seqscan = off; set enable_bitmapscan = off; explain select id from {} limit 1000",
            rows.replace("$1", &format!("'{}'", Uuid::nil())).replace("$2", &format!("'{}'", Uuid::max()))
        );
        let plan: Vec<String> = sqlx::Executor::fetch_all(&mut connection, sqlx::raw_sql(&explain))
            .await
            .unwrap()
            .iter()
            .map(|row| sqlx::Row::get(row, 0))
            .collect();
        assert!(plan.iter().any(|line| line.contains(index)), "{plan:?}");
        assert!(!plan.iter().any(|line| line.contains("Sort")), "{plan:?}");
    }
}

#[tokio::test]
async fn the_page_of_migrations_names_the_days_that_the_rules_hold() {
    let database = Database::fresh().await;
    let page = std::fs::read_to_string("../../migrations/README.md").unwrap();
    let lines: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "))
        .collect();
    let days = |text: &str| -> BTreeSet<u64> {
        let words: Vec<&str> = text.split([' ', ',', ';']).collect();
        let pairs = words.windows(2).filter(|pair| matches!(pair[1], "day" | "days"));
        pairs.map(|pair| pair[0].parse().unwrap()).collect()
    };
    let rules = rules(&database.pool(1)).await.unwrap();
    for (table, text) in &lines {
        let held: BTreeSet<u64> = rules
            .iter()
            .filter(|rule| rule.relation == *table)
            .map(|rule| rule.keep.as_secs() / 86_400)
            .collect();
        assert_eq!(days(text), held, "{table}: {text}");
    }
    for rule in &rules {
        assert!(lines.iter().any(|(table, _)| *table == rule.relation), "{rule:?} is not on the page");
    }
}

#[tokio::test]
async fn tables_that_live_by_change_are_vacuumed_by_number() {
    let database = Database::fresh().await;
    let queues =
        "select count(*) from spillway.workload w join pg_class c on c.oid = ('pgmq.q_' || w.queue)::regclass
      where c.reloptions @> '{autovacuum_vacuum_scale_factor=0,autovacuum_vacuum_threshold=5000,
        autovacuum_vacuum_cost_delay=0,vacuum_index_cleanup=on,vacuum_truncate=off,fillfactor=50}'";
    assert_eq!(database.number(queues).await, 8);
    for (table, wanted) in [
        ("account_sync", "autovacuum_vacuum_scale_factor=0"),
        ("command", "autovacuum_vacuum_scale_factor=0.01"),
        ("webhook_inbox", "autovacuum_vacuum_scale_factor=0.01"),
        ("process", "autovacuum_vacuum_scale_factor=0"),
        ("elected_job", "autovacuum_vacuum_scale_factor=0"),
    ] {
        let sql = format!(
            "select count(*) from pg_class where oid = 'spillway.{table}'::regclass and '{wanted}' = any (reloptions)"
        );
        assert_eq!(database.number(&sql).await, 1, "{table}");
    }
}
