//! `POST /webhooks/snaptrade`.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use probes::Context;
use webhook::snaptrade::{Event, SIGNATURE_HEADER, SOURCE};

use super::{Answer, proof, refuse, take_in};
use crate::body;
use crate::door::{Door, Permit};
use crate::problem::Problem;
use crate::subject::{Envelope, Subject};

pub(crate) async fn receive(
    State(door): State<Arc<Door>>,
    Extension(context): Extension<Context>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let body = body::read(&headers, body, door.options.webhook_body, door.options.body_timeout).await?;
    proof(&headers, SIGNATURE_HEADER)
        .and_then(|signature| door.options.snaptrade.verify(signature, &body))
        .map_err(|_| refuse(&door, SOURCE))?;
    let event = Event::read(&body);
    let envelope = Envelope {
        identity: event.identity.clone(),
        event_type: event.event_type.clone(),
        is_clean_json: event.is_clean_json,
        ..Envelope::new(SOURCE, String::new(), body, context.clone())
    };
    take_in(&door, permit, SOURCE, Subject::Snaptrade { envelope, event }, &context).await
}
