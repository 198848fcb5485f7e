//! Every way in which the door says no. This alone knows status, stable code, `Retry-After` and sentence.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use strum::{EnumIter, IntoEnumIterator};

/// A refusal. Each code has a line in `docs/runbook.md`.
#[derive(Clone, Debug, PartialEq, Eq, EnumIter)]
pub(crate) enum Problem {
    /// The sender or caller proved nothing.
    Unauthenticated,
    /// No such thing, or not this caller's.
    NotFound,
    /// The route is there, the method is not.
    MethodNotAllowed,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The body did not arrive whole.
    BodyIncomplete,
    /// The body is larger than the route takes.
    BodyTooLarge,
    /// The body is encoded in a way that could hide its size.
    EncodingNotSupported,
    /// The body is not JSON.
    BodyNotJson,
    /// The body or a parameter is not what the route takes; the sentence says what.
    Invalid(Cow<'static, str>),
    /// The route needs an `Idempotency-Key`.
    IdempotencyKeyMissing,
    /// The key was used before for another request.
    IdempotencyKeyReused,
    /// The command is being run.
    CommandRunning,
    /// The command has ended.
    CommandFinished,
    /// The database refuses the request for its own sake.
    NotStorable,
    /// Too much in work at the moment.
    Busy,
    /// The database did not answer; nothing was taken in.
    Unavailable,
    /// The keys that prove users' tokens can't be had.
    CallersUnavailable,
    /// A mistake of ours.
    Internal,
}

impl Problem {
    /// Status, stable code, sentence.
    pub(crate) fn parts(&self) -> (StatusCode, &'static str, &str) {
        match self {
            Self::Unauthenticated => {
                (StatusCode::UNAUTHORIZED, "unauthenticated", "The request does not prove who sent it.")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", "There is nothing at this address."),
            Self::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "The address does not take this method.",
            ),
            Self::BodyTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "body_timeout", "The body did not arrive in time.")
            }
            Self::BodyIncomplete => {
                (StatusCode::BAD_REQUEST, "body_incomplete", "The body did not arrive whole.")
            }
            Self::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                "The body is larger than this address takes.",
            ),
            Self::EncodingNotSupported => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "encoding_not_supported",
                "Send the body without a Content-Encoding.",
            ),
            Self::BodyNotJson => (StatusCode::BAD_REQUEST, "body_not_json", "The body is not JSON."),
            Self::Invalid(sentence) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", sentence),
            Self::IdempotencyKeyMissing => (
                StatusCode::BAD_REQUEST,
                "idempotency_key_missing",
                "Send an Idempotency-Key header of 1 to 200 printable ASCII characters, the same for each try.",
            ),
            Self::IdempotencyKeyReused => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                "The Idempotency-Key was used before for another request; nothing was taken in.",
            ),
            Self::CommandRunning => {
                (StatusCode::CONFLICT, "command_running", "The command is being run and can't be taken back.")
            }
            Self::CommandFinished => (StatusCode::CONFLICT, "command_finished", "The command has ended."),
            Self::NotStorable => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "not_storable",
                "The request holds a value that can't be stored.",
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "Too many requests are in work; nothing was taken in. Try again after Retry-After.",
            ),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The request could not be stored; nothing was promised. Try again after Retry-After.",
            ),
            Self::CallersUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "callers_unavailable",
                "Users' tokens can't be checked at the moment. Try again after Retry-After.",
            ),
            Self::Internal => (
                StatusCode::SERVICE_UNAVAILABLE,
                "internal",
                "Something is wrong on this side; nothing was promised. Try again after Retry-After.",
            ),
        }
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.parts().1
    }

    /// Whole seconds, where trying again helps.
    const fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Busy => Some(1),
            Self::Unavailable | Self::CallersUnavailable => Some(5),
            Self::Internal => Some(30),
            _ => None,
        }
    }
}

/// All codes.
pub(crate) fn codes() -> Vec<&'static str> {
    Problem::iter().map(|problem| problem.code()).collect()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code, detail) = self.parts();
        probes::problem::answer(status, code, detail, self.retry_after())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    #[test]
    fn a_fault_of_ours_is_never_the_callers_and_says_when_to_come_back() {
        for problem in [Problem::Busy, Problem::Unavailable, Problem::CallersUnavailable, Problem::Internal] {
            let response = problem.into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(response.headers()[header::RETRY_AFTER].to_str().unwrap().parse::<u32>().unwrap() >= 1);
        }
    }
}
