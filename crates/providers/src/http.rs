//! The HTTP client that all providers share: TLS by rustls, no redirects, a deadline over the whole call, and a
//! limit to what is read.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};

use crate::failure::{Advice, Failure};

/// The largest answer that is read; the largest real one is a page of 1,000 activities, well under 2 MiB.
const LARGEST_ANSWER: usize = 8 * 1024 * 1024;

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// A header's value, where it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A client whose calls take no longer than `deadline`.
pub(crate) fn client(deadline: Duration) -> Client {
    // The first caller in the process decides; all of ours decide the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .timeout(deadline)
        .connect_timeout(deadline.min(Duration::from_secs(5)))
        .redirect(Policy::none())
        .user_agent(concat!("spillway/", env!("CARGO_PKG_VERSION")))
        .build()
        .expect("TLS roots come with the client and the options are constant")
}

/// Sends a request and reads the whole answer.
pub(crate) async fn call(request: RequestBuilder) -> Result<Answer, Failure> {
    call_within(request, LARGEST_ANSWER).await
}

/// Sends a request and reads the whole answer, unless it has more bytes than `largest`.
pub(crate) async fn call_within(request: RequestBuilder, largest: usize) -> Result<Answer, Failure> {
    let mut response = request.send().await.map_err(|error| unreachable(&error))?;
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if body.len() + chunk.len() > largest {
            return Err(failure("answer_too_large", "the answer is larger than any real one"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, headers, body: body.freeze() })
}

/// A failure of the way to the provider. reqwest's own text would show the URL, which may hold a secret.
fn unreachable(error: &reqwest::Error) -> Failure {
    if error.is_timeout() {
        failure("timeout", "no complete answer within the deadline")
    } else if error.is_connect() {
        failure("connect", "no connection")
    } else {
        failure("connection_lost", "the connection ended before the answer did")
    }
}

fn failure(code: &str, message: &str) -> Failure {
    Failure {
        advice: Advice::Retry(None),
        code: code.to_owned(),
        message: message.to_owned(),
        request_id: None,
    }
}
