//! A gateway as a process, and deliveries to it whose answers are written down.

use std::time::Duration;

use anyhow::Context;
use reqwest::Client;
use serde::Deserialize;
use testkit::sandbox::snaptrade::webhook::{event, signature};
use uuid::Uuid;

use super::history::{Operation, Told};
use super::programs::Program;
use super::scene::{CONSUMER_KEY, Scene, Settings};

/// Longer than a gateway may take for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whose accounts the events are about.
pub(super) const USER: &str = "drill-user";

/// A running gateway.
pub(super) struct Gateway {
    pub(super) program: Program,
    pub(super) url: String,
    pub(super) internal_url: String,
    own: Settings,
}

impl Gateway {
    /// Starts it once more, at the same addresses, as a supervisor does.
    pub(super) fn restart(&mut self, scene: &Scene) -> anyhow::Result<()> {
        self.program = scene.program("gateway", &[], self.own.clone(), "")?;
        Ok(())
    }
}

/// What became of one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// 202, and with what outcome.
    Taken(String),
    /// Any other status.
    Refused(u16),
    /// None.
    Nothing,
}

/// An event about one account, ready to be delivered as often as one likes.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) body: String,
}

impl Event {
    pub(super) fn new(id: String, account: Uuid) -> Self {
        let body = event(&id, "ACCOUNT_HOLDINGS_UPDATED", USER, account).to_string();
        Self { id, body }
    }

    /// The one event about each account.
    pub(super) fn each(accounts: &[Uuid]) -> Vec<Self> {
        accounts.iter().map(|account| Self::new(account.to_string(), *account)).collect()
    }
}

impl Scene {
    /// Starts a gateway with settings of its own and waits until it is ready.
    pub(super) async fn gateway(&self, crash: &str, own: Settings) -> anyhow::Result<Gateway> {
        let gateway = self.gateway_unready(crash, own)?;
        let ready = format!("{}/readyz", gateway.internal_url);
        self.until("the gateway is ready", async || {
            Ok(self.http.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()))
        })
        .await?;
        Ok(gateway)
    }

    fn gateway_unready(&self, crash: &str, mut own: Settings) -> anyhow::Result<Gateway> {
        let (public, internal) = (free_address()?, free_address()?);
        own.push(("SANMOPIA_GATEWAY_LISTEN", public.clone()));
        own.push(("SANMOPIA_GATEWAY_INTERNAL_LISTEN", internal.clone()));
        let program = self.program("gateway", &[], own.clone(), crash)?;
        let (url, internal_url) = (format!("http://{public}"), format!("http://{internal}"));
        Ok(Gateway { program, url, internal_url, own })
    }

    /// Delivers an event once and writes down what its sender was told. The sender leaves after `patience`.
    pub(super) async fn deliver(&self, gateway: &str, event: &Event, patience: Duration) -> Answer {
        #[derive(Deserialize)]
        struct Receipt {
            outcome: String,
            command_id: Option<Uuid>,
        }
        let request = self
            .http
            .post(format!("{gateway}/webhooks/snaptrade"))
            .header("signature", signature(CONSUMER_KEY, event.body.as_bytes()))
            .body(event.body.clone())
            .timeout(patience);
        let answer = async {
            let response = request.send().await?;
            Ok::<_, reqwest::Error>((response.status().as_u16(), response.bytes().await?))
        };
        let (answer, told, command) = match answer.await {
            Err(_) => (Answer::Nothing, Told::Unknown, None),
            Ok((202, body)) => match serde_json::from_slice::<Receipt>(&body) {
                Ok(receipt) => (Answer::Taken(receipt.outcome), Told::Ok, receipt.command_id),
                Err(_) => (Answer::Nothing, Told::Unknown, None),
            },
            Ok((status, _)) => (Answer::Refused(status), Told::Refused, None),
        };
        self.history.note(Operation { key: event.id.clone(), command, told });
        answer
    }

    /// Delivers as a provider does: again and again until it is told that the event was taken.
    pub(super) async fn deliver_at_last(&self, gateway: &str, event: &Event) -> anyhow::Result<()> {
        self.until("the event is taken", async || {
            Ok(matches!(self.deliver(gateway, event, PATIENCE).await, Answer::Taken(_)))
        })
        .await
    }

    /// The same with many events, one after the other.
    pub(super) async fn deliver_all(&self, gateway: &str, events: &[Event]) -> anyhow::Result<()> {
        for event in events {
            self.deliver_at_last(gateway, event).await?;
        }
        Ok(())
    }
}

/// A client whose connections nobody shares with another sender.
pub(super) fn client() -> anyhow::Result<Client> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::builder().timeout(PATIENCE).pool_max_idle_per_host(0).no_proxy().build();
    client.context("making an HTTP client")
}

/// An address that nobody listens on now.
fn free_address() -> anyhow::Result<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("finding a free port")?;
    Ok(listener.local_addr().context("finding a free port")?.to_string())
}
