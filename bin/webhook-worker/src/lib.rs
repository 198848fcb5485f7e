//! SnapTrade account syncs: fetch an account's data from the provider and store them.
//!
//! Claims, heartbeats, retries and dead letters belong to the `queue` crate.

mod holdings;

use contract::snaptrade::{AccountState, AccountSync, WorkType};
use contract::{Cause, DeadReason, RetryClass, Verdict};
use providers::snaptrade::{Client, User};
use queue::{Handler, Lease};
use store::seal::Sealer;
use store::{Effect, Pool};
use telemetry::log::chain;

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
        let credentials = match store::snaptrade::credentials(&self.pool, &self.sealer, job.account_id).await
        {
            Ok(Some(credentials)) => credentials,
            Ok(None) => return refused("unknown_account", "nobody told us of this account"),
            Err(error) => {
                let code = if matches!(error, store::Error::Unseal { .. }) { "unseal" } else { "database" };
                return Verdict::Retry(Cause::new(RetryClass::Transient, code, chain(&error)));
            }
        };
        if credentials.state != AccountState::Open {
            // Closed or paused after the event came: there is nothing to read, and nothing to repeat.
            return Verdict::Done(Effect::None);
        }
        let user = User { id: credentials.user_id, secret: credentials.user_secret };
        match job.work_type {
            WorkType::Holdings => holdings::sync(&self.client, &user, job.account_id, lease).await,
            WorkType::Transactions => refused("unsupported_work_type", "this version syncs holdings only"),
        }
    }
}

fn refused(code: &str, sentence: &str) -> Verdict<Effect> {
    Verdict::Dead(DeadReason::PayloadInvalid, Cause::new(RetryClass::Permanent, code, sentence))
}
