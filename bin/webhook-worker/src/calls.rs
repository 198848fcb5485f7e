//! Calls to the provider that respect the lease, and what cuts a sync short.

use contract::{Blocked, Cause, RetryClass, Verdict};
use providers::Failure;
use providers::snaptrade::{Client, Fetched, User};
use queue::Lease;
use uuid::Uuid;

/// What the calls of one run share.
pub(crate) struct Calls<'a> {
    pub(crate) client: &'a Client,
    pub(crate) user: &'a User,
    pub(crate) account: Uuid,
    pub(crate) lease: &'a Lease,
}

/// Why a sync ended before it had everything.
pub(crate) enum Cut {
    /// A call failed.
    Failed(Failure),
    /// The next call might outlast the lease.
    NoTime,
    /// The provider contradicts itself.
    Inconsistent(&'static str),
}

impl Calls<'_> {
    /// Makes a call, if it would end while the lease is ours.
    pub(crate) async fn make<T>(
        &self,
        call: impl Future<Output = Result<Fetched<T>, Failure>>,
    ) -> Result<T, Cut> {
        let under_way = self.lease.begin_call(self.client.timeout()).ok_or(Cut::NoTime)?;
        let fetched = call.await;
        under_way.end();
        let fetched = fetched.map_err(Cut::Failed)?;
        self.lease.note_request(fetched.request_id);
        Ok(fetched.value)
    }
}

impl Cut {
    /// The verdict of a run that ends like this.
    pub(crate) fn verdict<E>(self) -> Verdict<E> {
        match self {
            Self::Failed(failure) => failure.verdict(),
            Self::NoTime => {
                let cause = Cause::new(
                    RetryClass::NotReady,
                    "lease_too_short",
                    "the next call might outlast the lease",
                );
                Verdict::NotYet { why: Blocked::NotReady, after: None, cause }
            }
            Self::Inconsistent(sentence) => {
                Verdict::Retry(Cause::new(RetryClass::Transient, "inconsistent_answer", sentence))
            }
        }
    }
}
