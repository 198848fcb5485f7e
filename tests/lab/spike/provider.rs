//! The sandbox that plays SnapTrade: told how to fail, and asked what it has seen.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use contract::snaptrade::WorkType;
use reqwest::{Client, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use testkit::sandbox::snaptrade::PROVIDER;
use testkit::sandbox::{self, Fault, Rule, RuleId};
use uuid::Uuid;

use super::history::{Call, Key, PlannedFault};
use crate::connection::Settings;

/// Shares of the calls that the quota lets in.
pub(super) const SERVER_ERRORS: f64 = 0.05;
pub(super) const LOST_ANSWERS: f64 = 0.02;

/// What each other call takes, so that runs last long enough for events to come during them.
const LATENCY: Duration = Duration::from_millis(250);

/// The steps of a run, by the end of their paths.
const STEPS: [(&str, WorkType, usize); 4] = [
    ("/positions/all", WorkType::Holdings, 0),
    ("/balances", WorkType::Holdings, 1),
    ("/orders/v2", WorkType::Holdings, 2),
    ("/activities", WorkType::Transactions, 0),
];

/// A sandbox at its control routes.
pub(super) struct Provider {
    http: Client,
    url: String,
    faults: HashMap<RuleId, PlannedFault>,
    accounts: HashSet<Uuid>,
    seen: usize,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Added {
    id: RuleId,
}

impl Provider {
    /// Calls for other accounts than these are nobody's business.
    pub(super) fn new(settings: &Settings, accounts: &[Uuid]) -> anyhow::Result<Self> {
        Ok(Self {
            http: Client::new(),
            url: settings.get("SANMOPIA_SNAPTRADE_BASE_URL")?.to_owned(),
            faults: HashMap::new(),
            accounts: accounts.iter().copied().collect(),
            seen: 0,
            calls: Vec::new(),
        })
    }

    /// From now on it fails as planned.
    pub(super) async fn fail(&mut self, quota: u32, period: Duration) -> anyhow::Result<()> {
        let half = SERVER_ERRORS / 2.0;
        for (fault, share, planned) in [
            (Fault::broker_down(), half, PlannedFault::ServerError),
            (Fault::unexpected(), half, PlannedFault::ServerError),
            (Fault::LostAnswer, LOST_ANSWERS, PlannedFault::LostAnswer),
        ] {
            let id = self.add(&Rule::on("GET", "*").share(share).answer(fault)).await?;
            self.faults.insert(id, planned);
        }
        self.add(&Rule::on("GET", "*").answer(Fault::Latency(LATENCY))).await?;
        let quota = json!({ "calls": quota, "seconds": period.as_secs() });
        self.ask(Method::PUT, "/sandbox/snaptrade/quota", Some(quota.to_string())).await?;
        Ok(())
    }

    /// Fetches what came since the last time.
    pub(super) async fn look(&mut self, epoch_ms: f64) -> anyhow::Result<()> {
        let answer = self.ask(Method::GET, &format!("/sandbox/calls?since={}", self.seen), None).await?;
        let calls: Vec<sandbox::Call> = parse(&answer)?;
        self.seen += calls.len();
        let ours: Vec<Call> = calls.iter().filter_map(|call| self.understand(call, epoch_ms)).collect();
        self.calls.extend(ours);
        Ok(())
    }

    pub(super) fn calls(&self) -> &[Call] {
        &self.calls
    }

    pub(super) fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    #[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are the year 2255")]
    fn understand(&self, call: &sandbox::Call, epoch_ms: f64) -> Option<Call> {
        let account =
            call.key.filter(|account| self.accounts.contains(account) && call.provider == PROVIDER)?;
        let (_, work, step) = STEPS.into_iter().find(|(end, ..)| call.path.ends_with(end))?;
        Some(Call {
            key: Key { work, account },
            step,
            at_ms: call.at.timestamp_micros() as f64 / 1000.0 - epoch_ms,
            took_ms: call.duration_ms as f64,
            status: call.status,
            answered: call.status.is_some() && !call.answer_lost,
            request_id: call.request_id.to_string(),
            in_flight: call.in_flight_provider,
            asked_wait_s: call.asked_wait_s.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX)),
            fault: call.rule.and_then(|rule| self.faults.get(&rule).copied()),
        })
    }

    async fn add(&self, rule: &Rule) -> anyhow::Result<RuleId> {
        let rule = serde_json::to_string(rule).context("writing a rule as JSON")?;
        let added: Added = parse(&self.ask(Method::POST, "/sandbox/script", Some(rule)).await?)?;
        Ok(added.id)
    }

    async fn ask(&self, method: Method, path: &str, body: Option<String>) -> anyhow::Result<Vec<u8>> {
        let url = format!("{}{path}", self.url);
        let mut request = self.http.request(method, &url).header("content-type", "application/json");
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.with_context(|| format!("asking {url}"))?;
        ensure!(response.status().is_success(), "{url} answered {}", response.status());
        Ok(response.bytes().await.with_context(|| format!("reading {url}"))?.to_vec())
    }
}

fn parse<T: DeserializeOwned>(answer: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(answer).context("understanding the sandbox")
}
