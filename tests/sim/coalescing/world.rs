//! The store under simulation: gateways that take events in, workers that run and die, and the checks in between.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use contract::snaptrade::{AccountState, AccountSync, Whose, WorkType};
use contract::{Actor, Blocked, Cause, DeadReason, NewCommand, Origin, QueueSpec, RetryClass, Workload};
use store::account_sync::{Start, start};
use store::inbox::{Delivery, Fate, Outcome, Receipt};
use store::intake::{Item, Taken, take_in};
use store::ledger::{Dead, Done, Unfinished, bury, delay, drop_closed, park, succeed_with};
use store::queue::{Ask, Beat, Fence, beat, claim, hand_back};
use store::snaptrade::{AccountsChange, Change, Holdings, Transactions};
use store::{Effect, Pool, command};
use testkit::database::Watcher;
use testkit::{Database, Dice};
use uuid::Uuid;

use super::model::{Breach, Key, Model, Row, Violation, key};
use crate::seeds::ensure;

const WORKLOAD: Workload = Workload::SnaptradeAccountSync;
const SPEC: &QueueSpec = WORKLOAD.queue();
const KINDS: [WorkType; 2] = [WorkType::Holdings, WorkType::Transactions];
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// So few that their events meet all the time.
const ACCOUNTS: usize = 3;

/// See the module.
pub(crate) struct World {
    pub(crate) dice: Dice,
    /// What was done so far, for whoever reads a failure.
    pub(crate) story: Vec<String>,
    look: Watcher,
    gateway: Pool,
    worker: Pool,
    model: Model,
    accounts: Vec<(Uuid, AccountState)>,
    runs: Vec<Run>,
    events: Vec<Event>,
    identities: HashSet<String>,
    _database: Database,
}

/// An event that asks for a sync.
#[derive(Clone, Debug)]
struct Event {
    identity: String,
    work_type: WorkType,
    account: Uuid,
}

/// A worker's run. One whose lease has gone to another worker doesn't know it.
#[derive(Clone, Copy, Debug)]
struct Run {
    fence: Fence,
    command: Uuid,
    job: (WorkType, Uuid),
    /// The claim said that there is nothing left to do.
    is_closed: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Claimed,
    /// With everything up to this mark to be fetched.
    Started(i64),
    FoundDone(i64),
}

type Step = Result<(), Violation>;

impl World {
    /// A world in which `sabotage` was run against the schema.
    pub(crate) async fn new(seed: u64, sabotage: &str) -> Self {
        let database = Database::fresh().await;
        let mut look = database.watcher().await;
        look.execute("insert into spillway.snaptrade_user values ('u', '')").await;
        look.execute(sabotage).await;
        let (gateway, worker) =
            (database.pool_as("spillway_gateway", 2), database.pool_as("spillway_worker", 2));
        let mut world = Self {
            dice: Dice::new("coalescing", &[seed]),
            story: Vec::new(),
            look,
            gateway,
            worker,
            model: Model::default(),
            accounts: Vec::new(),
            runs: Vec::new(),
            events: Vec::new(),
            identities: HashSet::new(),
            _database: database,
        };
        for _ in 0..ACCOUNTS {
            world.new_account().await;
        }
        world
    }

    /// Something happens, and everything must hold afterwards.
    pub(crate) async fn step(&mut self) -> Step {
        match self.dice.below(100) {
            0..28 => self.one_event().await?,
            28..36 => self.batch().await?,
            36..42 => self.duplicate().await?,
            42..46 => self.by_hand().await,
            46..62 => self.claim().await,
            62..85 => self.advance().await?,
            85 => self.remote_worker().await,
            86..89 => self.die(),
            89..92 => self.expire().await,
            92..94 => self.beat().await,
            94..97 => self.cancel().await,
            97 => self.change(Change::Pause).await?,
            98 => self.change(Change::Open(origin("opened"))).await?,
            _ => self.change(Change::Close).await?,
        }
        let rows = self.rows().await;
        self.model.check(&rows)
    }

    /// Everybody has died; new workers come and nothing goes wrong any more.
    pub(crate) async fn heal(&mut self) -> Step {
        self.runs.clear();
        for account in self.accounts.clone() {
            self.change_account(account.0, Change::Open(origin("healed"))).await?;
        }
        self.drain().await?;
        // What was given up stays given up, and must not swallow what comes next.
        let open: Vec<Uuid> = self.accounts.iter().map(|account| account.0).collect();
        for (account, work_type) in open.into_iter().flat_map(|account| KINDS.map(|kind| (account, kind))) {
            let event = self.new_event(work_type, account);
            let receipts = self.deliver(&[event]).await?;
            ensure(receipts[0].outcome == Outcome::Queued, Breach::Lost, || {
                format!("the first event after the end was {:?}", receipts[0].outcome)
            })?;
        }
        self.drain().await
    }

    async fn drain(&mut self) -> Step {
        self.look.execute(&format!("update pgmq.q_{} set vt = now() - interval '1 s'", SPEC.name)).await;
        loop {
            self.claim().await;
            if self.runs.is_empty() {
                break;
            }
            while let Some(mut run) = self.runs.pop() {
                if run.is_closed {
                    self.drop_closed(run).await;
                } else if self.start(&mut run).await? {
                    self.succeed(run).await?;
                }
            }
        }
        let rows = self.rows().await;
        self.model.check_end(&rows)
    }

    async fn new_account(&mut self) {
        let account = self.dice.uuid();
        let sql =
            format!("insert into spillway.snaptrade_account (account_id, user_id) values ('{account}', 'u')");
        self.look.execute(&sql).await;
        self.accounts.push((account, AccountState::Open));
    }

    async fn rows(&mut self) -> BTreeMap<Key, Row> {
        let sql = format!(
            "select concat_ws(' ', s.work_type, s.account_id, s.requested, s.ok_through, k.finished_at is null and
               exists (select from pgmq.q_{} q where spillway.command_of(q.message) = s.waiting_command),
               s.waiting_command)
             from spillway.account_sync s left join spillway.command k on k.id = s.waiting_command",
            SPEC.name
        );
        let read = |text: &String| {
            let mut words = text.split(' ');
            let mut next = || words.next().unwrap_or_default();
            let key = key(next().parse().unwrap(), next().parse().unwrap());
            let (requested, ok_through) = (next().parse().unwrap(), next().parse().unwrap());
            let is_live = next() == "t";
            (key, Row { requested, ok_through, is_live, waiting: next().parse().ok() })
        };
        self.look.texts(&sql).await.iter().map(read).collect()
    }

    fn new_event(&mut self, work_type: WorkType, account: Uuid) -> Event {
        Event { identity: self.dice.uuid().to_string(), work_type, account }
    }

    fn any_event(&mut self) -> Event {
        let (work_type, (account, _)) = (*self.dice.pick(&KINDS), *self.dice.pick(&self.accounts));
        self.new_event(work_type, account)
    }

    async fn one_event(&mut self) -> Step {
        let event = self.any_event();
        self.deliver(&[event]).await.map(drop)
    }

    /// Several events together, some of them twice.
    async fn batch(&mut self) -> Step {
        let mut events: Vec<Event> = (0..2 + self.dice.below(5)).map(|_| self.any_event()).collect();
        while self.dice.one_in(2) {
            events.push(self.dice.pick(&events).clone());
        }
        self.deliver(&events).await.map(drop)
    }

    async fn duplicate(&mut self) -> Step {
        if self.events.is_empty() {
            return Ok(());
        }
        let event = self.dice.pick(&self.events).clone();
        self.deliver(&[event]).await.map(drop)
    }

    async fn deliver(&mut self, events: &[Event]) -> Result<Vec<Receipt>, Violation> {
        let receipts = post(&self.gateway, events).await;
        self.note(events, &receipts)?;
        Ok(receipts)
    }

    /// Writes down what the gateway has promised.
    fn note(&mut self, events: &[Event], receipts: &[Receipt]) -> Step {
        self.story.push(format!("{events:?} -> {receipts:?}"));
        for (event, receipt) in events.iter().zip(receipts) {
            if receipt.outcome == Outcome::Duplicate {
                continue;
            }
            ensure(self.identities.insert(event.identity.clone()), Breach::Miscounted, || {
                format!("{event:?} was accepted twice")
            })?;
            self.events.push(event.clone());
            // One that only was recorded has no command.
            if let Some(command) = receipt.command_id {
                let new = (receipt.outcome == Outcome::Queued).then_some(command);
                self.model.event(key(event.work_type, event.account), new);
            }
        }
        let known = events.iter().all(|event| self.identities.contains(&event.identity));
        ensure(known, Breach::Miscounted, || "a first delivery was called a duplicate".to_owned())
    }

    async fn by_hand(&mut self) {
        let event = self.any_event();
        let job = AccountSync { work_type: event.work_type, account_id: event.account };
        let id = self.dice.uuid();
        let mut new = NewCommand::new(id, &job, origin(&event.identity));
        let key = key(event.work_type, event.account);
        if self.dice.one_in(3) {
            new.not_before = Some(Utc::now() + chrono::Duration::hours(1));
            self.model.for_later(key, id);
        } else {
            self.model.by_hand(key, id);
        }
        self.story.push(format!("a caller puts {id} in for {job:?}, not before {:?}", new.not_before));
        let item = Item::Command(Box::new(new));
        take_in(&self.gateway, &[], |_| vec![item]).await.unwrap();
    }

    async fn claim(&mut self) {
        // Behind those that wait for one another's accounts there are more.
        let ask = Ask { look: 200, ..Ask::up_to(2) };
        for claimed in claim(&self.worker, SPEC, &ask).await.unwrap().messages {
            let ledger = claimed.command.expect("every message names a command");
            let job: AccountSync = serde_json::from_value(ledger.payload).unwrap();
            self.story.push(format!("{} is claimed as {:?}", ledger.id, claimed.fence));
            self.runs.push(Run {
                fence: claimed.fence,
                command: ledger.id,
                job: (job.work_type, job.account_id),
                is_closed: ledger.is_closed,
                stage: Stage::Claimed,
            });
        }
    }

    /// One of the runs goes one step further.
    async fn advance(&mut self) -> Step {
        if self.runs.is_empty() {
            return Ok(());
        }
        let mut run = self.runs.swap_remove(self.dice.place(self.runs.len()));
        match run.stage {
            _ if run.is_closed => self.drop_closed(run).await,
            Stage::Claimed if self.dice.one_in(12) => self.bury(run).await,
            Stage::Claimed => {
                let goes_on = if self.dice.one_in(3) {
                    self.start_and_event(&mut run).await?
                } else {
                    self.start(&mut run).await?
                };
                if goes_on {
                    self.runs.push(run);
                }
            }
            Stage::Started(_) if self.dice.one_in(8) => self.bury(run).await,
            Stage::Started(_) if self.dice.one_in(3) => self.postpone(run).await,
            Stage::Started(_) | Stage::FoundDone(_) => self.succeed(run).await?,
        }
        Ok(())
    }

    /// False where the lease has gone.
    async fn start(&mut self, run: &mut Run) -> Result<bool, Violation> {
        let answer = start_run(&self.worker, run).await;
        self.note_start(run, answer)
    }

    /// An event of the same kind and account arrives while a run starts: either may be first.
    async fn start_and_event(&mut self, run: &mut Run) -> Result<bool, Violation> {
        let (work_type, account) = run.job;
        let event = self.new_event(work_type, account);
        let before = self.model.accepted(key(work_type, account)) + self.model.adds(run.command);
        let events = [event];
        let (answer, receipts) = tokio::join!(start_run(&self.worker, run), post(&self.gateway, &events));
        let started_first = match answer {
            Start::Through(mark) => mark == before,
            Start::AlreadyDone => true,
            Start::Lost => false,
        };
        if started_first {
            let goes_on = self.note_start(run, answer)?;
            self.note(&events, &receipts)?;
            Ok(goes_on)
        } else {
            self.note(&events, &receipts)?;
            self.note_start(run, answer)
        }
    }

    fn note_start(&mut self, run: &mut Run, answer: Start) -> Result<bool, Violation> {
        self.story.push(format!("{} starts as {:?}: {answer:?}", run.command, run.fence));
        let accepted = self.model.accepted(key(run.job.0, run.job.1));
        match answer {
            Start::Through(mark) => {
                self.model.started(run.command, mark);
                run.stage = Stage::Started(mark);
            }
            Start::AlreadyDone => {
                self.model.found_done(run.command, accepted)?;
                run.stage = Stage::FoundDone(accepted);
            }
            Start::Lost => return Ok(false),
        }
        Ok(true)
    }

    /// Settles as the worker does: a run that finds its account closed or paused, or nothing to do, stores nothing.
    async fn succeed(&mut self, run: Run) -> Step {
        let (mark, fetched) = match run.stage {
            Stage::Started(mark) => (mark, self.state_of(run.job.1) == AccountState::Open),
            Stage::FoundDone(mark) => (mark, false),
            Stage::Claimed => return Ok(()),
        };
        let effect = if fetched { effect(run.job, mark) } else { Effect::None };
        let done = Done {
            fence: run.fence,
            command: run.command,
            started_at: Utc::now(),
            result: None,
            request_ids: Vec::new(),
        };
        let ours = succeed_with(&self.worker, &done, &effect).await.unwrap();
        self.story.push(format!("{} succeeds as {:?}: {ours}, stored: {fetched}", run.command, run.fence));
        if ours {
            self.model.succeeded(run.command, mark, fetched);
        }
        if self.dice.one_in(4) {
            // The answer was lost, so the worker settles again.
            let again = succeed_with(&self.worker, &done, &effect).await.unwrap();
            ensure(!again, Breach::Miscounted, || format!("{} was settled twice", run.command))?;
        }
        Ok(())
    }

    fn state_of(&self, account: Uuid) -> AccountState {
        let found = self.accounts.iter().find(|known| known.0 == account);
        found.map_or(AccountState::Closed, |known| known.1)
    }

    async fn postpone(&mut self, run: Run) {
        let cause = Cause::new(RetryClass::Transient, "broken", "it broke");
        let (fence, command) = (run.fence, run.command);
        let unfinished =
            Unfinished { fence, command, after: Duration::ZERO, cause: &cause, worker: "simulated" };
        let how = self.dice.below(3);
        let ours = match how {
            0 => delay(&self.worker, &unfinished).await.unwrap(),
            1 => park(&self.worker, &unfinished, Blocked::ProviderCooldown).await.unwrap(),
            _ => hand_back(&self.worker, fence, Some(command), Duration::ZERO).await.unwrap(),
        };
        self.story.push(format!("{command} is postponed as {fence:?}: {ours}"));
        if ours && how < 2 {
            self.model.shown(command);
        }
    }

    async fn bury(&mut self, run: Run) {
        let cause = Cause::new(RetryClass::Permanent, "broken", "no");
        let dead = Dead {
            id: Uuid::now_v7(),
            fence: run.fence,
            command: Some(run.command),
            workload: WORKLOAD,
            reason: DeadReason::ProviderRejected,
            cause: &cause,
            worker: "simulated",
        };
        let ours = bury(&self.worker, &dead).await.unwrap();
        self.story.push(format!("{} is dead-lettered as {:?}: {ours}", run.command, run.fence));
        if ours {
            self.model.given_up(run.command);
        }
    }

    async fn drop_closed(&mut self, run: Run) {
        let ours = drop_closed(&self.worker, run.fence).await.unwrap();
        self.story.push(format!("{} needs no run: {ours}", run.command));
    }

    /// A worker is gone, wherever it was: after its claim, its start, its calls, or just before it settles.
    fn die(&mut self) {
        if !self.runs.is_empty() {
            let run = self.runs.swap_remove(self.dice.place(self.runs.len()));
            self.story.push(format!("the worker of {run:?} dies"));
        }
    }

    /// A worker behind PostgREST claims a message, and settles it or dies. It stores what it fetches elsewhere.
    async fn remote_worker(&mut self) {
        let sql = format!(
            "select concat_ws(' ', c.message ->> 'command', c.msg_id, c.read_ct) from public.pgmq_read('{}', 60, 1) c",
            SPEC.name
        );
        let Some(claimed) = self.look.texts(&sql).await.pop() else { return };
        let words: Vec<&str> = claimed.split(' ').collect();
        let command: Uuid = words[0].parse().unwrap();
        let mark = self.model.started_remotely(command);
        let settles = self.dice.one_in(2);
        if settles {
            let sql =
                format!("select public.pgmq_archive('{}', {}, {})::text", SPEC.name, words[1], words[2]);
            assert_eq!(self.look.texts(&sql).await, ["true"]);
            self.model.succeeded(command, mark, false);
        }
        self.story.push(format!("a remote worker claims {command}, settles: {settles}"));
    }

    /// Leases end, also those of workers that are still there.
    async fn expire(&mut self) {
        let half = self.dice.below(2);
        let sql =
            format!("update pgmq.q_{} set vt = now() - interval '1 s' where msg_id % 2 = {half}", SPEC.name);
        self.look.execute(&sql).await;
        self.story.push(format!("leases of messages with remainder {half} end"));
    }

    /// Heartbeats; from now on the commands are shown as running.
    async fn beat(&mut self) {
        let beats: Vec<Beat> = self
            .runs
            .iter()
            .map(|run| Beat { fence: run.fence, started: Some((run.command, Utc::now())) })
            .collect();
        let held = beat(&self.worker, SPEC.name, SPEC.lease, &beats).await.unwrap();
        self.story.push(format!("heartbeats find {} of {} leases", held.len(), beats.len()));
        let is_held = |run: &&Run| held.iter().any(|(fence, _)| *fence == run.fence);
        self.runs.iter().filter(is_held).for_each(|run| self.model.shown(run.command));
    }

    async fn cancel(&mut self) {
        let open = self.model.open();
        if open.is_empty() {
            return;
        }
        let id = *self.dice.pick(&open);
        let cancelled = command::cancel(&self.gateway, id).await.unwrap();
        self.story.push(format!("a caller cancels {id}: {cancelled}"));
        if cancelled {
            self.model.given_up(id);
        }
    }

    async fn change(&mut self, to: Change) -> Step {
        let (account, _) = *self.dice.pick(&self.accounts);
        self.change_account(account, to).await
    }

    async fn change_account(&mut self, account: Uuid, to: Change) -> Step {
        self.story.push(format!("{account}: {to:?}"));
        let (closes, opens) = (matches!(to, Change::Close), matches!(to, Change::Open(_)));
        let change = AccountsChange {
            whose: Whose::Account(account),
            to: rekeyed(to),
            at: Utc::now(),
            reason: "simulated".to_owned(),
        };
        let identity = self.dice.uuid().to_string();
        let item = Item::Webhook(Box::new(delivery(identity, Fate::Accounts(Box::new(change)))));
        take_in(&self.gateway, &[], |_| vec![item]).await.unwrap();
        if closes {
            self.accounts.retain(|known| known.0 != account);
            for kind in KINDS {
                if let Some(waiting) = self.model.waiting(key(kind, account)) {
                    self.model.given_up(waiting);
                }
            }
            self.new_account().await;
            return Ok(());
        }
        let state = if opens { AccountState::Open } else { AccountState::Paused };
        self.accounts.iter_mut().filter(|known| known.0 == account).for_each(|known| known.1 = state);
        if opens {
            let rows = self.rows().await;
            for key in KINDS.map(|kind| key(kind, account)) {
                let waiting = rows.get(&key).and_then(|row| row.waiting);
                let new = waiting.filter(|_| self.model.waiting(key).is_none());
                self.model.event(key, new);
            }
        }
        Ok(())
    }
}

/// What one gateway does with events that arrive together.
async fn post(gateway: &Pool, events: &[Event]) -> Vec<Receipt> {
    let accounts: Vec<Uuid> = events.iter().map(|event| event.account).collect();
    let taken = take_in(gateway, &accounts, |known| {
        let item = |event: &Event| {
            let is_open =
                known.get(&event.account).is_some_and(|account| account.state == AccountState::Open);
            let fate = if is_open { sync(event) } else { Fate::Record };
            Item::Webhook(Box::new(delivery(event.identity.clone(), fate)))
        };
        events.iter().map(item).collect()
    });
    let receipt = |taken| match taken {
        Taken::Webhook(receipt) => receipt,
        Taken::Command(enqueued) => panic!("a webhook was answered {enqueued:?}"),
    };
    taken.await.unwrap().into_iter().map(receipt).collect()
}

async fn start_run(worker: &Pool, run: &Run) -> Start {
    start(worker, run.fence, run.command, run.job.0, run.job.1).await.unwrap()
}

fn sync(event: &Event) -> Fate {
    let job = AccountSync { work_type: event.work_type, account_id: event.account };
    let command = Box::new(NewCommand::new(Uuid::now_v7(), &job, origin(&event.identity)));
    Fate::Sync { work_type: event.work_type, account_id: event.account, connection_id: None, command }
}

fn delivery(identity: String, fate: Fate) -> Delivery {
    Delivery {
        id: Uuid::now_v7(),
        source: "snaptrade",
        tenant: String::new(),
        identity,
        event_type: None,
        body: Bytes::from_static(b"{}"),
        sha256: [7; 32],
        is_clean_json: true,
        fate,
        traceparent: TRACEPARENT.to_owned(),
        correlation_id: "simulated".to_owned(),
    }
}

fn origin(key: &str) -> Origin {
    Origin {
        idempotency_key: key.to_owned(),
        actor: Actor::provider("snaptrade"),
        traceparent: TRACEPARENT.to_owned(),
        tracestate: String::new(),
        correlation_id: "simulated".to_owned(),
    }
}

/// Each opening has a key of its own.
fn rekeyed(to: Change) -> Change {
    match to {
        Change::Open(origin) => {
            Change::Open(Origin { idempotency_key: Uuid::now_v7().to_string(), ..origin })
        }
        other => other,
    }
}

fn effect((work_type, account_id): (WorkType, Uuid), through: i64) -> Effect {
    match work_type {
        WorkType::Holdings => {
            let (positions, balances, orders) = (Vec::new(), Vec::new(), Vec::new());
            let holdings = Holdings { account_id, as_of: None, positions, balances, orders };
            Effect::SnaptradeHoldings { holdings: Box::new(holdings), through }
        }
        WorkType::Transactions => {
            let transactions = Transactions { account_id, since: None, activities: Vec::new() };
            Effect::SnaptradeTransactions { transactions: Box::new(transactions), through }
        }
    }
}
