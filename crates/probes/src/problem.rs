//! How a request is refused: `application/problem+json` (RFC 9457). Which refusals there are is its routes' affair.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::context::current_correlation_id;

/// A refusal as its caller reads it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "problem")]
pub struct Body {
    /// Identifies the kind of problem.
    r#type: String,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// Stable; programs decide on it.
    code: &'static str,
    /// What is wrong, for people.
    detail: String,
    /// Names this request in our logs.
    correlation_id: String,
}

/// The answer to a refused request; `retry_after`, in whole seconds, where trying again helps.
pub fn answer(status: StatusCode, code: &'static str, detail: &str, retry_after: Option<u32>) -> Response {
    let correlation_id = current_correlation_id();
    tracing::debug!(code, correlation_id, "refused");
    let body = Body {
        r#type: format!("urn:spillway:problem:{code}"),
        title: status.canonical_reason().unwrap_or_default(),
        status: status.as_u16(),
        code,
        detail: detail.to_owned(),
        correlation_id,
    };
    let body = serde_json::to_string(&body).expect("strings and a number are always JSON");
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
