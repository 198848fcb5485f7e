//! Gateway and worker behind a transaction pooler with fewer server sessions than they have connections.

use lab::connection::Settings;
use lab::storm::{Args, blow};
use serde_json::Value;
use testkit::eventually;
use testkit::sandbox::{Fault, Rule};

use crate::platform::{BUDGET, Platform, QUEUE, SERVICE_TOKEN, object, with};
use crate::program::{Program, free_address, run};

const WORKER: &[&str] = &["--queue", "snaptrade-account-sync"];

/// A platform whose gateway runs as a program; whatever it and the worker do leads through the pooler.
struct Pooled {
    platform: Platform,
    settings: Vec<(String, String)>,
    url: String,
    gateway: Program,
}

impl Pooled {
    async fn start(accounts: usize) -> Self {
        let platform = Platform::with(0, accounts).await;
        let database = &platform.database;
        let (public, internal) = (free_address(), free_address());
        let settings = with(
            platform.settings(),
            [
                ("SANMOPIA_DATABASE_POOLER", "transaction".to_owned()),
                ("SANMOPIA_GATEWAY_DATABASE_URL", database.pooled_url_as("spillway_gateway").await),
                ("SANMOPIA_WORKER_DATABASE_URL", database.pooled_url_as("spillway_worker").await),
                ("SANMOPIA_GATEWAY_LISTEN", public.clone()),
                ("SANMOPIA_GATEWAY_INTERNAL_LISTEN", internal.clone()),
            ],
        );
        let gateway = Program::start("gateway", &[], &settings);
        eventually("the gateway is ready", BUDGET, async || {
            let answer = platform.http.get(format!("http://{internal}/readyz")).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        Self { platform, settings, url: format!("http://{public}"), gateway }
    }

    fn worker(&self) -> Program {
        Program::start("webhook-worker", WORKER, &self.settings)
    }

    /// The id of a sync that was asked for and accepted.
    async fn ask(&self, key: &str) -> String {
        let url = format!("{}/v1/snaptrade/accounts/{}/syncs", self.url, self.platform.accounts[0]);
        let request = self.platform.http.post(url).bearer_auth(SERVICE_TOKEN).header("idempotency-key", key);
        let response = request.body(r#"{"work_type":"holdings"}"#).send().await.expect("an answer");
        assert_eq!(response.status(), 202);
        object(response).await["id"].as_str().expect("an id").to_owned()
    }

    async fn awaited(&self, id: &str) -> Value {
        let url = format!("{}/v1/commands/{id}?wait=20s", self.url);
        object(self.platform.http.get(url).bearer_auth(SERVICE_TOKEN).send().await.expect("an answer")).await
    }

    async fn cancel(&self, id: &str) -> u16 {
        let url = format!("{}/v1/commands/{id}/cancel", self.url);
        let request = self.platform.http.post(url).bearer_auth(SERVICE_TOKEN);
        request.send().await.expect("an answer").status().as_u16()
    }
}

#[tokio::test]
async fn behind_a_transaction_pooler_a_storm_loses_and_doubles_nothing() {
    let pooled = Pooled::start(0).await;
    let (first, second) = (pooled.worker(), pooled.worker());
    let args = Args {
        events: 2000,
        accounts: 200,
        duplicates: 0.6,
        clients: 32,
        seed: Some(20_261_201),
        gateways: vec![pooled.url.clone()],
        wait_seconds: 150,
        json: false,
    };
    let report = blow(&args, &Settings::of(pooled.settings.clone())).await.expect("the platform is there");

    let platform = &pooled.platform;
    assert!(report.is_whole(), "{report:?}");
    let queued = report.outcomes["queued"];
    let coalesced = report.outcomes.get("coalesced").copied().unwrap_or_default();
    assert_eq!((queued + coalesced, report.outcomes["duplicate"]), (800, 1200));
    assert_eq!(report.ended["succeeded"], queued, "{report:?}");
    assert_eq!(platform.count("spillway.webhook_inbox").await, 800);
    assert_eq!(platform.count("spillway.account_sync where ok_through <> requested").await, 0);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 0);
    assert_eq!(platform.count(&format!("pgmq.a_{QUEUE}")).await, i64::try_from(queued).unwrap_or(0));
    assert_eq!(platform.count("spillway.dead_letter").await, 0);
    for program in [first, second, pooled.gateway] {
        assert_eq!(program.terminate().await, Some(0));
    }
}

#[tokio::test]
async fn behind_a_transaction_pooler_commands_are_awaited_taken_back_and_given_up() {
    let pooled = Pooled::start(1).await;
    let taken_back = pooled.ask("taken back").await;
    assert_eq!(pooled.cancel(&taken_back).await, 200);
    let worker = pooled.worker();

    let done = pooled.ask("done").await;
    assert_eq!(pooled.awaited(&done).await["status"], "succeeded");
    assert_eq!(pooled.awaited(&taken_back).await["status"], "cancelled");

    let gone = Fault::Status {
        status: 404,
        code: "1011".to_owned(),
        detail: "The requested resource does not exist.".to_owned(),
        retry_after: None,
        reset_s: None,
    };
    pooled.platform.sandbox.script(Rule::on("GET", "/accounts/{id}/positions/all").answer(gone));
    let given_up = pooled.ask("given up").await;
    assert_eq!(pooled.awaited(&given_up).await["status"], "dead_lettered");
    assert_eq!(pooled.platform.count("spillway.dead_letter").await, 1);
    assert_eq!(worker.terminate().await, Some(0));
    assert_eq!(pooled.gateway.terminate().await, Some(0));
}

#[tokio::test]
async fn migrations_through_a_pooler_are_refused_with_the_cure() {
    let platform = Platform::with(0, 0).await;
    let settings = with(platform.settings(), [("SANMOPIA_DATABASE_URL", platform.database.pooled_url())]);
    let output = run("spillway", &["migrate"], &settings);
    let said = String::from_utf8_lossy(&output.stderr);

    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("transaction pooler") && said.contains("SANMOPIA_DATABASE_URL"), "{said}");
}
