//! Sends deliveries as SnapTrade would, and reads status as a caller would.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use testkit::sandbox::snaptrade::webhook::signature;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Event, Statuses};
use crate::connection::Settings;

/// What became of one delivery.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The sender's id.
    pub(super) id: String,
    /// The outcome's word, or what came instead of one.
    pub(super) outcome: String,
    /// The command, where there is one.
    pub(super) command_id: Option<Uuid>,
    /// How long the answer took.
    pub(super) took: Duration,
}

#[derive(Deserialize)]
struct Accepted {
    outcome: String,
    command_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct Command {
    status: contract::Status,
}

/// A sender before one or more gateways.
pub(super) struct Sender {
    http: Client,
    gateways: Vec<String>,
    consumer_key: String,
    token: String,
}

impl Sender {
    pub(super) fn new(gateways: Vec<String>, settings: &Settings) -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http =
            Client::builder().timeout(Duration::from_secs(30)).build().context("building an HTTP client")?;
        Ok(Self {
            http,
            gateways,
            consumer_key: settings.get("SANMOPIA_SNAPTRADE_CONSUMER_KEY")?.to_owned(),
            token: settings.get("SANMOPIA_SERVICE_TOKEN")?.to_owned(),
        })
    }

    /// Sends all deliveries, so many at a time, and answers in their order.
    pub(super) async fn send_all(&self, events: &[Event], clients: usize) -> Vec<Answer> {
        let next = AtomicUsize::new(0);
        let client = async |_: usize| {
            let mut answers = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(event) = events.get(i) else { return answers };
                answers.push((i, self.send(event, i).await));
            }
        };
        let mut answers = futures_util::future::join_all((0..clients.max(1)).map(client)).await.concat();
        answers.sort_by_key(|(i, _)| *i);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn send(&self, event: &Event, i: usize) -> Answer {
        let url = format!("{}/webhooks/snaptrade", self.gateways[i % self.gateways.len()]);
        let request = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .header("signature", signature(&self.consumer_key, event.body.as_bytes()))
            .body(event.body.clone());
        let began = Instant::now();
        let answer = async {
            let response = request.send().await?;
            let status = response.status();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        };
        let (outcome, command_id) = match answer.await {
            Ok((StatusCode::ACCEPTED, body)) => match serde_json::from_slice::<Accepted>(&body) {
                Ok(accepted) => (accepted.outcome, accepted.command_id),
                Err(_) => ("unreadable".to_owned(), None),
            },
            Ok((status, _)) => (status.as_u16().to_string(), None),
            Err(_) => ("no answer".to_owned(), None),
        };
        Answer { id: event.id.clone(), outcome, command_id, took: began.elapsed() }
    }

    /// Reads the status of every command until it is terminal or the budget is used up.
    pub(super) async fn wait_for_ends(&self, commands: &HashSet<Uuid>, budget: Duration) -> Statuses {
        let deadline = Instant::now() + budget;
        let open = Arc::new(tokio::sync::Semaphore::new(16));
        let mut readers = JoinSet::new();
        for (i, command) in commands.iter().copied().enumerate() {
            let url = format!("{}/v1/commands/{command}", self.gateways[i % self.gateways.len()]);
            let (http, token, open) = (self.http.clone(), self.token.clone(), open.clone());
            readers.spawn(async move {
                loop {
                    let status = {
                        let _turn = open.acquire().await;
                        read_status(&http, &url, &token).await
                    };
                    if status.is_some_and(contract::Status::is_terminal) || Instant::now() >= deadline {
                        let word =
                            status.map_or_else(|| "unreadable".to_owned(), |status| status.to_string());
                        return (command, word);
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
        }
        readers.join_all().await.into_iter().collect()
    }
}

async fn read_status(http: &Client, url: &str, token: &str) -> Option<contract::Status> {
    let response = http.get(url).bearer_auth(token).send().await.ok()?;
    let command: Command = serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
    Some(command.status)
}
