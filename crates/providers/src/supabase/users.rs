//! Verifies tokens with keys that are fetched when they are needed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use url::Url;

use super::cache::Cache;
use super::claims::User;
use super::keys::KeySet;
use super::options::Options;
use super::signature;
use super::token::Token;
use crate::failure::{Advice, Failure};
use crate::http;

/// The longest fetch, during which a request may wait.
const DEADLINE: Duration = Duration::from_secs(3);

/// Real sets have less than 2 KiB.
const LARGEST_SET: usize = 64 * 1024;

/// Why a token lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The token is nobody's. The reason is for our log; telling the caller would help forgers only.
    #[error("not a valid user token: {0}")]
    Unauthenticated(&'static str),
    /// There are no keys to judge it by; a later try may succeed.
    #[error("the signing keys of user tokens could not be fetched")]
    Unavailable,
}

/// Tells whose a token is; cheap to clone.
#[derive(Clone)]
pub struct Users(Arc<Shared>);

struct Shared {
    http: Client,
    options: Options,
    cache: Mutex<Cache>,
    /// Its one permit is the right to fetch.
    fetching: Arc<Semaphore>,
}

impl Users {
    /// Nothing is fetched before the first token is to be verified.
    pub fn new(options: Options) -> Self {
        signature::install();
        let http = http::client(DEADLINE);
        Self(Arc::new(Shared {
            http,
            options,
            cache: Mutex::default(),
            fetching: Arc::new(Semaphore::new(1)),
        }))
    }

    /// The user whose token this is. Takes as long as one fetch at most.
    pub async fn verify(&self, token: &str) -> Result<User, Rejection> {
        let token = Token::read(token).map_err(Rejection::Unauthenticated)?;
        let keys = self.keys_for(&token).await.ok_or(Rejection::Unavailable)?;
        token.user(&keys, &self.0.options).map_err(Rejection::Unauthenticated)
    }

    /// The keys to judge a token by; none if there never were any.
    async fn keys_for(&self, token: &Token<'_>) -> Option<Arc<KeySet>> {
        if let Some(keys) = self.0.keys().filter(|keys| keys.names(&token.key)) {
            self.renew_stale();
            return Some(keys);
        }
        // Who waited here for another's fetch begins none, and takes what that one brought.
        let turn = self.0.fetching.clone().acquire_owned().await.expect("the semaphore is never closed");
        if let Some(fetch) = self.fetch(turn) {
            let _ = fetch.await;
        }
        self.0.keys()
    }

    /// Fetches old keys anew, while the old ones go on.
    fn renew_stale(&self) {
        let stale = self.0.cache().is_stale(now());
        if stale && let Ok(turn) = self.0.fetching.clone().try_acquire_owned() {
            drop(self.fetch(turn));
        }
    }

    /// Fetches unless that was tried just now. In a task of its own, which ends by the deadline: a client that
    /// leaves drops its request, but others wait for the same keys.
    fn fetch(&self, turn: OwnedSemaphorePermit) -> Option<JoinHandle<()>> {
        let begun = now();
        if !self.0.cache().begin(begun) {
            return None;
        }
        let shared = self.0.clone();
        Some(tokio::spawn(async move {
            let fetched = published(&shared.http, shared.options.jwks_url.clone()).await;
            shared.settle(fetched, begun);
            drop(turn);
        }))
    }
}

impl Shared {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keys(&self) -> Option<Arc<KeySet>> {
        self.cache().keys(now()).cloned()
    }

    fn settle(&self, fetched: Result<KeySet, Failure>, begun: Instant) {
        let failure = match fetched {
            // Published is published: an issuer who withdraws all keys wants no token to pass.
            Ok(keys) => {
                let none = keys.is_empty();
                self.cache().keep(keys, begun);
                none.then(|| failure("no_usable_key", "the set has no key that can prove a user token"))
            }
            Err(failure) => Some(failure),
        };
        let news = self.cache().turns(failure.is_some());
        match failure {
            Some(Failure { code, message, .. }) if news => {
                tracing::warn!(code, message, "fetching the signing keys of user tokens; trying again");
            }
            None if news => tracing::info!("the signing keys of user tokens can be fetched again"),
            _ => {}
        }
    }
}

async fn published(http: &Client, url: Url) -> Result<KeySet, Failure> {
    let answer = http::call_within(http.get(url), LARGEST_SET).await?;
    if answer.status != StatusCode::OK {
        return Err(failure(answer.status.as_str(), "the keys' publisher refuses to show them"));
    }
    KeySet::read(&answer.body).ok_or_else(|| failure("unreadable_answer", "the answer is no set of keys"))
}

fn failure(code: &str, message: &str) -> Failure {
    Failure {
        advice: Advice::Retry(None),
        code: code.to_owned(),
        message: message.to_owned(),
        request_id: None,
    }
}

/// By tokio's clock, which tests can put forward.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
