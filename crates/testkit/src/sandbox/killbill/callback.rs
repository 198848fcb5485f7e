//! The sender's side of a callback: one request, and whether it counts as received.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, UPGRADE, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::Callback;

/// Fixed in the sender's code.
const PATIENCE: Duration = Duration::from_secs(15);

/// Nobody reads an answer, but a connection is used again only when its answer is over.
const ANSWER_BYTES: usize = 64 * 1024;

/// Whoever posts to a callback.
pub(super) struct Caller {
    uri: Uri,
    admission: HeaderValue,
    idle: Mutex<Vec<SendRequest<Body>>>,
}

impl Caller {
    pub(super) fn new(callback: &Callback) -> Self {
        Self {
            uri: callback.url.parse().expect("a callback is an address"),
            admission: callback.admission.parse().expect("a token is plain"),
            idle: Mutex::default(),
        }
    }

    /// True where the answer came in time and was 2xx.
    pub(super) async fn post(&self, body: &str) -> bool {
        tokio::time::timeout(PATIENCE, self.exchange(body)).await.is_ok_and(|answer| answer.unwrap_or(false))
    }

    async fn exchange(&self, body: &str) -> Option<bool> {
        let authority = self.uri.authority()?.as_str();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_first = idle.is_none();
        let mut connection = match idle {
            Some(connection) => connection,
            None => connect(authority).await?,
        };
        connection.ready().await.ok()?;
        let mut request = Request::post(self.uri.path())
            .header(HOST, authority)
            .header(USER_AGENT, "KillBill/1.0")
            .header(CONTENT_TYPE, "application/json; charset=UTF-8")
            .header(HeaderName::from_static("x-callback-admission"), &self.admission);
        if is_first {
            // Its HTTP client offers HTTP/2 on every new connection.
            request = request.header(CONNECTION, "Upgrade, HTTP2-Settings").header(UPGRADE, "h2c").header(
                HeaderName::from_static("http2-settings"),
                "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
            );
        }
        let answer = connection.send_request(request.body(body.to_owned().into()).ok()?).await.ok()?;
        let is_success = answer.status().is_success();
        axum::body::to_bytes(Body::new(answer.into_body()), ANSWER_BYTES).await.ok()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Some(is_success)
    }
}

async fn connect(authority: &str) -> Option<SendRequest<Body>> {
    let stream = TcpStream::connect(authority).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}
