//! Signed calls.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::NaiveDate;
use contract::env::keys;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use settings::{Env, Noted};
use telemetry::Metrics;
use url::Url;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::error;
use super::model::{Activities, Balance, Orders, Positions};
use super::sign::signature;
use crate::failure::{Advice, Failure};
use crate::http;

/// The largest page that SnapTrade gives.
const ACTIVITIES_A_PAGE: u64 = 1000;

/// How the provider is called in metrics.
const PROVIDER: &str = "snaptrade";

/// Where SnapTrade is and who we are there.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scheme, host and port; a path of its own is put in front of every path.
    pub base_url: Url,
    /// Our client id.
    pub client_id: String,
    /// Signs every request.
    pub consumer_key: SecretString,
    /// The longest call.
    pub timeout: Duration,
}

impl Options {
    /// Reads the settings.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let base_url = env.url(&keys::SNAPTRADE_BASE_URL);
        let client_id = env.text(&keys::SNAPTRADE_CLIENT_ID);
        let consumer_key = env.secret(&keys::SNAPTRADE_CONSUMER_KEY);
        let timeout = env.duration(&keys::SNAPTRADE_TIMEOUT_MS, 100..=40_000);
        Ok(Self {
            base_url: base_url?,
            client_id: client_id?,
            consumer_key: consumer_key?,
            timeout: timeout?,
        })
    }
}

/// On whose behalf an account is read.
#[derive(Clone, Debug)]
pub struct User {
    /// Our id of the user.
    pub id: String,
    /// The user's secret at SnapTrade.
    pub secret: SecretString,
}

/// A successful answer.
#[derive(Clone, Debug)]
pub struct Fetched<T> {
    /// What was asked for.
    pub value: T,
    /// SnapTrade's id of the request.
    pub request_id: Option<String>,
}

/// A client; cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    options: Options,
    metrics: Arc<Metrics>,
}

impl Client {
    /// A client with these options.
    pub fn new(options: Options, metrics: Arc<Metrics>) -> Self {
        Self { http: http::client(options.timeout), options, metrics }
    }

    /// The longest that one call takes.
    pub const fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// All positions of an account.
    pub async fn positions(&self, user: &User, account: Uuid) -> Result<Fetched<Positions>, Failure> {
        self.get(user, &format!("/accounts/{account}/positions/all"), &[]).await
    }

    /// The balances of an account, one a currency.
    pub async fn balances(&self, user: &User, account: Uuid) -> Result<Fetched<Vec<Balance>>, Failure> {
        self.get(user, &format!("/accounts/{account}/balances"), &[]).await
    }

    /// The orders of an account's last 30 days.
    pub async fn orders(&self, user: &User, account: Uuid) -> Result<Fetched<Orders>, Failure> {
        self.get(user, &format!("/accounts/{account}/orders/v2"), &[]).await
    }

    /// A page of an account's activities, newest first: those from `start` on, `offset` of them left out.
    pub async fn activities(
        &self,
        user: &User,
        account: Uuid,
        start: Option<NaiveDate>,
        offset: u64,
    ) -> Result<Fetched<Activities>, Failure> {
        let mut parameters = vec![("offset", offset.to_string()), ("limit", ACTIVITIES_A_PAGE.to_string())];
        parameters.extend(start.map(|date| ("startDate", date.to_string())));
        self.get(user, &format!("/accounts/{account}/activities"), &parameters).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        user: &User,
        path: &str,
        parameters: &[(&str, String)],
    ) -> Result<Fetched<T>, Failure> {
        let started = Instant::now();
        let fetched = self.fetch(self.url(user, path, parameters)).await;
        let outcome = match &fetched {
            Ok(_) => "ok",
            Err(Failure { advice: Advice::StayAway(_), .. }) => "throttled",
            Err(Failure { advice: Advice::Wait(_), .. }) => "not_ready",
            Err(Failure { advice: Advice::Retry(_), .. }) => "failed",
            Err(Failure { advice: Advice::GiveUp, .. }) => "refused",
        };
        self.metrics.provider_calls.with_label_values(&[PROVIDER, outcome]).inc();
        self.metrics.provider_seconds.with_label_values(&[PROVIDER]).observe(started.elapsed().as_secs_f64());
        fetched
    }

    async fn fetch<T: DeserializeOwned>(&self, url: Url) -> Result<Fetched<T>, Failure> {
        let signature = signature(&self.options.consumer_key, url.path(), url.query().unwrap_or_default());
        let answer = http::call(self.http.get(url).header("Signature", signature)).await?;
        if !answer.status.is_success() {
            return Err(error::failure(&answer));
        }
        let request_id = answer.header("x-request-id").map(str::to_owned);
        match serde_json::from_slice(&answer.body) {
            Ok(value) => Ok(Fetched { value, request_id }),
            // serde's own message would quote the body.
            Err(error) => Err(Failure {
                advice: Advice::Retry(None),
                code: "unreadable_answer".to_owned(),
                message: format!(
                    "SnapTrade's answer is not what its API promises (line {}, column {})",
                    error.line(),
                    error.column()
                ),
                request_id,
            }),
        }
    }

    fn url(&self, user: &User, path: &str, parameters: &[(&str, String)]) -> Url {
        let mut url = self.options.base_url.clone();
        url.set_path(&format!("{}{path}", self.options.base_url.path().trim_end_matches('/')));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let query = Serializer::new(String::new())
            .append_pair("clientId", &self.options.client_id)
            .append_pair("timestamp", &now.to_string())
            .append_pair("userId", &user.id)
            .append_pair("userSecret", user.secret.expose_secret())
            .extend_pairs(parameters)
            .finish();
        url.set_query(Some(&query));
        url
    }
}
