//! Which accounts there are, whose they are and at which revision. What they hold follows from that alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::Dice;
use crate::sandbox::SnaptradeUser;

/// Activities of an account that nobody set.
const ACTIVITIES: u32 = 37;

/// The moment at which every account has its first revision: 2026-06-02T14:30:00Z. It is fixed, so that equal
/// seeds give equal bytes on any day.
const OPENING: DateTime<Utc> = DateTime::from_timestamp(1_780_410_600, 0).expect("a valid time");

/// One account as it is right now.
#[derive(Clone, Copy)]
pub(super) struct Account {
    seed: u64,
    pub(super) id: Uuid,
    /// Counts from 1.
    pub(super) revision: u32,
    /// Activities at revision 1; each further revision has one more.
    activities: u32,
}

impl Account {
    /// When this revision's data was fetched from the brokerage: a minute later each.
    pub(super) fn as_of(&self) -> DateTime<Utc> {
        OPENING + TimeDelta::minutes(i64::from(self.revision) - 1)
    }

    /// The moment before `OPENING` by so many hours.
    pub(super) fn hours_back(hours: i32) -> DateTime<Utc> {
        OPENING - TimeDelta::hours(i64::from(hours))
    }

    pub(super) fn activities(&self) -> u32 {
        self.activities + self.revision - 1
    }

    /// Dice for what never changes about the account.
    pub(super) fn lasting(&self, topic: &str, index: u32) -> Dice {
        let (high, low) = self.id.as_u64_pair();
        Dice::new(topic, &[self.seed, high, low, u64::from(index)])
    }

    /// Dice for what is different in each revision.
    pub(super) fn passing(&self, topic: &str, index: u32) -> Dice {
        let (high, low) = self.id.as_u64_pair();
        Dice::new(topic, &[self.seed, high, low, u64::from(index), u64::from(self.revision)])
    }
}

#[cfg(test)]
impl Account {
    /// A known account at some revision, for tests of what it holds.
    pub(super) fn sample(id: u128, revision: u32) -> Self {
        Self { seed: 1, id: Uuid::from_u128(id), revision, activities: ACTIVITIES }
    }

    pub(super) fn with_activities(self, activities: u32) -> Self {
        Self { activities, ..self }
    }
}

/// All accounts with their owners.
pub(super) struct Books {
    seed: u64,
    accounts: Mutex<HashMap<Uuid, (String, Account)>>,
}

impl Books {
    pub(super) fn new(seed: u64, users: &[SnaptradeUser]) -> Self {
        let books = Self { seed, accounts: Mutex::default() };
        books.add(users);
        books
    }

    /// Opens the accounts of these users; those that are open already stay as they are.
    pub(super) fn add(&self, users: &[SnaptradeUser]) {
        let account = |id| Account { seed: self.seed, id, revision: 1, activities: ACTIVITIES };
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        for (user, id) in users.iter().flat_map(|user| user.accounts.iter().map(move |id| (user, *id))) {
            accounts.entry(id).or_insert_with(|| (user.user_id.clone(), account(id)));
        }
    }

    /// The account, if it is this user's.
    pub(super) fn account(&self, id: Uuid, user: &str) -> Option<Account> {
        self.change(id, |owner, account| (owner == user).then_some(*account)).flatten()
    }

    pub(super) fn bump(&self, id: Uuid) -> Option<u32> {
        self.change(id, |_, account| {
            account.revision += 1;
            account.revision
        })
    }

    pub(super) fn set_activities(&self, id: Uuid, count: u32) {
        self.change(id, |_, account| account.activities = count);
    }

    fn change<T>(&self, id: Uuid, act: impl FnOnce(&str, &mut Account) -> T) -> Option<T> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.get_mut(&id).map(|(owner, account)| act(owner, account))
    }
}
