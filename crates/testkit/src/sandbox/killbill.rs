//! Kill Bill as far as it speaks by itself: its push notifications about payments, with the habits of its sender.
//! `https://docs.killbill.io` describes the original.

mod callback;
mod payments;
mod push;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

pub use self::payments::{FACTS_OF_TEN, Payment, payments};
pub use self::push::{Habits, Pushed, push};

/// Where notifications are sent.
#[derive(Clone, Debug)]
pub struct Callback {
    /// The address that a tenant has registered, such as `http://127.0.0.1:8081/webhooks/killbill/main`.
    pub url: String,
    /// What the internal route adds, since nothing that Kill Bill sends proves who sent it.
    pub admission: String,
}

/// The provider: whom it notifies and how.
pub(super) struct Killbill {
    target: Option<(Callback, Habits)>,
    seed: u64,
    played: AtomicU64,
    stop: CancellationToken,
}

impl Killbill {
    pub(super) fn new(target: Option<(Callback, Habits)>, seed: u64, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self { target, seed, played: AtomicU64::new(0), stop })
    }

    /// Lets so many new payments happen and begins to tell of them. Answers how many notifications that makes, nothing
    /// where nobody has registered.
    pub(super) fn play(&self, n: usize) -> Option<usize> {
        let (callback, habits) = self.target.clone()?;
        let seed = self.seed.wrapping_add(self.played.fetch_add(1, Ordering::Relaxed));
        let bodies: Vec<String> =
            payments(seed, n).into_iter().flat_map(|payment| payment.notifications).collect();
        let notifications = bodies.len();
        let pushing = async move { push(&callback, &bodies, &habits, seed).await };
        tokio::spawn(self.stop.clone().run_until_cancelled_owned(pushing));
        Some(notifications)
    }
}
