//! A platform for one test: a database, the sandbox, gateways in process.

use std::sync::Once;
use std::time::Duration;

use gateway::{Gateway, Options};
use intake::{Options as Door, Services};
use reqwest::{Client, Response};
use secrecy::{SecretBox, SecretString};
use serde_json::{Value, json};
use store::Pooler;
use store::seal::Sealer;
use store::snaptrade::NewUser;
use testkit::Database;
use testkit::sandbox::snaptrade::webhook::{event, signature};
use testkit::sandbox::{Config, Sandbox, SnaptradeUser};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use webhook::killbill::Admission;
use webhook::snaptrade::Verifier;
use webhook::standard::Sources;

pub(crate) const CONSUMER_KEY: &str = "consumer-key-of-the-tests";
pub(crate) const WEBHOOK_SECRET: &str = "webhook-secret-of-the-tests";
pub(crate) const SERVICE_TOKEN: &str = "service-token-of-the-tests";
pub(crate) const ADMISSION_TOKEN: &str = "admission-token-of-the-tests";
/// A sender that follows Standard Webhooks, and 24 bytes of `s` in base64.
pub(crate) const SOURCE: &str = "shop";
pub(crate) const SOURCE_SECRET: &str = "whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz";
/// 32 bytes of `d`, in base64.
pub(crate) const DATA_KEY: &str = "ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGQ=";
pub(crate) const BUDGET: Duration = Duration::from_secs(30);
pub(crate) const QUEUE: &str = "sanmopia_snaptrade_account_sync";

/// The user whose accounts a platform knows.
pub(crate) const USER: &str = "user-1";

/// See the module.
pub(crate) struct Platform {
    pub(crate) database: Database,
    pub(crate) sandbox: Sandbox,
    pub(crate) accounts: Vec<Uuid>,
    pub(crate) gateways: Vec<Running>,
    pub(crate) http: Client,
}

/// A gateway in this process.
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) internal_url: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// A gateway that reaches its database through a transaction pooler, with limits as `change` leaves them.
    pub(crate) async fn pooled(database: &Database, change: impl FnOnce(&mut Options)) -> Self {
        let url = database.pooled_url_as("spillway_gateway").await;
        Self::start(&url, |options| {
            options.store = options.store.clone().behind(Pooler::Transaction);
            change(options);
        })
        .await
    }

    /// A gateway on the database at `url`, likewise.
    pub(crate) async fn start(url: &str, change: impl FnOnce(&mut Options)) -> Self {
        let local = "127.0.0.1:0".parse().expect("an address");
        let door = Door {
            in_flight: 256,
            reads_in_flight: 64,
            body_timeout: Duration::from_secs(5),
            webhook_body: 256 * 1024,
            command_body: 1024 * 1024,
            longest_wait: Duration::from_secs(20),
            snaptrade: Verifier::new(SecretString::from(CONSUMER_KEY), SecretString::from(WEBHOOK_SECRET)),
            killbill: Admission::new(SecretString::from(ADMISSION_TOKEN)),
            killbill_window: Duration::from_mins(1),
            standard: Sources::of([(SOURCE, SecretString::from(SOURCE_SECRET))]).expect("a right secret"),
            services: Services::new(SecretString::from(SERVICE_TOKEN), Vec::new()),
            users: None,
        };
        let mut options = Options {
            listen: local,
            internal_listen: local,
            header_timeout: Duration::from_secs(5),
            store: store::Options::of_url(url, 8).with_deadline(Duration::from_secs(5)),
            intake: door,
        };
        change(&mut options);
        let gateway = Gateway::bind(options).await.expect("free ports");
        let (address, internal) =
            (gateway.address().expect("bound"), gateway.internal_address().expect("bound"));
        let stop = CancellationToken::new();
        let token = stop.clone();
        let task = tokio::spawn(async move {
            gateway.serve(&process::Options::brief(), token).await.expect("the database answers");
        });
        Self { url: format!("http://{address}"), internal_url: format!("http://{internal}"), stop, task }
    }

    /// Stops it and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(BUDGET, self.task).await.expect("it stops").expect("it does not panic");
    }
}

impl Platform {
    /// A platform with one gateway that knows so many accounts.
    pub(crate) async fn with_accounts(n: usize) -> Self {
        Self::with(1, n).await
    }

    /// A platform with so many gateways that knows so many accounts. The first of the gateways stands behind the
    /// pooler, the others before the server itself: what holds has to hold by both ways, also at once.
    pub(crate) async fn with(gateways: usize, accounts: usize) -> Self {
        install_tls();
        let database = Database::fresh().await;
        let accounts: Vec<Uuid> = (0..accounts).map(|_| Uuid::new_v4()).collect();
        let secret = "user-secret-1".to_owned();
        let user = SnaptradeUser {
            user_id: USER.to_owned(),
            user_secret: secret.clone(),
            accounts: accounts.clone(),
        };
        let config = Config {
            client_id: "TESTCLIENT".to_owned(),
            consumer_key: CONSUMER_KEY.to_owned(),
            quota_per_minute: 100_000,
            // Longer than nothing, so that there is work under way to be interrupted.
            latency: Duration::from_millis(5),
            users: vec![user],
            ..Config::default()
        };
        let sandbox = Sandbox::start(config).await.expect("a free port");
        let user = NewUser {
            user_id: USER.to_owned(),
            user_secret: SecretString::from(secret),
            accounts: accounts.clone(),
        };
        let operator = database.pool_as("spillway_operator", 1);
        store::snaptrade::load(&operator, &sealer(), &[user]).await.expect("the schema is there");
        let mut running = Vec::new();
        for nth in 0..gateways {
            let direct = database.url_as("spillway_gateway");
            running.push(match nth {
                0 => Running::pooled(&database, |_| ()).await,
                _ => Running::start(&direct, |_| ()).await,
            });
        }
        Self { database, sandbox, accounts, gateways: running, http: client() }
    }

    /// The body of a holdings event about one of the accounts.
    pub(crate) fn holdings_event(&self, id: &str, account: usize) -> String {
        event(id, "ACCOUNT_HOLDINGS_UPDATED", USER, self.accounts[account]).to_string()
    }

    /// Delivers a signed body to the first gateway.
    pub(crate) async fn deliver(&self, body: &str) -> Value {
        deliver(&self.http, &self.gateways[0].url, body).await
    }

    /// Reads a command as its caller would.
    pub(crate) async fn command(&self, id: &str) -> Value {
        let url = format!("{}/v1/commands/{id}", self.gateways[0].url);
        object(self.http.get(url).bearer_auth(SERVICE_TOKEN).send().await.expect("an answer")).await
    }

    /// How many rows a query counts.
    pub(crate) async fn count(&self, from: &str) -> i64 {
        self.database.number(&format!("select count(*) from {from}")).await
    }

    /// The settings of a process that belongs to this platform.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let own = [
            ("SANMOPIA_DATABASE_URL", self.database.url()),
            ("SANMOPIA_GATEWAY_DATABASE_URL", self.database.url_as("spillway_gateway")),
            ("SANMOPIA_WORKER_DATABASE_URL", self.database.url_as("spillway_worker")),
            ("SANMOPIA_OPERATOR_DATABASE_URL", self.database.url_as("spillway_operator")),
            ("SANMOPIA_DATA_KEY", DATA_KEY.to_owned()),
            ("SANMOPIA_SERVICE_TOKEN", SERVICE_TOKEN.to_owned()),
            ("SANMOPIA_KILLBILL_ADMISSION_TOKEN", ADMISSION_TOKEN.to_owned()),
            ("SANMOPIA_SNAPTRADE_BASE_URL", self.sandbox.url()),
            ("SANMOPIA_SNAPTRADE_CLIENT_ID", "TESTCLIENT".to_owned()),
            ("SANMOPIA_SNAPTRADE_CONSUMER_KEY", CONSUMER_KEY.to_owned()),
            ("SANMOPIA_SNAPTRADE_WEBHOOK_SECRET", WEBHOOK_SECRET.to_owned()),
            ("SANMOPIA_GATEWAY_LISTEN", "127.0.0.1:0".to_owned()),
            ("SANMOPIA_GATEWAY_INTERNAL_LISTEN", "127.0.0.1:0".to_owned()),
            ("SANMOPIA_WORKER_LISTEN", "127.0.0.1:0".to_owned()),
        ];
        with(example(), own)
    }
}

/// Settings in which some have other values.
pub(crate) fn with<const N: usize>(
    mut settings: Vec<(String, String)>,
    changes: [(&str, String); N],
) -> Vec<(String, String)> {
    for (name, value) in changes {
        settings.retain(|(known, _)| known != name);
        settings.push((name.to_owned(), value));
    }
    settings
}

/// The assignments of `.env.example`.
pub(crate) fn example() -> Vec<(String, String)> {
    let text = std::fs::read_to_string("../.env.example").expect("the example is in the checkout");
    let assignments = text.lines().filter(|line| !line.starts_with('#'));
    assignments
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Delivers a signed body and reads the answer, which must be 202.
pub(crate) async fn deliver(http: &Client, gateway: &str, body: &str) -> Value {
    let response = send(http, gateway, body, Some(&signature(CONSUMER_KEY, body.as_bytes()))).await;
    assert_eq!(response.status(), 202);
    object(response).await
}

/// Posts a SnapTrade webhook.
pub(crate) async fn send(http: &Client, gateway: &str, body: &str, signature: Option<&str>) -> Response {
    let mut request = http.post(format!("{gateway}/webhooks/snaptrade")).body(body.to_owned());
    if let Some(signature) = signature {
        request = request.header("signature", signature);
    }
    request.send().await.expect("an answer")
}

/// An answer's JSON.
pub(crate) async fn object(response: Response) -> Value {
    let body = response.bytes().await.expect("a whole answer");
    serde_json::from_slice(&body).unwrap_or_else(|_| json!({ "not_json": String::from_utf8_lossy(&body) }))
}

pub(crate) fn sealer() -> Sealer {
    Sealer::new(&SecretBox::new(Box::new([b'd'; 32])))
}

pub(crate) fn client() -> Client {
    install_tls();
    Client::builder().timeout(BUDGET).build().expect("constant options")
}

fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}
