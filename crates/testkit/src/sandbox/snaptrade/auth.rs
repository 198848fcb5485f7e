//! Who may call: a signed request of the known client, for a known user, not older than five minutes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::extract::Query;
use axum::http::request::Parts;
use chrono::Utc;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;
use super::signature;
use crate::sandbox::SnaptradeUser;

/// How far a request's timestamp may be from the server's clock, in either direction.
const MAX_SKEW_S: u64 = 300;

/// The client and its users.
pub(super) struct Auth {
    client_id: String,
    consumer_key: String,
    /// Secrets by user id.
    users: Mutex<HashMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    client_id: String,
    timestamp: i64,
    user_id: String,
    user_secret: String,
}

impl Auth {
    pub(super) fn new(client_id: String, consumer_key: String, users: &[SnaptradeUser]) -> Self {
        let auth = Self { client_id, consumer_key, users: Mutex::default() };
        auth.add(users);
        auth
    }

    /// From now on these users are known, by the secrets they have now.
    pub(super) fn add(&self, users: &[SnaptradeUser]) {
        let mut known = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(users.iter().map(|user| (user.user_id.clone(), user.user_secret.clone())));
    }

    /// The id of the user whose data the caller may read.
    pub(super) fn admit(&self, parts: &Parts, body: &[u8]) -> Result<String, Refusal> {
        let credentials: Credentials = query(parts).map_err(|_| Refusal::Signature)?;
        let fresh = Utc::now().timestamp().abs_diff(credentials.timestamp) <= MAX_SKEW_S;
        if credentials.client_id != self.client_id || !fresh || !self.signed(parts, body) {
            return Err(Refusal::Signature);
        }
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let known = users.get(&credentials.user_id).ok_or(Refusal::Permission)?;
        if *known == credentials.user_secret { Ok(credentials.user_id) } else { Err(Refusal::Permission) }
    }

    fn signed(&self, parts: &Parts, body: &[u8]) -> bool {
        let signature = parts.headers.get("signature").and_then(|value| value.to_str().ok());
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        signature.is_some_and(|sent| signature::holds(&self.consumer_key, body, path, query, sent))
    }
}

/// The parameters that a route knows; others are passed over.
pub(super) fn query<T: DeserializeOwned>(parts: &Parts) -> Result<T, Refusal> {
    Query::try_from_uri(&parts.uri).map(|Query(parameters)| parameters).map_err(|_| Refusal::Query)
}
