//! SnapTrade account syncs: fetch an account's data from the provider and store them.

use contract::snaptrade::{AccountState, AccountSync, WorkType};
use contract::{Cause, DeadReason, RetryClass, Verdict};
use providers::snaptrade::{Client, User};
use queue::{Handler, Lease};
use store::account_sync::{self, Start};
use store::seal::Sealer;
use store::{Effect, Pool, snaptrade};

use crate::calls::{Calls, Cut};
use crate::{database_failed, holdings, transactions};

/// Runs account syncs.
pub struct SnaptradeSync {
    pool: Pool,
    sealer: Sealer,
    client: Client,
}

impl SnaptradeSync {
    /// A handler that reads credentials from `pool` and calls the provider through `client`.
    pub const fn new(pool: Pool, sealer: Sealer, client: Client) -> Self {
        Self { pool, sealer, client }
    }
}

impl Handler for SnaptradeSync {
    type Job = AccountSync;

    async fn handle(&self, job: &AccountSync, lease: &Lease) -> Verdict<Effect> {
        let (work_type, account) = (job.work_type, job.account_id);
        let start = account_sync::start(&self.pool, lease.fence(), lease.command(), work_type, account).await;
        let through = match start {
            Ok(Start::Through(through)) => through,
            // The runtime finds out by itself when it settles; a run that finds nothing to do has succeeded.
            Ok(Start::AlreadyDone | Start::Lost) => return Verdict::Done(Effect::None),
            Err(error) => return database_failed(&error),
        };
        let credentials = match snaptrade::credentials(&self.pool, &self.sealer, account).await {
            Ok(Some(credentials)) => credentials,
            Ok(None) => {
                let cause =
                    Cause::new(RetryClass::Permanent, "unknown_account", "nobody told us of this account");
                return Verdict::Dead(DeadReason::PayloadInvalid, cause);
            }
            Err(error) => return database_failed(&error),
        };
        if credentials.state != AccountState::Open {
            // Closed or paused after the event came: there is nothing to read, and nothing to repeat.
            return Verdict::Done(Effect::None);
        }
        let user = User { id: credentials.user_id, secret: credentials.user_secret };
        let calls = Calls { client: &self.client, user: &user, account, lease };
        let fetched = match work_type {
            WorkType::Holdings => holdings::fetch(&calls)
                .await
                .map(|holdings| Effect::SnaptradeHoldings { holdings: Box::new(holdings), through }),
            WorkType::Transactions => match snaptrade::newest_activity(&self.pool, account).await {
                Ok(newest) => transactions::fetch(&calls, newest).await.map(|transactions| {
                    Effect::SnaptradeTransactions { transactions: Box::new(transactions), through }
                }),
                Err(error) => return database_failed(&error),
            },
        };
        fetched.map_or_else(Cut::verdict, Verdict::Done)
    }
}
