//! The gate: who gets a key, who waits for it, and that nobody waits for nothing.

use std::collections::HashMap;
use std::time::Duration;

use store::Pool;
use store::ledger::drop_closed;
use store::limit::{self, key_of_queue};
use store::queue::{Ask, Claimed, Fence, hand_back};
use testkit::Database;
use uuid::Uuid;

use crate::queue::{SPEC, expire_leases};
use crate::samples::{QUEUE, claim, command, enqueue};

struct Gate {
    database: Database,
    worker: Pool,
    operator: Pool,
}

impl Gate {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let (worker, operator) =
            (database.pool_as("spillway_worker", 8), database.pool_as("spillway_operator", 1));
        Self { database, worker, operator }
    }

    /// Sends a message that needs these keys, and answers its id.
    async fn send(&self, keys: &[(&str, i32)]) -> i64 {
        let limits: HashMap<&str, i32> = keys.iter().copied().collect();
        let headers = serde_json::json!({ "limits": limits });
        self.database.number(&format!("select pgmq.send('{QUEUE}', '{{}}', '{headers}'::jsonb)")).await
    }

    async fn claim(&self, limit: u32) -> Vec<i64> {
        ids(&claim(&self.worker, SPEC, limit).await.unwrap())
    }

    async fn settle(&self, msg_id: i64) {
        let read_ct = format!("select read_ct::bigint from pgmq.q_{QUEUE} where msg_id = {msg_id}");
        let read_ct = i32::try_from(self.database.number(&read_ct).await).unwrap();
        assert!(drop_closed(&self.worker, Fence { queue: QUEUE, msg_id, read_ct }).await.unwrap());
    }

    async fn in_use(&self, key: &str) -> i64 {
        self.database
            .number(&format!("select in_use::bigint from spillway.limit_key where key = '{key}'"))
            .await
    }

    /// What is wrong with the gate: keys over their cap or with a wrong count, parked messages in no line, and lines
    /// in front of an open key in which nobody is called.
    async fn faults(&self) -> Vec<String> {
        let sql = format!(
            "select 'over its cap: ' || key from spillway.limit_key where in_use > cap
             union all
             select 'counted wrongly: ' || k.key from spillway.limit_key k
             where k.in_use <> (select count(*) from spillway.limit_hold h where h.key = k.key)
             union all
             select 'parked in no line: ' || q.msg_id from pgmq.q_{QUEUE} q
             where q.vt = spillway.parked_until()
               and not exists (select from spillway.limit_wait w where w.queue = '{QUEUE}' and w.msg_id = q.msg_id)
             union all
             select 'waits for nothing: ' || k.key from spillway.limit_key k
             where k.paused_at is null and not k.recall
               and (select count(*) from spillway.limit_wait w where w.key = k.key and w.woken_at is not null)
                 < least(k.cap - k.in_use, (select count(*) from spillway.limit_wait w where w.key = k.key))"
        );
        self.database.texts(&sql).await
    }
}

fn ids(claimed: &[Claimed]) -> Vec<i64> {
    claimed.iter().map(|message| message.fence.msg_id).collect()
}

#[tokio::test]
async fn a_key_lets_as_many_in_as_its_cap_and_the_others_in_their_order() {
    let gate = Gate::new().await;
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(gate.send(&[("a", 2)]).await);
    }
    let free = gate.send(&[]).await;

    assert_eq!(gate.claim(10).await, [sent[0], sent[1], free]);
    assert_eq!(gate.claim(10).await, [0; 0]);
    gate.settle(sent[1]).await;
    assert_eq!(gate.claim(10).await, [sent[2]]);
    gate.settle(sent[0]).await;
    gate.settle(sent[2]).await;
    assert_eq!(gate.claim(10).await, [sent[3], sent[4]]);
    assert_eq!(gate.in_use("a").await, 2);
    assert_eq!(gate.faults().await, [""; 0]);
}

#[tokio::test]
async fn a_message_gets_all_of_its_keys_or_none() {
    let gate = Gate::new().await;
    let holds_b = gate.send(&[("b", 1)]).await;
    assert_eq!(gate.claim(1).await, [holds_b]);
    let wants_both = gate.send(&[("a", 1), ("b", 1)]).await;
    let wants_a = gate.send(&[("a", 1)]).await;

    assert_eq!(gate.claim(10).await, [wants_a]);
    assert_eq!(gate.claim(10).await, [0; 0]);
    gate.settle(holds_b).await;
    // Called for b, refused by a: b stays free for others.
    assert_eq!(gate.claim(10).await, [0; 0]);
    let wants_b = gate.send(&[("b", 1)]).await;
    assert_eq!(gate.claim(10).await, [wants_b]);
    gate.settle(wants_a).await;
    gate.settle(wants_b).await;
    assert_eq!(gate.claim(10).await, [wants_both]);
    assert_eq!(gate.faults().await, [""; 0]);
}

#[tokio::test]
async fn a_redelivered_message_inherits_what_its_dead_holder_had() {
    let gate = Gate::new().await;
    let (first, second) = (gate.send(&[("a", 1)]).await, gate.send(&[("a", 1)]).await);
    assert_eq!(gate.claim(10).await, [first]);
    gate.database.execute(&format!("update pgmq.q_{QUEUE} set vt = now() where msg_id = {first}")).await;

    assert_eq!(gate.claim(10).await, [first], "and the second one is not let in beside it");
    assert_eq!(gate.in_use("a").await, 1);
    gate.settle(first).await;
    assert_eq!(gate.claim(10).await, [second]);
}

#[tokio::test]
async fn a_message_that_is_given_back_gives_its_keys_back() {
    let gate = Gate::new().await;
    let (first, second) = (gate.send(&[("a", 1)]).await, gate.send(&[("a", 1)]).await);
    let claimed = claim(&gate.worker, SPEC, 10).await.unwrap();
    assert_eq!(ids(&claimed), [first]);
    assert!(hand_back(&gate.worker, claimed[0].fence, None, Duration::from_mins(1)).await.unwrap());

    assert_eq!(gate.claim(10).await, [second]);
    gate.settle(second).await;
    expire_leases(&gate.database).await;
    assert_eq!(gate.claim(10).await, [first]);
}

#[tokio::test]
async fn who_misses_a_call_is_called_again() {
    let gate = Gate::new().await;
    let (first, second) = (gate.send(&[("a", 1)]).await, gate.send(&[("a", 1)]).await);
    assert_eq!(gate.claim(10).await, [first]);
    // As a claim that saw it due, waited, and found it parked holds it until its transaction ends.
    let hold = format!("begin; select 1 from pgmq.q_{QUEUE} where msg_id = {second} for update");
    let mut holder = gate.database.session(&hold).await;
    gate.settle(first).await;

    assert_eq!(gate.claim(10).await, [0; 0]);
    assert_eq!(limit::recall(&gate.worker).await.unwrap(), 0, "its row is still held");
    sqlx::raw_sql("commit").execute(&mut holder).await.unwrap();
    assert_eq!(limit::recall(&gate.worker).await.unwrap(), 1);
    assert_eq!(gate.claim(10).await, [second]);
    assert_eq!(limit::recall(&gate.worker).await.unwrap(), 0);
}

#[tokio::test]
async fn a_paused_key_lets_nobody_in_until_it_is_resumed() {
    let gate = Gate::new().await;
    let first = gate.send(&[("a", 2)]).await;
    assert_eq!(gate.claim(10).await, [first]);
    limit::pause(&gate.operator, "a", "ann", "the provider asked for it").await.unwrap();
    let second = gate.send(&[("a", 2)]).await;

    assert_eq!(gate.claim(10).await, [0; 0]);
    let keys = limit::list(&gate.operator, 10).await.unwrap();
    assert_eq!((keys[0].key.as_str(), keys[0].in_use, keys[0].waiting), ("a", 1, 1));
    assert_eq!(keys[0].paused_by.as_deref(), Some("ann"));
    assert!(limit::resume(&gate.operator, "a", "ann", "well again").await.unwrap());
    assert_eq!(gate.claim(10).await, [second]);
    assert!(
        !limit::resume(&gate.operator, "a", "ann", "well again").await.unwrap(),
        "it was not paused any more"
    );
    let audit = "select concat_ws(' ', actor, action, target, why) from spillway.operator_action order by id";
    assert_eq!(
        gate.database.texts(audit).await,
        ["ann pause a the provider asked for it", "ann resume a well again"]
    );
}

#[tokio::test]
async fn a_command_in_line_says_so() {
    let gate = Gate::new().await;
    let gateway = gate.database.pool_as("spillway_gateway", 1);
    let account = Uuid::now_v7();
    let (first, second) = (command("key-1", account), command("key-2", account));
    for command in [&first, &second] {
        enqueue(&gateway, std::slice::from_ref(command)).await.unwrap();
    }
    let reason = async |id| store::command::get(&gateway, id).await.unwrap().unwrap().blocked_reason;
    assert_eq!(gate.claim(2).await.len(), 1);

    assert_eq!((reason(first.id).await, reason(second.id).await.as_deref()), (None, Some("limit_reached")));
    let key = format!("snaptrade-account-sync:holdings:{account}");
    limit::pause(&gate.operator, &key, "ann", "wrong credentials").await.unwrap();
    assert_eq!(reason(second.id).await.as_deref(), Some("paused"));
}

#[tokio::test]
async fn a_paused_queue_gives_nothing_out() {
    let gate = Gate::new().await;
    let (free, bound) = (gate.send(&[]).await, gate.send(&[("a", 1)]).await);
    limit::pause(&gate.operator, &key_of_queue(QUEUE), "ann", "a repair").await.unwrap();

    assert_eq!(gate.claim(10).await, [0; 0]);
    assert!(limit::resume(&gate.operator, &key_of_queue(QUEUE), "ann", "well again").await.unwrap());
    assert_eq!(gate.claim(10).await, [free, bound]);
}

#[tokio::test]
async fn what_is_behind_a_long_line_is_found_by_looking_further() {
    let gate = Gate::new().await;
    for _ in 0..50 {
        gate.send(&[("hot", 1)]).await;
    }
    let free = gate.send(&[]).await;
    let ask = Ask { look: 100, ..Ask::up_to(2) };
    let claims = store::queue::claim(&gate.worker, SPEC, &ask).await.unwrap();

    assert_eq!(ids(&claims.messages).last(), Some(&free));
    assert_eq!((claims.messages.len(), claims.parked), (2, 49));
}

#[tokio::test]
async fn the_more_important_goes_first_and_every_now_and_then_the_least() {
    let gate = Gate::new().await;
    let mut by_lane = Vec::new();
    for lane in [3, 1, 0] {
        let send = format!("select pgmq.send('{QUEUE}', '{{}}', '{{\"lane\": {lane}}}'::jsonb)");
        by_lane.push(gate.database.number(&send).await);
    }
    let by_hand = gate.send(&[]).await;
    let lowest = Ask { lowest_first: true, ..Ask::up_to(1) };

    assert_eq!(ids(&store::queue::claim(&gate.worker, SPEC, &lowest).await.unwrap().messages), [by_lane[0]]);
    assert_eq!(gate.claim(10).await, [by_lane[2], by_lane[1], by_hand], "and by hand is the workload's own");
}

#[tokio::test]
async fn the_sweep_mends_what_never_happens_and_otherwise_nothing() {
    let gate = Gate::new().await;
    let (first, second) = (gate.send(&[("a", 1)]).await, gate.send(&[("a", 1)]).await);
    assert_eq!(gate.claim(10).await, [first]);
    assert_eq!(limit::sweep(&gate.worker, QUEUE).await.unwrap(), 0);

    // Removed past us, as an operator with a console might.
    gate.database.execute(&format!("delete from pgmq.q_{QUEUE} where msg_id = {first}")).await;
    assert_eq!(limit::sweep(&gate.worker, QUEUE).await.unwrap(), 2, "the hold and the count");
    assert_eq!(gate.claim(10).await, [second]);
    gate.database.execute("delete from spillway.limit_hold; update spillway.limit_key set in_use = 0").await;
    let third = gate.send(&[]).await;
    gate.database.execute(&format!("update pgmq.q_{QUEUE} set vt = spillway.parked_until()")).await;
    assert_eq!(limit::sweep(&gate.worker, QUEUE).await.unwrap(), 2, "two parked messages in no line");
    assert_eq!(gate.claim(10).await, [second, third]);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_claimers_on_hot_and_cold_keys_neither_overlap_nor_get_stuck() {
    let gate = Gate::new().await;
    gate.database
        .execute(&format!(
            "insert into pgmq.q_{QUEUE} (vt, message, headers)
             select now() - interval '1 h', '{{}}', '{{\"limits\": {{\"hot\": 1}}}}' from generate_series(1, 60);
             insert into pgmq.q_{QUEUE} (vt, message, headers)
             select now(), '{{}}', jsonb_build_object('limits', jsonb_build_object('c' || g % 30, 1, 'd' || g % 7, 2))
             from generate_series(1, 300) g"
        ))
        .await;
    let claimer = || {
        let pool = gate.worker.clone();
        tokio::spawn(async move {
            let (mut done, mut idle) = (0, 0);
            while idle < 20 {
                let ask = Ask { look: 100, ..Ask::up_to(10) };
                let claims = store::queue::claim(&pool, SPEC, &ask).await.unwrap();
                let is_idle = claims.messages.is_empty() && claims.parked == 0;
                idle = if is_idle && limit::recall(&pool).await.unwrap() == 0 { idle + 1 } else { 0 };
                for message in &claims.messages {
                    assert!(drop_closed(&pool, message.fence).await.unwrap());
                    done += 1;
                }
            }
            done
        })
    };
    let mut done = 0;
    for task in [claimer(), claimer(), claimer(), claimer()] {
        done += task.await.unwrap();
    }

    assert_eq!(gate.faults().await, [""; 0]);
    let left = format!("select concat_ws(' ', msg_id, read_ct, vt, headers) from pgmq.q_{QUEUE}");
    assert_eq!((done, gate.database.texts(&left).await), (360, Vec::new()));
    assert_eq!(limit::sweep(&gate.worker, QUEUE).await.unwrap(), 0);
    assert_eq!(
        gate.database.number("select coalesce(sum(in_use), 0)::bigint from spillway.limit_key").await,
        0
    );
}
