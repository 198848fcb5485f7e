//! Who is let in and who may be, by a record of the simulation's own. The store's tables are only compared with it.

use std::collections::BTreeMap;

use store::Error;
use store::queue::Fence;
use telemetry::log::chain;

use crate::seeds::{self, ensure};

/// The key whose pause holds the queue.
pub(crate) const QUEUE_KEY: &str = "queue:sanmopia_snaptrade_account_sync";

/// How an invariant was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// More are let in than the key's cap allows.
    OverCap,
    /// Somebody was let in through a key, or by a queue, that is paused.
    LetInWhilePaused,
    /// A write was taken from who had lost the lease, or refused from who had it.
    WrongHolder,
    /// The store's tables agree neither with one another nor with what happened.
    Miscounted,
    /// Somebody waits for a key that has room, and nobody was called.
    NotCalled,
    /// All is open, and nothing moves.
    Stuck,
    /// The sweep had something to mend.
    Mended,
    /// The store refused.
    Failed,
}

pub(crate) type Violation = seeds::Violation<Breach>;

impl From<Error> for Violation {
    fn from(error: Error) -> Self {
        Self { breach: Breach::Failed, what: chain(&error) }
    }
}

/// A key, as people have set it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) cap: i32,
    /// A lower cap for now.
    pub(crate) now: Option<i32>,
    pub(crate) is_paused: bool,
}

impl Limit {
    fn most(self) -> i32 {
        self.now.map_or(self.cap, |now| now.min(self.cap))
    }
}

#[derive(Debug)]
struct Message {
    keys: Vec<&'static str>,
    /// The claim that may still write: the last one, unless it gave the message back.
    holder: Option<i32>,
    /// Its lease has not ended.
    is_live: bool,
}

/// What a claim or a write came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A claim.
    Claimed(Vec<Fence>),
    /// The message's end, and whether it was taken.
    Ended(Fence, bool),
    /// The message was given back, likewise.
    HandedBack(Fence, bool),
    /// A key was paused, or let go on.
    Paused(&'static str, bool),
    /// How much a sweep mended.
    Swept(u64),
    /// Nothing that is on record.
    Other,
}

/// The record.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) limits: BTreeMap<&'static str, Limit>,
    messages: BTreeMap<i64, Message>,
}

impl Model {
    pub(crate) fn new(limits: BTreeMap<&'static str, Limit>) -> Self {
        Self { limits, messages: BTreeMap::new() }
    }

    pub(crate) fn sent(&mut self, id: i64, keys: Vec<&'static str>) {
        self.messages.insert(id, Message { keys, holder: None, is_live: false });
    }

    /// Leases have ended, whether their holders know it or not.
    pub(crate) fn expired(&mut self, is_meant: impl Fn(i64) -> bool) {
        let meant = self.messages.iter_mut().filter(|(id, _)| is_meant(**id));
        meant.for_each(|(_, message)| message.is_live = false);
    }

    /// Messages that have not ended.
    pub(crate) fn left(&self) -> usize {
        self.messages.len()
    }

    /// How many hold a key by a lease that has not ended.
    fn in_flight(&self, key: &str) -> i32 {
        self.holding(key, |message| message.is_live)
    }

    /// The same with those whose lease has ended and whom nobody has followed: they have their place until then,
    /// unless a claim found the key closed.
    fn in_place(&self, key: &str) -> i32 {
        self.holding(key, |message| message.holder.is_some())
    }

    fn holding(&self, key: &str, counts: impl Fn(&Message) -> bool) -> i32 {
        let holding = self.messages.values().filter(|message| counts(message) && message.keys.contains(&key));
        i32::try_from(holding.count()).unwrap()
    }

    /// What happened at once.
    pub(crate) fn happened(&mut self, outcomes: &[Outcome]) -> Result<(), Violation> {
        let before = self.limits.clone();
        // A cap that was lowered sends nobody away.
        let most: BTreeMap<&str, i32> =
            before.iter().map(|(key, limit)| (*key, limit.most().max(self.in_place(key)))).collect();
        for outcome in outcomes {
            match outcome {
                Outcome::Ended(fence, true) => {
                    self.was_holder(*fence)?;
                    self.messages.remove(&fence.msg_id);
                }
                Outcome::HandedBack(fence, true) => {
                    self.was_holder(*fence)?;
                    self.messages.entry(fence.msg_id).and_modify(|message| {
                        (message.holder, message.is_live) = (None, false);
                    });
                }
                Outcome::Paused(key, is_paused) => {
                    self.limits.entry(key).and_modify(|limit| limit.is_paused = *is_paused);
                }
                Outcome::Swept(mended) => {
                    ensure(*mended == 0, Breach::Mended, || format!("the sweep mended {mended}"))?;
                }
                _ => {}
            }
        }
        let stayed_paused =
            |key: &str| before[key].is_paused && self.limits.get(key).is_some_and(|limit| limit.is_paused);
        let paused: Vec<&str> = before.keys().copied().filter(|key| stayed_paused(key)).collect();
        for fence in outcomes.iter().flat_map(claimed) {
            self.let_in(*fence, &paused)?;
        }
        for outcome in outcomes {
            if let Outcome::Ended(fence, false) | Outcome::HandedBack(fence, false) = outcome {
                let is_holder = self.holder(*fence) == Some(fence.read_ct);
                ensure(!is_holder, Breach::WrongHolder, || format!("{fence:?} was refused"))?;
            }
        }
        for (key, most) in most {
            let in_flight = self.in_flight(key);
            ensure(in_flight <= most, Breach::OverCap, || format!("{in_flight} of {most} hold {key}"))?;
        }
        Ok(())
    }

    fn holder(&self, fence: Fence) -> Option<i32> {
        self.messages.get(&fence.msg_id)?.holder
    }

    fn was_holder(&self, fence: Fence) -> Result<(), Violation> {
        let holder = self.holder(fence);
        ensure(holder == Some(fence.read_ct), Breach::WrongHolder, || {
            format!("{fence:?} was taken, and {holder:?} holds the message")
        })
    }

    fn let_in(&mut self, fence: Fence, paused: &[&str]) -> Result<(), Violation> {
        let Some(message) = self.messages.get_mut(&fence.msg_id) else {
            return ensure(false, Breach::WrongHolder, || format!("{fence:?} had ended"));
        };
        let closed = paused.iter().find(|key| message.keys.contains(key) || **key == QUEUE_KEY);
        ensure(closed.is_none(), Breach::LetInWhilePaused, || format!("{fence:?} through {closed:?}"))?;
        ensure(!message.is_live, Breach::WrongHolder, || format!("{fence:?} beside {:?}", message.holder))?;
        (message.holder, message.is_live) = (Some(fence.read_ct), true);
        Ok(())
    }

    /// Compares the places that are taken by the store's account with the record.
    pub(crate) fn check(&self, in_use: &BTreeMap<String, i32>) -> Result<(), Violation> {
        for key in self.limits.keys() {
            let (least, most) = (self.in_flight(key), self.in_place(key));
            let stored = in_use.get(*key).copied().unwrap_or_default();
            ensure((least..=most).contains(&stored), Breach::Miscounted, || {
                format!("{stored} places of {key} are taken, and {least} to {most} have one")
            })?;
        }
        Ok(())
    }
}

fn claimed(outcome: &Outcome) -> &[Fence] {
    if let Outcome::Claimed(fences) = outcome { fences } else { &[] }
}
