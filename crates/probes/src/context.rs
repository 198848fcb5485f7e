//! What surrounds every request: its trace, the id shown as `X-Correlation-Id`, and its metrics.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use contract::command::{HEADER_CORRELATION_ID, HEADER_TRACEPARENT, HEADER_TRACESTATE};
use telemetry::{Metrics, Trace};

/// The header that carries the correlation id, both ways.
const CORRELATION_ID: HeaderName = HeaderName::from_static(HEADER_CORRELATION_ID);

/// Longer ids are not taken over.
const LONGEST_ID: usize = 64;

/// Where a request stands.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its place in the trace of its caller, or in one of its own.
    pub trace: Trace,
    /// Names it in its answer, in log lines and in what it leaves behind.
    pub correlation_id: String,
}

tokio::task_local! {
    static CURRENT: Context;
}

/// The correlation id of the request in work; empty outside of one.
pub fn current_correlation_id() -> String {
    CURRENT.try_with(|context| context.correlation_id.clone()).unwrap_or_default()
}

impl Context {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let trace = Trace::follow(text(HEADER_TRACEPARENT), text(HEADER_TRACESTATE));
        let given = text(CORRELATION_ID.as_str()).filter(|id| is_plain(id));
        let correlation_id = given.map_or_else(|| trace.id(), str::to_owned);
        Self { trace, correlation_id }
    }
}

/// Nothing in an id may break a header, a log line or a table.
fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(plain)
}

/// Gives a request its context, its answer the correlation id, and the metrics their numbers.
pub async fn surround(
    State((metrics, listener)): State<(Arc<Metrics>, &'static str)>,
    mut request: Request,
    next: Next,
) -> Response {
    let context = Context::of(request.headers());
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let started = Instant::now();
    request.extensions_mut().insert(context.clone());
    let correlation_id = HeaderValue::from_str(&context.correlation_id).ok();
    let _in_flight = InFlight::enter(&metrics, listener);
    let mut response = CURRENT.scope(context, next.run(request)).await;
    if let Some(id) = correlation_id {
        response.headers_mut().insert(CORRELATION_ID, id);
    }
    metrics.http_requests.with_label_values(&[route.as_str(), response.status().as_str()]).inc();
    if response.status().as_u16() == 202 {
        metrics.accept_seconds.with_label_values(&[route.as_str()]).observe(started.elapsed().as_secs_f64());
    }
    response
}

/// Counts a request out however it ends, also when its client leaves.
struct InFlight<'a>(&'a Metrics, &'static str);

impl<'a> InFlight<'a> {
    fn enter(metrics: &'a Metrics, listener: &'static str) -> Self {
        metrics.http_in_flight.with_label_values(&[listener]).inc();
        Self(metrics, listener)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.http_in_flight.with_label_values(&[self.1]).dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn correlation_id(given: &'static str) -> String {
        let headers = HeaderMap::from_iter([(CORRELATION_ID, HeaderValue::from_static(given))]);
        Context::of(&headers).correlation_id
    }

    #[test]
    fn a_plain_correlation_id_is_taken_over_and_any_other_replaced() {
        assert_eq!(correlation_id("order-4711.a_b"), "order-4711.a_b");
        for strange in ["", "a b", "a/b", "<script>", "x".repeat(65).leak()] {
            assert_eq!(correlation_id(strange).len(), 32, "{strange}");
        }
    }
}
