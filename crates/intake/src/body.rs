//! Reads a body: whole, in time, no larger than the route takes, and not compressed.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::problem::Problem;

/// Reads the body of a request whose headers are `headers`. A body that is too large is refused at the first
/// byte past the limit, and before that where its length is announced.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    timeout: Duration,
) -> Result<Bytes, Problem> {
    let encoded = headers.get_all(header::CONTENT_ENCODING).iter();
    if encoded.into_iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::EncodingNotSupported);
    }
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(Problem::BodyTooLarge);
    }
    match tokio::time::timeout(timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::BodyTooLarge),
        Ok(Err(_)) => Err(Problem::BodyIncomplete),
        Err(_) => Err(Problem::BodyTimeout),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_body_fits_up_to_its_last_byte() {
        for (length, fits) in [(0, true), (9, true), (10, true), (11, false), (1000, false)] {
            let answer = read(&HeaderMap::new(), Body::from(vec![b'x'; length]), 10, SECOND).await;
            assert_eq!(answer.is_ok(), fits, "{length}");
            assert!(fits || answer == Err(Problem::BodyTooLarge), "{length}");
        }
    }

    #[tokio::test]
    async fn an_announced_length_is_refused_before_a_byte_is_read() {
        let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from_static("104857600"))]);

        assert_eq!(read(&headers, Body::empty(), 10, SECOND).await, Err(Problem::BodyTooLarge));
    }

    #[tokio::test]
    async fn only_identity_is_no_encoding() {
        for (encoding, fits) in
            [("identity", true), ("Identity", true), ("gzip", false), ("zstd", false), ("", false)]
        {
            let headers =
                HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(encoding))]);
            assert_eq!(read(&headers, Body::empty(), 10, SECOND).await.is_ok(), fits, "{encoding}");
        }
    }
}
