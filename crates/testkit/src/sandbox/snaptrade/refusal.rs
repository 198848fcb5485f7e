//! The errors of the API: the one place that knows their statuses, codes and sentences.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a call gets no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The signature, or something that it needs, is missing or wrong.
    Signature,
    /// A query parameter is not what it should be.
    Query,
    /// The user is unknown or the secret is not theirs.
    Permission,
    /// Nobody's account, or another user's, or no such route.
    NotFound,
    /// The route exists for other methods.
    Method,
    /// Customers who came after 2026-05-11 never had this route.
    Gone,
    /// The quota is used up.
    Throttled { wait_s: u64 },
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        // "0000" is what errors of their web framework carry, which have no code of their own.
        let (status, code, detail) = match self {
            Self::Signature => (StatusCode::UNAUTHORIZED, "1076", "Unable to verify signature sent"),
            Self::Query => (StatusCode::BAD_REQUEST, "1076", "Unable to verify data sent"),
            Self::Permission => {
                let detail = "User does not have permission to access this resource";
                (StatusCode::FORBIDDEN, "1066", detail)
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "1011", "The requested resource does not exist."),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "0000", "Method not allowed."),
            Self::Gone => (StatusCode::GONE, "0000", "This endpoint is no longer available."),
            Self::Throttled { wait_s } => {
                let detail = format!("Request was throttled. Expected available in {wait_s} seconds.");
                return error(StatusCode::TOO_MANY_REQUESTS, "0000", &detail);
            }
        };
        error(status, code, detail)
    }
}

/// An error body. SnapTrade leaves the status out of its 425 answers.
pub(super) fn error(status: StatusCode, code: &str, detail: &str) -> Response {
    let mut body = json!({ "detail": detail, "code": code });
    if status != StatusCode::TOO_EARLY {
        body["status_code"] = status.as_u16().into();
    }
    (status, Json(body)).into_response()
}
