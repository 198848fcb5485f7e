//! A sandbox with two users, and the plainest HTTP client: one connection a request, read to its end.

use std::collections::HashMap;

use serde_json::Value;
use testkit::sandbox::{Config, Sandbox, SnaptradeUser, snaptrade};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

/// Anna's account.
pub(crate) const HERS: Uuid = Uuid::from_u128(0xa11a);
/// Bert's account.
pub(crate) const HIS: Uuid = Uuid::from_u128(0xbe27);

pub(crate) const POSITIONS: &str = "/accounts/{id}/positions/all";

const KEY: &str = "ck_test_key";

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// By lower-case name.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() })
    }
}

/// Anna and Bert with an account each.
pub(crate) fn config() -> Config {
    let user = |name: &str, account| SnaptradeUser {
        user_id: name.to_owned(),
        user_secret: format!("secret-of-{name}"),
        accounts: vec![account],
    };
    Config { users: vec![user("anna", HERS), user("bert", HIS)], ..Config::default() }
}

pub(crate) async fn start(config: Config) -> Sandbox {
    Sandbox::start(config).await.expect("a sandbox on a free port")
}

/// The query that Anna's requests carry.
pub(crate) fn credentials(user: &str, secret: &str, age_s: i64) -> String {
    let timestamp = chrono::Utc::now().timestamp() - age_s;
    format!("clientId=SPILLWAYDEV&timestamp={timestamp}&userId={user}&userSecret={secret}")
}

/// Anna reads one of her account's resources; `{id}` in the path is her account.
pub(crate) async fn read(sandbox: &Sandbox, path: &str, more: &str) -> Option<Reply> {
    let path = path.replace("{id}", &HERS.to_string());
    let query = format!("{}{more}", credentials("anna", "secret-of-anna", 0));
    get(sandbox, &path, &query, &snaptrade::sign(KEY, &path, &query)).await
}

pub(crate) async fn read_positions(sandbox: &Sandbox) -> Reply {
    read(sandbox, POSITIONS, "").await.expect("an answer")
}

/// A request that is signed, but with whatever credentials.
pub(crate) async fn read_as(sandbox: &Sandbox, account: Uuid, query: &str) -> Reply {
    let path = format!("/accounts/{account}/balances");
    get(sandbox, &path, query, &snaptrade::sign(KEY, &path, query)).await.expect("an answer")
}

pub(crate) async fn get(sandbox: &Sandbox, path: &str, query: &str, signature: &str) -> Option<Reply> {
    send(sandbox, "GET", &format!("{path}?{query}"), &format!("Signature: {signature}\r\n"), "").await
}

/// The reply, or none if the connection was closed without one.
pub(crate) async fn send(
    sandbox: &Sandbox,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> Option<Reply> {
    let mut stream = open(sandbox, method, target, headers, body).await;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("readable text");
    Reply::parse(&text)
}

/// Sends a request and leaves its answer unread.
pub(crate) async fn open(
    sandbox: &Sandbox,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> TcpStream {
    let url = sandbox.url();
    let address = url.strip_prefix("http://").expect("a plain URL");
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.expect("an open connection");
    stream
}

/// Anna asks for her positions and leaves the answer unread.
pub(crate) async fn open_positions(sandbox: &Sandbox) -> TcpStream {
    let path = POSITIONS.replace("{id}", &HERS.to_string());
    let query = credentials("anna", "secret-of-anna", 0);
    let signature = format!("Signature: {}\r\n", snaptrade::sign(KEY, &path, &query));
    open(sandbox, "GET", &format!("{path}?{query}"), &signature, "").await
}
