//! The gate, whoever comes to it, and the checks in between.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::{QueueSpec, Workload};
use futures_util::future::join_all;
use store::ledger::drop_closed;
use store::limit::{pause, recall, resume, sweep};
use store::queue::{Ask, Fence, claim, hand_back};
use store::{Error, Pool};
use testkit::database::Watcher;
use testkit::{Database, Dice};

use super::model::{Breach, Limit, Model, Outcome, QUEUE_KEY, Violation};
use crate::seeds::ensure;

/// Leases end when the simulation says so, however long it takes.
const SPEC: QueueSpec =
    QueueSpec { lease: Duration::from_hours(1), ..*Workload::SnaptradeAccountSync.queue() };

/// The keys of messages, and how many may hold each in the beginning.
const KEYS: [(&str, i32); 4] = [("a", 1), ("b", 1), ("c", 2), ("d", 4)];

const CLAIMERS: usize = 8;

/// Looked at by a claim that is to get behind those who wait.
const FAR: u32 = 200;

/// See the module.
pub(crate) struct World {
    dice: Dice,
    /// What was done so far, for whoever reads a failure.
    pub(crate) story: Vec<String>,
    look: Watcher,
    worker: Pool,
    operator: Pool,
    model: Model,
    /// What each claimer believes to hold.
    claimers: Vec<Vec<Fence>>,
    _database: Database,
}

/// What somebody does.
#[derive(Debug)]
enum Act {
    Claim { claimer: usize, ask: Ask },
    End(Fence),
    HandBack(Fence, Duration),
    Pause(&'static str),
    Resume(&'static str),
    Recall,
    Sweep,
}

impl Act {
    /// The key that it pauses or resumes.
    fn paused(&self) -> Option<&'static str> {
        if let Self::Pause(key) | Self::Resume(key) = self { Some(key) } else { None }
    }
}

type Step = Result<(), Violation>;

impl World {
    /// A world in which `sabotage` was run against the schema.
    pub(crate) async fn new(seed: u64, sabotage: &str) -> Self {
        let database = Database::fresh().await;
        let mut look = database.watcher().await;
        look.execute(sabotage).await;
        let limit = |(key, cap)| (key, Limit { cap, now: None, is_paused: false });
        let limits: BTreeMap<_, _> = KEYS.into_iter().chain([(QUEUE_KEY, 1)]).map(limit).collect();
        for (key, limit) in &limits {
            let sql = format!("insert into spillway.limit_key (key, cap) values ('{key}', {})", limit.cap);
            look.execute(&sql).await;
        }
        Self {
            dice: Dice::new("gate", &[seed]),
            story: Vec::new(),
            look,
            worker: database.pool_as("spillway_worker", 8),
            operator: database.pool_as("spillway_operator", 2),
            model: Model::new(limits),
            claimers: vec![Vec::new(); CLAIMERS],
            _database: database,
        }
    }

    /// Something happens, and everything must hold afterwards.
    pub(crate) async fn step(&mut self) -> Step {
        match self.dice.below(100) {
            0..30 => self.send().await,
            30..34 => self.die(),
            34..38 => self.expire().await,
            38..44 => self.change_limit().await,
            44..75 => {
                let act = self.act();
                self.at_once(vec![act]).await?;
            }
            _ => {
                let acts = self.acts();
                self.at_once(acts).await?;
            }
        }
        self.check().await
    }

    /// All is open again, everybody has died, new claimers come, and nothing goes wrong any more.
    pub(crate) async fn heal(&mut self) -> Step {
        for key in self.model.limits.clone().into_keys() {
            self.at_once(vec![Act::Resume(key)]).await?;
        }
        for (key, cap) in KEYS {
            self.set_limit(key, Limit { cap, now: None, is_paused: false }).await;
        }
        self.claimers.iter_mut().for_each(Vec::clear);
        self.end_leases("true", |_| true).await;
        // A message is called once for each of its keys at the most, and each round ends one or calls one.
        for _ in 0..=10 * self.model.left() {
            let claimed = self.at_once(vec![Act::Claim { claimer: 0, ask: far(8) }]).await?;
            let ends: Vec<Act> = self.claimers[0].drain(..).map(Act::End).collect();
            if ends.is_empty() && !claimed && recall(&self.worker).await? == 0 {
                break;
            }
            self.at_once(ends).await?;
            self.check().await?;
        }
        let left = self.model.left();
        ensure(left == 0, Breach::Stuck, || format!("{left} messages don't come to their end"))?;
        self.at_once(vec![Act::Sweep]).await?;
        self.check().await
    }

    async fn send(&mut self) {
        let keys: Vec<_> = KEYS.into_iter().filter(|_| self.dice.one_in(3)).collect();
        let limits: BTreeMap<_, _> = keys.iter().copied().collect();
        let headers = serde_json::json!({ "limits": limits });
        let sql = format!("select pgmq.send('{}', '{{}}', '{headers}'::jsonb)::text", SPEC.name);
        let id = self.look.texts(&sql).await[0].parse().unwrap();
        self.story.push(format!("{id} is sent with {limits:?}"));
        self.model.sent(id, keys.into_iter().map(|(key, _)| key).collect());
    }

    /// A claimer is gone with all that it held.
    fn die(&mut self) {
        let claimer = self.dice.place(CLAIMERS);
        self.story.push(format!("claimer {claimer} dies with {:?}", self.claimers[claimer]));
        self.claimers[claimer].clear();
    }

    /// Leases end, also those of claimers that are still there.
    async fn expire(&mut self) {
        let third = i64::from(self.dice.below(3));
        self.end_leases(&format!("msg_id % 3 = {third}"), |id| id % 3 == third).await;
    }

    async fn end_leases(&mut self, which: &str, is_meant: impl Fn(i64) -> bool) {
        self.story.push(format!("leases end where {which}"));
        let sql = format!(
            "update pgmq.q_{} set vt = now() where vt > now() and vt < spillway.parked_until() and {which}",
            SPEC.name
        );
        self.look.execute(&sql).await;
        self.model.expired(is_meant);
    }

    async fn change_limit(&mut self) {
        let (key, cap) = *self.dice.pick(&KEYS);
        let mut limit = self.model.limits[key];
        if self.dice.one_in(2) {
            limit.cap = self.dice.below(4).min(cap);
        } else {
            limit.now = (!self.dice.one_in(3)).then(|| self.dice.below(3));
        }
        self.set_limit(key, limit).await;
    }

    /// As whoever changes a limit has to: under the key's lock it also calls who may come in now.
    async fn set_limit(&mut self, key: &'static str, limit: Limit) {
        self.story.push(format!("{key}: {limit:?}"));
        let now = limit.now.map_or_else(|| "null".to_owned(), |now| now.to_string());
        let sql = format!(
            "update spillway.limit_key set cap = {}, limit_now = {now} where key = '{key}';
             select spillway.limit_wake(array['{key}'])",
            limit.cap
        );
        self.look.execute(&sql).await;
        self.model.limits.insert(key, limit);
    }

    fn act(&mut self) -> Act {
        let claimer = self.dice.place(CLAIMERS);
        let held = self.claimers[claimer].len();
        match self.dice.below(20) {
            // What ends is taken out of the claimer's hands, so that nothing ends twice at once.
            0..6 if held > 0 => Act::End(self.claimers[claimer].swap_remove(self.dice.place(held))),
            6..9 if held > 0 => {
                let fence = self.claimers[claimer].swap_remove(self.dice.place(held));
                Act::HandBack(
                    fence,
                    if self.dice.one_in(3) { Duration::from_mins(1) } else { Duration::ZERO },
                )
            }
            9 => Act::Pause(self.any_key()),
            10 | 11 => Act::Resume(self.any_key()),
            12 => Act::Recall,
            13 => Act::Sweep,
            _ => {
                let limit = u32::try_from(1 + self.dice.below(4)).unwrap();
                let ask = if self.dice.one_in(2) { Ask::up_to(limit) } else { far(limit) };
                Act::Claim { claimer, ask }
            }
        }
    }

    /// Several acts, of which no two pause or resume one key: nobody could say which one was last.
    fn acts(&mut self) -> Vec<Act> {
        let mut acts: Vec<Act> = Vec::new();
        for _ in 0..2 + self.dice.below(6) {
            let act = self.act();
            let key = act.paused();
            if key.is_none() || acts.iter().all(|other| other.paused() != key) {
                acts.push(act);
            }
        }
        acts
    }

    fn any_key(&mut self) -> &'static str {
        // A queue that is paused most of the time would show little.
        if self.dice.one_in(8) { QUEUE_KEY } else { self.dice.pick(&KEYS).0 }
    }

    /// True where some claim looked at something.
    async fn at_once(&mut self, acts: Vec<Act>) -> Result<bool, Violation> {
        let done = join_all(acts.iter().map(|act| self.perform(act))).await;
        self.story.push(format!("{acts:?} -> {done:?}"));
        let (mut outcomes, mut has_looked) = (Vec::new(), false);
        for (act, done) in acts.iter().zip(done) {
            let (outcome, looked) = done?;
            if let (Act::Claim { claimer, .. }, Outcome::Claimed(fences)) = (act, &outcome) {
                self.claimers[*claimer].extend(fences);
            }
            has_looked |= looked;
            outcomes.push(outcome);
        }
        self.model.happened(&outcomes)?;
        Ok(has_looked)
    }

    async fn perform(&self, act: &Act) -> Result<(Outcome, bool), Error> {
        let (worker, operator) = (&self.worker, &self.operator);
        let outcome = match *act {
            Act::Claim { ask, .. } => {
                let claims = claim(worker, &SPEC, &ask).await?;
                let fences: Vec<Fence> = claims.messages.iter().map(|message| message.fence).collect();
                let has_looked = !fences.is_empty() || claims.parked > 0;
                return Ok((Outcome::Claimed(fences), has_looked));
            }
            Act::End(fence) => Outcome::Ended(fence, drop_closed(worker, fence).await?),
            Act::HandBack(fence, after) => {
                Outcome::HandedBack(fence, hand_back(worker, fence, None, after).await?)
            }
            Act::Pause(key) => {
                pause(operator, key, "ann", "simulated").await?;
                Outcome::Paused(key, true)
            }
            Act::Resume(key) => {
                resume(operator, key, "ann", "simulated").await?;
                Outcome::Paused(key, false)
            }
            Act::Recall => {
                recall(worker).await?;
                Outcome::Other
            }
            Act::Sweep => Outcome::Swept(sweep(worker, SPEC.name).await?),
        };
        Ok((outcome, false))
    }

    async fn check(&mut self) -> Step {
        let miscounted = self.look.texts(&miscounted()).await;
        ensure(miscounted.is_empty(), Breach::Miscounted, || miscounted.join(", "))?;
        let in_use = self.look.texts("select concat_ws(' ', in_use, key) from spillway.limit_key").await;
        let read = |row: &String| {
            let (n, key) = row.split_once(' ').unwrap();
            (key.to_owned(), n.parse().unwrap())
        };
        self.model.check(&in_use.iter().map(read).collect())?;
        let not_called = self.look.texts(NOT_CALLED).await;
        ensure(not_called.is_empty(), Breach::NotCalled, || not_called.join(", "))
    }
}

fn far(limit: u32) -> Ask {
    Ask { look: FAR, ..Ask::up_to(limit) }
}

/// Keys with a wrong number of holds, holds without a message, and parked messages in no line.
fn miscounted() -> String {
    let queue = SPEC.name;
    format!(
        "select 'counted wrongly: ' || k.key from spillway.limit_key k
         where k.in_use <> (select count(*) from spillway.limit_hold h where h.key = k.key)
         union all
         select 'held by nobody: ' || h.key from spillway.limit_hold h
         where not exists (select from pgmq.q_{queue} q where q.msg_id = h.msg_id)
         union all
         select 'parked in no line: ' || q.msg_id from pgmq.q_{queue} q
         where q.vt = spillway.parked_until()
           and not exists (select from spillway.limit_wait w where w.queue = '{queue}' and w.msg_id = q.msg_id)"
    )
}

/// Open keys with room for more of those in their line than were called.
const NOT_CALLED: &str = "
    select 'nobody is called for ' || k.key from spillway.limit_key k
    where k.paused_at is null and not k.recall
      and (select count(*) from spillway.limit_wait w where w.key = k.key and w.woken_at is not null)
        < least(least(k.cap, coalesce(k.limit_now, k.cap)) - k.in_use,
            (select count(*) from spillway.limit_wait w where w.key = k.key))";
