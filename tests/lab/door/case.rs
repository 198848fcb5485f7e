//! A case, and what it uses to speak to the gateway: everything said and heard is kept for the report.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use testkit::sandbox::snaptrade::webhook::signature;
use tokio::time::timeout;
use uuid::Uuid;

use super::expect::manners;
use super::raw::{Address, Answer, Connection, Request};
use super::target::Target;

/// How long an answer to a whole request may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// What is shown of a text that was sent or that came.
const SHOWN: usize = 200;

/// One thing that a door must get right.
pub(super) struct Case {
    /// What it is about; the file that it stands in.
    pub(super) topic: &'static str,
    pub(super) name: &'static str,
    /// The fault of the drills that it shows from outside; empty where there is none.
    pub(super) fault: &'static str,
    pub(super) needs: Need,
    /// Whether no other case may run beside it.
    pub(super) is_alone: bool,
    /// What must come.
    pub(super) expects: &'static str,
    pub(super) run: Run,
}

/// Fails with what came instead.
pub(super) type Run = for<'a> fn(&'a Probe) -> BoxFuture<'a, anyhow::Result<()>>;

/// Without which a case can't be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Internal,
    StandardSender,
    Account,
}

impl Case {
    pub(super) fn new(name: &'static str, fault: &'static str, expects: &'static str, run: Run) -> Self {
        Self { topic: "", name, fault, needs: Need::Nothing, is_alone: false, expects, run }
    }

    pub(super) fn needs(self, needs: Need) -> Self {
        Self { needs, ..self }
    }

    pub(super) fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.topic, self.name)
    }
}

impl Need {
    /// Why a case that needs it can't be run.
    pub(super) fn unmet(self, target: &Target) -> Option<&'static str> {
        match self {
            Self::Internal if target.internal.is_none() => Some("needs --internal-url"),
            Self::StandardSender if target.secrets.standard.is_empty() => {
                Some("needs SANMOPIA_STANDARD_WEBHOOK_SECRETS")
            }
            Self::Account if target.account.is_none() => Some("needs --account"),
            _ => None,
        }
    }
}

/// What was said, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) sent: String,
    pub(super) came: String,
}

/// How a case speaks to the gateway.
pub(super) struct Probe {
    pub(super) target: Arc<Target>,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Probe {
    pub(super) fn new(target: Arc<Target>) -> Self {
        Self { target, exchanges: Mutex::default() }
    }

    /// An id that nothing else has.
    pub(super) fn id() -> String {
        Uuid::now_v7().to_string()
    }

    /// A SnapTrade delivery with a right signature over its bytes.
    pub(super) fn signed(&self, body: impl Into<Vec<u8>>) -> Request {
        let body = body.into();
        let proof = signature(&self.target.secrets.consumer_key, &body);
        Request::post("/webhooks/snaptrade", body).header("signature", proof)
    }

    /// Sends a request to the public listener and reads its answer, which must have the manners of every answer.
    pub(super) async fn ask(&self, request: Request) -> anyhow::Result<Answer> {
        self.ask_at(&self.target.public, request).await
    }

    /// The same at the internal listener.
    pub(super) async fn ask_inside(&self, request: Request) -> anyhow::Result<Answer> {
        self.ask_at(self.internal()?, request).await
    }

    pub(super) fn internal(&self) -> anyhow::Result<&Address> {
        self.target.internal.as_ref().context("there is no internal URL")
    }

    async fn ask_at(&self, address: &Address, request: Request) -> anyhow::Result<Answer> {
        let mut request = request;
        if request.value("x-correlation-id").is_none() {
            request = request.header("x-correlation-id", format!("door-{}", Uuid::now_v7().simple()));
        }
        let id = request.value("x-correlation-id").unwrap_or_default();
        let id = String::from_utf8_lossy(id).into_owned();
        let answer = self.ask_plainly(address, &request).await?;
        manners(&answer, &id, request.method == "HEAD")?;
        Ok(answer)
    }

    /// Sends a request as it is and reads an answer, whatever its manners.
    pub(super) async fn ask_plainly(&self, address: &Address, request: &Request) -> anyhow::Result<Answer> {
        let sent = describe(request);
        let mut connection = Connection::open(address).await?;
        // A refusal may come while we still write; then the write fails and the answer is there.
        let _ = connection.write(&request.bytes(address.host())).await;
        let answer = timeout(ANSWERED_WITHIN, connection.answer(request.method == "HEAD")).await;
        let answer = answer.map_err(|_| anyhow::anyhow!("no answer within {ANSWERED_WITHIN:?}"));
        let answer = answer.and_then(|answer| answer)?;
        self.note(sent.clone(), answer.as_ref());
        answer.with_context(|| format!("the connection ended without an answer to {sent}"))
    }

    /// Sends bytes and reads answers until the gateway closes, which it must within `bound`.
    pub(super) async fn converse(
        &self,
        said: &str,
        bytes: &[u8],
        bound: Duration,
    ) -> anyhow::Result<Vec<Answer>> {
        let mut connection = Connection::open(&self.target.public).await?;
        let _ = connection.write(bytes).await;
        self.listen(&mut connection, said, bound).await
    }

    /// Reads answers until the gateway closes, which it must within `bound`.
    pub(super) async fn listen(
        &self,
        connection: &mut Connection,
        said: &str,
        bound: Duration,
    ) -> anyhow::Result<Vec<Answer>> {
        let answers = timeout(bound, connection.answers()).await;
        let Ok(answers) = answers else {
            self.remember(said.to_owned(), format!("the connection was still open after {bound:?}"));
            anyhow::bail!("the connection was still open after {bound:?}");
        };
        let answers = answers?;
        let came = answers.iter().map(show).collect::<Vec<_>>();
        let came = if came.is_empty() { "closed without an answer".to_owned() } else { came.join("; ") };
        self.remember(said.to_owned(), came);
        Ok(answers)
    }

    /// Keeps an exchange that went another way than through this.
    pub(super) fn note(&self, sent: String, answer: Option<&Answer>) {
        let came = answer.map_or_else(|| "closed without an answer".to_owned(), show);
        self.remember(sent, came);
    }

    fn remember(&self, sent: String, came: String) {
        let exchange = Exchange { sent: self.target.mask(sent), came: self.target.mask(came) };
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    /// What was said and heard so far.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A request in one line.
pub(super) fn describe(request: &Request) -> String {
    let shown = request.headers.iter().filter(|(name, _)| *name != "x-correlation-id");
    let headers: Vec<String> = shown.map(|(name, value)| format!(" [{name}: {}]", clip(value))).collect();
    let body = match request.body.len() {
        0 => String::new(),
        length => format!(" {length} bytes: {}", clip(&request.body)),
    };
    format!("{} {}{}{body}", request.method, clip(request.target.as_bytes()), headers.concat())
}

/// An answer in one line.
fn show(answer: &Answer) -> String {
    format!("{} {}", answer.status, clip(&answer.body)).trim_end().to_owned()
}

/// The beginning, printable.
fn clip(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(SHOWN)];
    let mut text = String::from_utf8_lossy(start).escape_debug().to_string().replace("\\\"", "\"");
    if start.len() < bytes.len() {
        text.push('…');
    }
    text
}
