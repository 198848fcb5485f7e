//! Facts are taken in in the order of the feed, each once, by any number of workers, and never past a gap.

use contract::Workload;
use contract::killbill::{Fact, TransactionStatus, TransactionType};
use rust_decimal::Decimal;
use store::ledger::{Done, succeed_with};
use store::payment::{Entry, Facts, take_in, waiting};
use store::queue::Claimed;
use store::{Effect, Fault, Pool};
use testkit::Database;
use uuid::Uuid;

use crate::acl::is_forbidden;
use crate::samples::{FACTS, accept, claim, fact as delivery};

const PAYMENT: Uuid = Uuid::from_u128(1);

/// A payment whose feed has entries named by the status that they tell.
struct Bench {
    database: Database,
    gateway: Pool,
    worker: Pool,
}

impl Bench {
    async fn with(statuses: &[&str]) -> Self {
        let database = Database::fresh().await;
        let gateway = database.pool_as("spillway_gateway", 1);
        let bench = Self { worker: database.pool_as("spillway_worker", 8), gateway, database };
        bench.announce(statuses).await;
        bench
    }

    async fn announce(&self, statuses: &[&str]) {
        for status in statuses {
            accept(&self.gateway, &[delivery(status, "main", PAYMENT)]).await.unwrap();
        }
    }

    async fn claim(&self) -> Claimed {
        claim(&self.worker, Workload::PaymentWebhookProcessing.queue(), 1).await.unwrap().remove(0)
    }

    /// What a run of this claim finds.
    async fn waiting(&self, run: &Claimed) -> Vec<Entry> {
        waiting(&self.worker, "main", PAYMENT, id(run), 100).await.unwrap()
    }

    /// The facts of a run that can read everything it finds, as a purchase of 15,000.
    async fn read(&self, run: &Claimed) -> Facts {
        let entries = self.waiting(run).await;
        let mut facts = Vec::new();
        for entry in entries {
            let status = format!(
                "select i.identity from spillway.payment_feed_entry e join spillway.webhook_inbox i on i.id = e.inbox_id
                 where e.seq = {}",
                entry.seq
            );
            facts.push((entry.seq, Ok(fact(&self.database.texts(&status).await[0]))));
        }
        of_payment(facts)
    }

    async fn succeed(&self, run: &Claimed, facts: Facts) -> Result<bool, store::Error> {
        let effect = Effect::PaymentFacts(Box::new(facts));
        let done = Done {
            fence: run.fence,
            command: id(run),
            started_at: run.claimed_at,
            result: effect.result(),
            request_ids: Vec::new(),
        };
        succeed_with(&self.worker, &done, &effect).await
    }

    /// The payment: how far, its state, its conflict.
    async fn payment(&self) -> Vec<String> {
        let sql = "select concat_ws(' ', applied_seq, state, conflict) from spillway.payment";
        self.database.texts(sql).await
    }

    /// Its facts: number, status or refusal, amount.
    async fn facts(&self) -> Vec<String> {
        let sql =
            "select concat_ws(' ', seq, status, refusal, amount) from spillway.payment_fact order by seq";
        self.database.texts(sql).await
    }
}

fn id(run: &Claimed) -> Uuid {
    run.command.as_ref().expect("it has one").id
}

fn fact(status: &str) -> Fact {
    Fact {
        payment_id: PAYMENT,
        transaction_id: Uuid::from_u128(7),
        transaction_type: TransactionType::Purchase,
        status: status.parse().unwrap(),
        amount: Some(Decimal::from(15_000)),
        currency: Some("KRW".to_owned()),
        effective_at: None,
    }
}

fn of_payment(facts: Vec<(i64, Result<Fact, &'static str>)>) -> Facts {
    Facts { tenant: "main".to_owned(), payment_id: PAYMENT, facts }
}

#[tokio::test]
async fn the_first_wake_up_takes_in_what_is_there_and_later_ones_find_nothing_left() {
    let bench = Bench::with(&["UNKNOWN", "PENDING", "SUCCESS"]).await;
    let (first, second) = (bench.claim().await, bench.claim().await);
    let facts = bench.read(&second).await;
    assert!(bench.succeed(&second, facts).await.unwrap());

    assert_eq!(bench.payment().await, ["3 succeeded"]);
    assert_eq!(bench.facts().await, ["1 UNKNOWN 15000", "2 PENDING 15000", "3 SUCCESS 15000"]);
    assert!(bench.waiting(&first).await.is_empty());
    let result = "select result ->> 'through' from spillway.command where status = 'succeeded'";
    assert_eq!(bench.database.texts(result).await, ["3"]);
    bench.announce(&["PAYMENT_FAILURE"]).await;
    assert_eq!(bench.waiting(&first).await.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [4]);
}

#[tokio::test]
async fn two_runs_that_read_the_same_entries_take_them_in_once() {
    let bench = Bench::with(&["PENDING", "SUCCESS"]).await;
    let (first, second) = (bench.claim().await, bench.claim().await);
    let (early, late) = (bench.read(&first).await, bench.read(&second).await);
    bench.announce(&["UNKNOWN"]).await;
    let third = bench.claim().await;
    let all = bench.read(&third).await;
    for (run, facts) in [(first, early), (third, all), (second, late)] {
        assert!(bench.succeed(&run, facts).await.unwrap());
    }

    assert_eq!(bench.payment().await, ["3 succeeded"]);
    assert_eq!(bench.facts().await.len(), 3);
}

#[tokio::test]
async fn facts_behind_a_gap_are_refused_and_nothing_moves() {
    let bench = Bench::with(&["PENDING", "SUCCESS"]).await;
    let run = bench.claim().await;
    for facts in [vec![(2, Ok(fact("SUCCESS")))], vec![(1, Ok(fact("PENDING"))), (3, Ok(fact("SUCCESS")))]] {
        let error = bench.succeed(&run, of_payment(facts)).await.expect_err("a number is missing");
        assert_eq!(error.fault(), Fault::Other);
    }

    assert_eq!(bench.payment().await, [""; 0]);
    assert_eq!(bench.facts().await, [""; 0]);
    assert_eq!(bench.database.number(&format!("select count(*) from pgmq.q_{FACTS}")).await, 2);
}

#[tokio::test]
async fn a_stale_lease_takes_nothing_in() {
    let bench = Bench::with(&["SUCCESS"]).await;
    let stale = bench.claim().await;
    let facts = bench.read(&stale).await;
    bench.database.execute(&format!("update pgmq.q_{FACTS} set vt = now() - interval '1 s'")).await;
    let run = bench.claim().await;

    assert!(!take_in(&bench.worker, stale.fence, &facts).await.unwrap());
    assert!(!bench.succeed(&stale, facts.clone()).await.unwrap());
    assert_eq!(bench.payment().await, [""; 0]);
    assert!(take_in(&bench.worker, run.fence, &facts).await.unwrap());
    assert!(bench.succeed(&run, facts).await.unwrap());
    assert_eq!(bench.payment().await, ["1 succeeded"]);
}

#[tokio::test]
async fn what_can_not_be_read_is_passed_with_its_reason_and_shown_to_its_own_command_again() {
    let bench = Bench::with(&["PENDING", "UNKNOWN", "SUCCESS"]).await;
    let (first, second, third) = (bench.claim().await, bench.claim().await, bench.claim().await);
    let mut facts = bench.read(&third).await;
    facts.facts[1].1 = Err("unknown_status");
    assert!(bench.succeed(&third, facts).await.unwrap());

    assert_eq!(bench.payment().await, ["3 succeeded"]);
    assert_eq!(bench.facts().await, ["1 PENDING 15000", "2 unknown_status", "3 SUCCESS 15000"]);
    assert!(bench.waiting(&first).await.is_empty());
    let own = bench.waiting(&second).await;
    assert_eq!(own.iter().map(|entry| (entry.seq, entry.is_own)).collect::<Vec<_>>(), [(2, true)]);
    // A newer worker can read it. What was read before stays, whoever reads it differently.
    let now = of_payment(vec![(2, Ok(fact("PAYMENT_FAILURE"))), (3, Ok(fact("UNKNOWN")))]);
    assert!(bench.succeed(&second, now).await.unwrap());
    assert_eq!(bench.payment().await, ["3 manual_reconcile status"]);
    assert_eq!(bench.facts().await[1..], ["2 PAYMENT_FAILURE 15000", "3 SUCCESS 15000"]);
    assert!(bench.waiting(&second).await.is_empty());
    assert_eq!(store::payment::to_reconcile(&bench.gateway).await.unwrap(), 1);
}

#[tokio::test]
async fn an_entry_whose_webhook_is_gone_has_no_body_and_a_page_has_an_end() {
    let bench = Bench::with(&["PENDING", "UNKNOWN", "SUCCESS"]).await;
    let run = bench.claim().await;
    bench.database.execute("delete from spillway.webhook_inbox where identity = 'UNKNOWN'").await;
    let bodies: Vec<bool> = bench.waiting(&run).await.iter().map(|entry| entry.body.is_some()).collect();
    let page = waiting(&bench.worker, "main", PAYMENT, id(&run), 2).await.unwrap();

    assert_eq!(bodies, [true, false, true]);
    assert_eq!(page.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn a_word_of_a_newer_version_is_not_folded_away() {
    let bench = Bench::with(&["PENDING", "SUCCESS"]).await;
    let (first, second) = (bench.claim().await, bench.claim().await);
    let mut facts = bench.read(&first).await;
    let later = of_payment(facts.facts.split_off(1));
    assert!(bench.succeed(&first, facts).await.unwrap());
    bench.database.execute("update spillway.payment_fact set status = 'DISPUTED'").await;

    assert!(bench.succeed(&second, later).await.is_err());
    assert_eq!(bench.payment().await, ["1 pending"]);
}

/// Eight at a time for one payment, each with whatever it finds, in pages of three.
#[tokio::test(flavor = "multi_thread")]
async fn however_many_take_in_at_once_each_number_is_passed_once_and_in_order() {
    const ENTRIES: usize = 40;
    let bench = Bench::with(&[]).await;
    let announced: Vec<String> = (0..ENTRIES).map(|i| i.to_string()).collect();
    bench.announce(&announced.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let spec = Workload::PaymentWebhookProcessing.queue();
    let runs = claim(&bench.worker, spec, u32::try_from(ENTRIES).unwrap()).await.unwrap();
    assert_eq!(runs.len(), ENTRIES);
    let tasks: Vec<_> = runs
        .into_iter()
        .map(|run| {
            let worker = bench.worker.clone();
            tokio::spawn(async move {
                loop {
                    let entries = waiting(&worker, "main", PAYMENT, id(&run), 3).await.unwrap();
                    if entries.is_empty() {
                        return;
                    }
                    let facts = entries.into_iter().map(|entry| (entry.seq, Ok(fact("PENDING")))).collect();
                    assert!(take_in(&worker, run.fence, &of_payment(facts)).await.unwrap());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }

    assert_eq!(bench.payment().await, [format!("{ENTRIES} pending")]);
    let seqs = "select count(*) from spillway.payment_fact where seq between 1 and 40 and status = 'PENDING'";
    assert_eq!(bench.database.number(seqs).await, 40);
    assert_eq!(bench.database.number("select count(*) from spillway.payment_fact").await, 40);
}

#[tokio::test]
async fn statuses_and_types_of_the_contract_are_words_of_the_table() {
    use strum::VariantArray;

    let bench = Bench::with(&["PENDING"]).await;
    let run = bench.claim().await;
    let mut facts = Vec::new();
    for status in TransactionStatus::VARIANTS {
        for transaction_type in TransactionType::VARIANTS {
            let seq = i64::try_from(facts.len() + 1).unwrap();
            let told = Fact { transaction_type: *transaction_type, status: *status, ..fact("PENDING") };
            facts.push((seq, Ok(Fact { transaction_id: Uuid::now_v7(), ..told })));
        }
    }
    assert!(take_in(&bench.worker, run.fence, &of_payment(facts)).await.unwrap());

    assert_eq!(bench.payment().await, ["42 unknown"]);
}

#[tokio::test]
async fn workers_take_in_operators_read_and_nobody_forgets() {
    let bench = Bench::with(&["SUCCESS"]).await;
    let run = bench.claim().await;
    let facts = bench.read(&run).await;
    assert!(bench.succeed(&run, facts).await.unwrap());
    let mut connection = bench.database.connect().await;
    let payment = "insert into spillway.payment (tenant, payment_id) values ('other', gen_random_uuid())";
    let fact = "insert into spillway.payment_fact (tenant, payment_id, seq, refusal)
        select tenant, payment_id, 2, 'not_json' from spillway.payment";
    let moved = "update spillway.payment set applied_seq = 2";
    let again = "update spillway.payment_fact set refusal = refusal where refusal is not null";
    let (read, facts) =
        ("select count(state) from spillway.payment", "select count(seq) from spillway.payment_fact");
    let to_reconcile = "select spillway.payments_to_reconcile()";
    let (forgotten, undone) = ("delete from spillway.payment_fact", "delete from spillway.payment");
    for (role, allowed) in [
        ("spillway_gateway", vec![to_reconcile]),
        ("spillway_worker", vec![payment, fact, moved, again, read, facts, to_reconcile]),
        ("spillway_operator", vec![read, facts, to_reconcile]),
        ("service_role", vec![]),
        ("authenticated", vec![]),
        ("anon", vec![]),
    ] {
        for sql in [payment, fact, moved, again, read, facts, to_reconcile, forgotten, undone] {
            let forbidden = is_forbidden(&mut connection, role, sql).await;
            assert_eq!(forbidden, !allowed.contains(&sql), "{role}: {sql}");
        }
    }
    let mut worker = crate::samples::connect_as(&bench.database, "spillway_worker").await;
    let rewritten =
        sqlx::query("update spillway.payment_fact set status = 'PENDING'").execute(&mut worker).await;
    assert_eq!(rewritten.unwrap().rows_affected(), 0, "what was read stays as it was read");
}
