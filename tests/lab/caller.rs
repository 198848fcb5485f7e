//! Talks to a gateway as those outside do: delivers SnapTrade's webhooks, and reads the status of commands.

use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use testkit::sandbox::snaptrade::webhook::signature;
use uuid::Uuid;

use crate::connection::Settings;

/// What a delivery was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// 202.
    Accepted {
        /// The outcome's word.
        outcome: String,
        /// The command, where there is one.
        command: Option<Uuid>,
    },
    /// Another status.
    Refused(u16),
    /// 202 with a body that is not the promised one.
    Unreadable,
    /// The connection failed, or the answer took too long.
    NoAnswer,
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

/// Keeps its connections; cheap to clone.
#[derive(Clone)]
pub(crate) struct Caller {
    http: Client,
    consumer_key: String,
    token: String,
}

impl Caller {
    /// One who waits so long for an answer.
    pub(crate) fn new(settings: &Settings, patience: Duration) -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().timeout(patience).build().context("building an HTTP client")?;
        Ok(Self {
            http,
            consumer_key: settings.get("SANMOPIA_SNAPTRADE_CONSUMER_KEY")?.to_owned(),
            token: settings.get("SANMOPIA_SERVICE_TOKEN")?.to_owned(),
        })
    }

    /// Delivers a signed event.
    pub(crate) async fn deliver(&self, gateway: &str, body: &str) -> Reply {
        let request = self
            .http
            .post(format!("{gateway}/webhooks/snaptrade"))
            .header("content-type", "application/json")
            .header("signature", signature(&self.consumer_key, body.as_bytes()))
            .body(body.to_owned());
        let answer = async {
            let response = request.send().await?;
            let status = response.status();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        };
        match answer.await {
            Ok((StatusCode::ACCEPTED, body)) => match serde_json::from_slice::<Accepted>(&body) {
                Ok(Accepted { outcome, command_id }) => Reply::Accepted { outcome, command: command_id },
                Err(_) => Reply::Unreadable,
            },
            Ok((status, _)) => Reply::Refused(status.as_u16()),
            Err(_) => Reply::NoAnswer,
        }
    }

    /// Reads where a command stands; nothing where no answer says so.
    pub(crate) async fn status(&self, gateway: &str, command: Uuid) -> Option<contract::Status> {
        let request = self.http.get(format!("{gateway}/v1/commands/{command}")).bearer_auth(&self.token);
        let response = request.send().await.ok()?;
        let command: Command = serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
        Some(command.status)
    }
}
