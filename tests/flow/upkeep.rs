//! What processes do beside their work: they show themselves, one of them trims, one of them watches.

use serde_json::Value;
use testkit::{Database, eventually};

use crate::platform::{BUDGET, Platform, QUEUE, Running, client};
use crate::program::{Program, run};

const WORKER: &[&str] = &["--queue", "snaptrade-account-sync"];

fn spillway(platform: &Platform, arguments: &[&str]) -> Value {
    let output = run("spillway", arguments, &platform.settings());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn workers(seen: &Value) -> Vec<&Value> {
    let processes = seen["processes"].as_array().unwrap();
    processes.iter().filter(|process| process["queue"] == QUEUE).collect()
}

fn is_attended(seen: &Value) -> bool {
    !seen["queues_without_worker"].as_array().unwrap().iter().any(|queue| queue == QUEUE)
}

#[tokio::test]
async fn a_worker_is_in_the_list_while_it_runs_and_silent_once_it_is_killed() {
    let platform = Platform::with_accounts(0).await;
    let worker = Program::start("webhook-worker", WORKER, &platform.settings());
    let shown = async || {
        let seen = spillway(&platform, &["processes", "--json"]);
        let has_gateway =
            seen["processes"].as_array().unwrap().iter().any(|process| process["kind"] == "gateway");
        (is_attended(&seen) && has_gateway).then_some(seen)
    };
    let seen = eventually("gateway and worker show themselves", BUDGET, shown).await;
    assert_eq!(seen["live_versions"].as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(workers(&seen)[0]["slots"], 16);

    assert_eq!(worker.terminate().await, Some(0));
    let seen = spillway(&platform, &["processes", "--json"]);
    assert!(workers(&seen).is_empty() && !is_attended(&seen), "{seen}");

    let worker = Program::start("webhook-worker", WORKER, &platform.settings());
    eventually("the next one shows itself", BUDGET, shown).await;
    worker.kill();
    let later =
        "update spillway.process set last_seen_at = last_seen_at - interval '31 s' where queue is not null";
    platform.database.execute(later).await;
    let seen = spillway(&platform, &["processes", "--json"]);
    assert_eq!(workers(&seen)[0]["is_live"], false);
    assert!(!is_attended(&seen), "{seen}");
}

#[tokio::test]
async fn one_of_two_gateways_trims_and_one_watches() {
    let database = Database::fresh().await;
    let old = format!(
        "insert into pgmq.a_{QUEUE} (msg_id, enqueued_at, archived_at, vt, message)
         select n, now(), now() - interval '8 days', now(), '{{}}' from generate_series(1, 3000) n"
    );
    database.execute(&old).await;
    let direct = database.url_as("spillway_gateway");
    let gateways = [Running::pooled(&database, |_| ()).await, Running::start(&direct, |_| ()).await];
    eventually("what is past its time is gone", BUDGET, async || {
        let left = database.number(&format!("select count(*) from pgmq.a_{QUEUE}")).await;
        (left == 0).then_some(())
    })
    .await;
    let http = client();
    let metrics = async || {
        let mut texts = Vec::new();
        for gateway in &gateways {
            let answer = http.get(format!("{}/metrics", gateway.internal_url)).send().await.unwrap();
            texts.push(String::from_utf8(answer.bytes().await.unwrap().to_vec()).unwrap());
        }
        texts
    };
    let count = |texts: &[String], line: &str| texts.iter().filter(|text| text.contains(line)).count();
    let texts = eventually("one counts what it removed, and one watches", BUDGET, async || {
        let texts = metrics().await;
        let is_told = count(&texts, "spillway_trimmed_total{rule=\"archive\"} 3000") == 1
            && count(&texts, "\nspillway_oldest_snapshot_seconds ") == 1;
        is_told.then_some(texts)
    })
    .await;

    assert_eq!(count(&texts, &format!("spillway_dead_rows{{table=\"pgmq.q_{QUEUE}\"}}")), 1);
    assert_eq!(count(&texts, &format!("spillway_live_workers{{queue=\"{QUEUE}\"}} 0")), 1);
    let processes = "select count(*) from spillway.process where kind = 'gateway'";
    assert_eq!(database.number(processes).await, 2);

    for gateway in gateways {
        gateway.stop().await;
    }
    assert_eq!(database.number(processes).await, 0, "who stops in order leaves the list");
    let held = "select count(*) from spillway.elected_job where until > now()";
    assert_eq!(database.number(held).await, 0, "and gives its jobs back");
}

#[tokio::test]
async fn operators_see_what_is_past_its_time_and_who_holds_a_snapshot() {
    let platform = Platform::with_accounts(0).await;
    let open = "set application_name = 'nightly report'; begin isolation level repeatable read; select 1";
    let _session = platform.database.session(open).await;
    let seen = spillway(&platform, &["doctor", "--json"]);
    let holders = seen["snapshot_holders"].as_array().unwrap();
    let report = holders.iter().find(|holder| holder["application"] == "nightly report").unwrap();
    assert!(report["pid"].is_i64() && report["state"] == "idle in transaction", "{report}");

    let rules = spillway(&platform, &["trim", "--dry-run", "--json"]);
    assert_eq!(rules.as_array().map(Vec::len), Some(7));
    assert!(
        rules.as_array().unwrap().iter().all(|rule| rule["rows"] == 0 && rule["is_all"] == true),
        "{rules}"
    );
    for arguments in [&["processes"][..], &["doctor"], &["trim", "--dry-run"]] {
        let output = run("spillway", arguments, &platform.settings());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stdout.len() > 100, "{arguments:?}");
    }
}
