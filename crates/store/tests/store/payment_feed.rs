//! A payment's facts are numbered in the order of their commits, without gaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::Fault;
use store::inbox::Outcome::{Duplicate, Quarantined, Queued};
use store::inbox::{Delivery, Fate};
use testkit::Database;
use uuid::Uuid;

use crate::acl::is_forbidden;
use crate::samples::{accept, fact, outcomes};

/// Feeds whose numbers are not 1 to the number of their entries, as one snapshot shows them. A number that was given
/// before another one but committed after it would show as a gap.
const BROKEN: &str = "
    select count(*) from spillway.payment_feed p
    left join lateral (
      select count(*) as entries, min(e.seq) as first, max(e.seq) as last
      from spillway.payment_feed_entry e where e.tenant = p.tenant and e.payment_id = p.payment_id
    ) e on true
    where e.entries <> p.last_seq or e.last is distinct from p.last_seq or e.first is distinct from 1";

/// The same delivery with a command that the ledger refuses after the fact has its number.
fn refused(delivery: Delivery) -> Delivery {
    let Fate::Fact { payment_id, mut command } = delivery.fate else { panic!("a fact is wanted") };
    "\0".clone_into(&mut command.correlation_id);
    Delivery { fate: Fate::Fact { payment_id, command }, ..delivery }
}

async fn entries(database: &Database) -> Vec<String> {
    let sql = "select concat_ws(' ', e.tenant, right(e.payment_id::text, 1), e.seq, i.identity)
        from spillway.payment_feed_entry e join spillway.webhook_inbox i on i.id = e.inbox_id
        order by e.tenant, e.payment_id, e.seq";
    database.texts(sql).await
}

#[tokio::test]
async fn the_facts_of_a_batch_are_numbered_in_its_order_each_payment_for_itself() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let batch = [
        fact("e", "main", two),
        fact("d", "main", one),
        fact("c", "main", one),
        fact("b", "other", one),
        fact("a", "main", one),
    ];
    accept(&gateway, &batch).await.unwrap();
    accept(&gateway, &[fact("f", "main", one)]).await.unwrap();

    let expected = ["main 1 1 d", "main 1 2 c", "main 1 3 a", "main 1 4 f", "main 2 1 e", "other 1 1 b"];
    assert_eq!(entries(&database).await, expected);
}

#[tokio::test]
async fn what_is_no_new_fact_gets_no_number() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let payment = Uuid::from_u128(1);
    let first = fact("a", "main", payment);
    let first_again = accept(&gateway, &[first.clone(), fact("a", "main", payment)]).await.unwrap();
    let answer_was_lost = accept(&gateway, &[first]).await.unwrap();
    let other_body = Delivery { sha256: [8; 32], ..fact("a", "main", payment) };
    let set_aside = Delivery { fate: Fate::Quarantine("unknown"), ..fact("b", "main", payment) };
    let rest = accept(&gateway, &[fact("a", "main", payment), other_body, set_aside]).await.unwrap();

    assert_eq!(outcomes(&first_again), [Queued, Duplicate]);
    assert_eq!(outcomes(&answer_was_lost), [Queued]);
    assert_eq!(outcomes(&rest), [Duplicate, Quarantined, Quarantined]);
    assert_eq!(entries(&database).await, ["main 1 1 a"]);
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_leaves_no_gap() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    let payment = Uuid::from_u128(1);
    accept(&gateway, &[fact("a", "main", payment)]).await.unwrap();
    let batch = [fact("b", "main", payment), refused(fact("c", "main", payment))];
    let error = accept(&gateway, &batch).await.expect_err("jsonb holds no NUL");
    accept(&gateway, &[fact("b", "main", payment)]).await.unwrap();

    assert_eq!(error.fault(), Fault::Values);
    assert_eq!(entries(&database).await, ["main 1 1 a", "main 1 2 b"]);
}

/// Two gateways, three payments, batches in any order; every fact comes twice, and every fifth batch fails after its
/// facts were numbered.
#[tokio::test(flavor = "multi_thread")]
async fn however_many_come_at_once_no_snapshot_shows_a_gap() {
    const BATCHES: usize = 60;
    let database = Database::fresh().await;
    let gateways = [database.pool_as("spillway_gateway", 8), database.pool_as("spillway_gateway", 8)];
    let done = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (mut connection, done) = (database.connect().await, Arc::clone(&done));
        tokio::spawn(async move {
            let (mut looks, mut broken) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                broken += sqlx::query_scalar::<_, i64>(BROKEN).fetch_one(&mut connection).await.unwrap();
                looks += 1;
            }
            (looks, broken)
        })
    };
    let tasks: Vec<_> = (0..2 * BATCHES)
        .map(|task| {
            let (gateway, batch) = (gateways[task % 2].clone(), task / 2);
            tokio::spawn(async move {
                let mut facts: Vec<Delivery> = (0..6)
                    .map(|i| {
                        fact(
                            &format!("{batch}-{i}"),
                            "main",
                            Uuid::from_u128(1 + (i * 7 + batch as u128) % 3),
                        )
                    })
                    .collect();
                facts.rotate_left(task % 6);
                if batch % 5 == 0 {
                    facts.push(refused(fact(&format!("{task}-refused"), "main", Uuid::from_u128(1))));
                }
                accept(&gateway, &facts).await.is_ok()
            })
        })
        .collect();
    let mut taken = 0;
    for task in tasks {
        taken += usize::from(task.await.unwrap());
    }
    done.store(true, Ordering::Relaxed);
    let (looks, broken) = watcher.await.unwrap();

    assert_eq!(taken, 2 * BATCHES * 4 / 5);
    assert_eq!((looks > 0, broken), (true, 0), "{looks} looks");
    assert_eq!(database.number(BROKEN).await, 0);
    let facts = "select count(distinct inbox_id) from spillway.payment_feed_entry";
    assert_eq!(database.number(facts).await, i64::try_from(6 * BATCHES * 4 / 5).unwrap());
    assert_eq!(database.number("select count(*) from spillway.payment_feed").await, 3);
}

#[tokio::test]
async fn the_gateway_appends_and_everybody_else_only_reads() {
    let database = Database::fresh().await;
    let gateway = database.pool_as("spillway_gateway", 1);
    accept(&gateway, &[fact("a", "main", Uuid::from_u128(1))]).await.unwrap();
    let mut connection = database.connect().await;
    let append =
        "insert into spillway.payment_feed_entry values ('main', gen_random_uuid(), 1, gen_random_uuid())";
    let open = "insert into spillway.payment_feed values ('main', gen_random_uuid(), 1)";
    let number = "update spillway.payment_feed set last_seq = last_seq + 1 where tenant = 'main'";
    let read = "select count(seq) from spillway.payment_feed_entry";
    let change = "update spillway.payment_feed_entry set inbox_id = gen_random_uuid()";
    let forget = "delete from spillway.payment_feed_entry";
    let reset = "delete from spillway.payment_feed";
    for (role, allowed) in [
        ("spillway_gateway", vec![append, open, number]),
        ("spillway_worker", vec![read]),
        ("spillway_operator", vec![read]),
        ("service_role", vec![]),
        ("authenticated", vec![]),
        ("anon", vec![]),
    ] {
        for sql in [append, open, number, read, change, forget, reset] {
            let forbidden = is_forbidden(&mut connection, role, sql).await;
            assert_eq!(forbidden, !allowed.contains(&sql), "{role}: {sql}");
        }
    }
}
