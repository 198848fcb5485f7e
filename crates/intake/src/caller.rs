//! Who calls `/v1`, proven by a bearer token.

use axum::http::{HeaderMap, header};
use secrecy::ExposeSecret;
use webhook::is_same_secret;

use crate::options::Options;
use crate::problem::Problem;

/// Succeeds for the holder of the service token, who asserts no scope and therefore reads all.
pub(crate) fn authenticate(options: &Options, headers: &HeaderMap) -> Result<(), Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Err(Problem::Unauthenticated) };
    let token = value.as_bytes().strip_prefix(b"Bearer ").unwrap_or_default();
    if is_same_secret(token, options.service_token.expose_secret().as_bytes()) {
        Ok(())
    } else {
        Err(Problem::Unauthenticated)
    }
}
