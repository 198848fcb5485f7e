//! From Kill Bill's pushes to what is known of payments, with worker processes that die and facts that can't be read.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::eventually;
use testkit::sandbox::killbill::{Callback, FACTS_OF_TEN, Habits, Payment, payments, push};
use uuid::Uuid;

use crate::platform::{ADMISSION_TOKEN, BUDGET, Platform, Running};
use crate::program::{Program, run};

const WORKER: &[&str] = &["--queue", "payment-webhook-processing"];
const QUEUE: &str = "sanmopia_payment_webhook_processing";
const SEED: u64 = 20_261_203;

/// Payments of the large test, in tens; `SPILLWAY_TEST_PAYMENTS=2000` makes it 10,000 facts.
const PAYMENTS: usize = 200;

/// Payments whose feed has a gap, or was not taken in to its end.
const BROKEN: &str = "
    select count(*) from spillway.payment_feed e
    left join spillway.payment p on p.tenant = e.tenant and p.payment_id = e.payment_id
    left join lateral (
      select count(*) as facts, min(f.seq) as first, max(f.seq) as last from spillway.payment_fact f
      where f.tenant = e.tenant and f.payment_id = e.payment_id and f.refusal is null
    ) f on true
    where p.applied_seq is distinct from e.last_seq or f.facts <> e.last_seq or f.first is distinct from 1
      or f.last is distinct from e.last_seq";

/// Payments of which the two tenants know different things.
const DIFFERENT: &str = "
    select count(*) from spillway.payment o
    full join spillway.payment s on s.payment_id = o.payment_id and s.tenant = 'shuffled'
    where o.tenant = 'ordered' and (o.state, o.conflict, o.applied_seq) is distinct from (s.state, s.conflict, s.applied_seq)";

fn callback(gateway: &Running, tenant: &str) -> Callback {
    let url = format!("{}/webhooks/killbill/{tenant}", gateway.internal_url);
    Callback { url, admission: ADMISSION_TOKEN.to_owned() }
}

fn told(payments: &[Payment]) -> Vec<String> {
    payments.iter().flat_map(|payment| payment.notifications.clone()).collect()
}

async fn all_have_ended(platform: &Platform, commands: usize) {
    let commands = i64::try_from(commands).unwrap();
    eventually("every fact's command has ended", 4 * BUDGET, async || {
        let ended = platform.count("spillway.command where finished_at is not null").await;
        (ended == commands).then_some(())
    })
    .await;
}

/// Payment and state, in one order.
async fn states(platform: &Platform, tenant: &str) -> BTreeMap<String, String> {
    let sql =
        format!("select concat_ws(' ', payment_id, state) from spillway.payment where tenant = '{tenant}'");
    let rows = platform.database.texts(&sql).await;
    rows.iter().filter_map(|row| row.split_once(' ')).map(|(id, state)| (id.into(), state.into())).collect()
}

/// Two worker processes, of which one is killed and replaced; one tenant is told everything in order, the other one in
/// no order, much of it twice, and again for answers that came too late.
#[tokio::test(flavor = "multi_thread")]
async fn facts_in_any_order_and_number_come_to_what_they_come_to_in_order() {
    let n = std::env::var("SPILLWAY_TEST_PAYMENTS").map_or(PAYMENTS, |n| n.parse().expect("a number"));
    let platform = Platform::with(2, 0).await;
    let happened = payments(SEED, n);
    let (notifications, facts) = (told(&happened), n / 10 * FACTS_OF_TEN);
    let (first, second) = (
        Program::start("webhook-worker", WORKER, &platform.settings()),
        Program::start("webhook-worker", WORKER, &platform.settings()),
    );
    let (ordered, shuffled) =
        (callback(&platform.gateways[0], "ordered"), callback(&platform.gateways[1], "shuffled"));
    let (calm, wild) = (
        Habits::default(),
        Habits {
            pace: 1e-6,
            duplicates: 0.3,
            late_answers: 0.2,
            disorder: u32::try_from(facts).unwrap(),
            at_once: 16,
        },
    );
    let killing = async {
        let running = format!("pgmq.q_{QUEUE} where vt > now() and vt < spillway.parked_until()");
        eventually("the workers are in the middle of it", BUDGET, async || {
            let has_begun = platform.count("spillway.payment").await >= 20;
            (has_begun && platform.count(&running).await > 0).then_some(())
        })
        .await;
        first.kill();
        // The leases of the dead worker end in a minute; this test has no minute.
        platform
            .database
            .execute(&format!("update {}", running.replace("where", "set vt = now() where")))
            .await;
        Program::start("webhook-worker", WORKER, &platform.settings())
    };
    let (in_order, at_random, third) = tokio::join!(
        push(&ordered, &notifications, &calm, SEED),
        push(&shuffled, &notifications, &wild, SEED),
        killing
    );
    all_have_ended(&platform, 2 * facts).await;

    assert_eq!((in_order.notifications, in_order.given_up), (facts, 0));
    assert!(at_random.requests > facts * 3 / 2, "{at_random:?}");
    assert_eq!(platform.count("spillway.command where status <> 'succeeded'").await, 0);
    assert_eq!(platform.count("spillway.payment_feed").await, i64::try_from(2 * n).unwrap());
    assert_eq!(platform.database.number(BROKEN).await, 0);
    assert_eq!(platform.database.number(DIFFERENT).await, 0);
    let expected: BTreeMap<String, String> =
        happened.iter().map(|payment| (payment.id.to_string(), payment.comes_to.to_owned())).collect();
    assert_eq!(states(&platform, "shuffled").await, expected);
    assert_eq!(states(&platform, "ordered").await, expected);
    assert_eq!(second.terminate().await, Some(0));
    assert_eq!(third.terminate().await, Some(0));
}

#[tokio::test]
async fn a_feed_of_more_than_a_page_is_taken_in_to_its_end() {
    const FACTS: u128 = 300;
    let platform = Platform::with_accounts(0).await;
    let notification = &payments(SEED, 1)[0].notifications[0];
    let outside: Value = serde_json::from_str(notification).unwrap();
    let inside: Value = serde_json::from_str(outside["metaData"].as_str().unwrap()).unwrap();
    let transaction = inside["paymentTransactionId"].as_str().unwrap();
    let told: Vec<String> =
        (1..=FACTS).map(|i| notification.replace(transaction, &Uuid::from_u128(i).to_string())).collect();
    let habits = Habits { at_once: 16, ..Habits::default() };
    push(&callback(&platform.gateways[0], "main"), &told, &habits, SEED).await;
    let worker = Program::start("webhook-worker", WORKER, &platform.settings());
    all_have_ended(&platform, told.len()).await;

    let known = "select concat_ws(' ', applied_seq, state) from spillway.payment";
    assert_eq!(platform.database.texts(known).await, [format!("{FACTS} pending")]);
    assert_eq!(platform.database.number(BROKEN).await, 0);
    assert_eq!(worker.terminate().await, Some(0));
}

/// Changes the inbox of the notification with this place.
async fn damage(platform: &Platform, place: usize, change: &str) {
    let sql = format!(
        "update spillway.webhook_inbox set doc = {change}
         where id = (select id from spillway.webhook_inbox order by id offset {place} limit 1)"
    );
    platform.database.execute(&sql).await;
}

#[tokio::test]
async fn facts_that_can_not_be_read_are_dead_letters_and_hold_nobody_up() {
    let platform = Platform::with_accounts(0).await;
    let spillway = |arguments: &[&str]| {
        let output = run("spillway", arguments, &platform.settings());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
    };
    // The eighth payment is told to be pending, successful and failed; the first one to be pending and successful.
    let happened = payments(SEED, 8);
    let told = [happened[7].notifications.as_slice(), &happened[0].notifications].concat();
    push(&callback(&platform.gateways[0], "main"), &told, &Habits::default(), SEED).await;
    platform.database.execute("create table intact as select id, doc from spillway.webhook_inbox").await;
    let swap = |word: &str| {
        format!("jsonb_set(doc, '{{metaData}}', to_jsonb(replace(doc ->> 'metaData', '{word}', 'DISPUTED')))")
    };
    damage(&platform, 2, &swap("PAYMENT_FAILURE")).await;
    damage(&platform, 3, "null").await;
    damage(&platform, 4, "jsonb_set(doc, '{objectId}', to_jsonb(gen_random_uuid()))").await;
    let worker = Program::start("webhook-worker", WORKER, &platform.settings());
    all_have_ended(&platform, told.len()).await;

    let letters =
        "select concat_ws(' ', l.reason, l.detail_code, l.state) from spillway.dead_letter l order by 1";
    assert_eq!(
        platform.database.texts(letters).await,
        [
            "payload_invalid body_missing open",
            "payload_invalid other_payment open",
            "unsupported_kind unknown_status open"
        ]
    );
    let known = "select concat_ws(' ', applied_seq, state) from spillway.payment order by 1";
    assert_eq!(platform.database.texts(known).await, ["2 init", "3 succeeded"]);

    // A newer worker knows the word.
    platform
        .database
        .execute("update spillway.webhook_inbox i set doc = t.doc from intact t where t.id = i.id")
        .await;
    let open = spillway(&["dead-letters", "list", "--json"]);
    let letter =
        open.as_array().unwrap().iter().find(|letter| letter["reason"] == "unsupported_kind").unwrap();
    let id = letter["id"].as_str().unwrap();
    spillway(&["dead-letters", "replay", id, "--why", "the worker is newer now", "--as", "kim", "--json"]);
    eventually("what was set aside is taken in", BUDGET, async || {
        let known = platform.database.texts(known).await;
        (known == ["2 init", "3 manual_reconcile"]).then_some(())
    })
    .await;
    assert_eq!(platform.count("spillway.payment_fact where refusal is not null").await, 2);
    let waiting = spillway(&["payments", "--json"]);
    assert_eq!((waiting.as_array().map(Vec::len), &waiting[0]["conflict"]), (Some(1), &json!("status")));
    let shown = spillway(&["payments", "show", "main", &happened[7].id.to_string(), "--json"]);
    assert_eq!((&shown["state"], &shown["applied_seq"]), (&json!("manual_reconcile"), &json!(3)));
    assert_eq!(
        (&shown["facts"][2]["status"], &shown["facts"][0]["amount"]),
        (&json!("PAYMENT_FAILURE"), &json!("15000"))
    );
    assert_eq!(worker.terminate().await, Some(0));
}
